/**
 * The turns of the OpenAI protocols: begun in a new or an existing conversation, or continued by results of the client's
 * tools.
 *
 * OAI-8  The same request with the same idempotency key is the same turn. A different request with the key is refused.
 * OAI-9  Results must cover all calls of their answer, and continue the turn that waits for them. The agent repeats no
 *        work when they are sent again.
 */
import type { Context } from "hono";
import { ulid } from "ulid";
import { z } from "zod";
import { answerWithCall } from "../../compat/answer.ts";
import { type AnswerAddress, conversationOfKey, toolCallId } from "../../compat/openai/ids.ts";
import { invalidInput, type MessageInput, type ResultsInput } from "../../compat/openai/input.ts";
import { ignoredFields, type TurnOptions } from "../../compat/openai/request-fields.ts";
import type { ActorLookup, ConversationActor } from "../../protocol/actor-lookup.ts";
import type { TurnView } from "../../protocol/conversation-schemas.ts";
import type { Frame } from "../../protocol/frames.ts";
import { parseItemId, turnId as turnIdOf } from "../../protocol/ids.ts";
import { newConversationIdOf } from "../../protocol/location-policy.ts";
import { MAX_KEY_LENGTH, type StartTurn } from "../../protocol/requests.ts";
import { parseContent } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { type DramatisError, notFound, unwrap } from "../../shared/errors.ts";
import { isAgentId } from "../../shared/identifiers.ts";
import { canonicalJson, type Json } from "../../shared/json.ts";
import type { Principal } from "../../shared/principal.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import type { HttpEnv, RequestVariables } from "../base/context.ts";
import { findConversation } from "../routes/conversations.ts";
import { turnFrames } from "../routes/turn-frames.ts";
import { CONVERSATION_HEADER, noSuchModel, withPointers } from "./errors.ts";

/** The header of both protocols, for their descriptions. */
export const keyHeader = z.object({
  "Idempotency-Key": z
    .string()
    .max(MAX_KEY_LENGTH, `An Idempotency-Key has at most ${MAX_KEY_LENGTH} characters.`)
    .optional()
    .describe("The same key and body always have the same answer."),
});

/** The errors of both protocols, for their descriptions. */
export const TURN_ERRORS = [
  "FORBIDDEN",
  "NOT_FOUND",
  "CONFLICT",
  "IDEMPOTENCY_CONFLICT",
  "TOO_MANY_TURNS",
  "UNSUPPORTED",
] as const;

/** The fields of a protocol, as JSON pointers. */
interface FieldPointers {
  input: string;
  format: string;
}

/** A request for an answer. The OpenAI protocols and MCP make it. */
export interface AnswerRequest {
  /** Keys of two protocols never name the same conversation. */
  protocol: "openai" | "mcp";
  /** The error for an agent that does not exist. */
  noAgent(id: string): DramatisError;
  actors: ActorLookup;
  location: RequestVariables["location"];
  principal: Principal;
  /** The `Idempotency-Key`. */
  key: string | undefined;
  pointers: FieldPointers;
  /** The answer must be one JSON value, so only its last message counts. */
  finalOnly: boolean;
  /** The header of W3C Trace Context. */
  traceparent: string | undefined;
}

export interface PendingAnswer {
  address: AnswerAddress;
  model: string;
  /** Yields the turn's frames from its first until the signal aborts. Can be read once. */
  frames(signal?: AbortSignal): AsyncGenerator<Frame, void>;
  view(): Promise<TurnView>;
}

/** Starts the turn of a request with `start`. Sets the header that names the conversation. */
export async function requestAnswer(
  context: Context<HttpEnv>,
  { "Idempotency-Key": given }: z.output<typeof keyHeader>,
  format: { type: string } | null | undefined,
  pointers: FieldPointers,
  start: (request: AnswerRequest) => Promise<PendingAnswer>,
): Promise<PendingAnswer> {
  const { actors, location, principal } = context.var;
  const key = given === "" ? undefined : given;
  const traceparent = context.req.header("traceparent");
  const finalOnly = format?.type === "json_schema";
  const request = { protocol: "openai", noAgent: noSuchModel, pointers, finalOnly } as const;
  const pending = await start({ ...request, actors, location, principal, key, traceparent }).catch(
    (error: unknown) => {
      throw withPointers(error, {
        agentId: "/model",
        history: pointers.input,
        content: pointers.input,
        toolChoice: "/tool_choice",
        output: pointers.format,
      });
    },
  );
  context.res.headers.set(CONVERSATION_HEADER, pending.address.conversationId);
  return pending;
}

/** Sets the header that names the ignored fields of a request (OAI-11). */
export function nameIgnored(
  context: Context<HttpEnv>,
  schema: Parameters<typeof ignoredFields>[0],
  body: object,
): void {
  const names = ignoredFields(schema, body);
  if (names.length > 0) context.res.headers.set("x-dramatis-ignored", names.join(", "));
}

/** Creates a conversation with the history and starts its first turn. `question` identifies a repeated request. */
export async function beginConversation(
  request: AnswerRequest,
  model: string,
  { history, content: unchecked }: MessageInput,
  { listed, question, ...options }: TurnOptions & { listed: boolean; question: object },
): Promise<PendingAnswer> {
  const { protocol, principal, key } = request;
  const { tenant, subject } = principal;
  if (!isAgentId(model)) throw request.noAgent(model);
  const content = parseContent(unchecked);
  const policy = request.location(tenant);
  const plain =
    key === undefined ? `conv_${ulid()}` : await conversationOfKey(protocol, tenant, subject, key);
  const id = newConversationIdOf(plain, model, {}, policy);
  const { locationHint } = policy;
  const conversation = await request.actors.conversation(tenant, id, locationHint);
  const created = await conversation.create(principal, {
    id,
    agentId: model,
    ...defined({ locationHint }),
    ...(history.length === 0 ? {} : { history }),
    ...(listed ? {} : { listed }),
    ...(key === undefined ? {} : { fingerprint: await fingerprintOf(question) }),
  });
  if (!created.ok && created.error.code === "NOT_FOUND") throw request.noAgent(model);
  unwrap(created);
  return startTurn(request, conversation, { id, model }, { ...options, content });
}

export async function continueConversation(
  request: AnswerRequest,
  { id, model }: { id: string; model: string },
  { content }: MessageInput,
  options: TurnOptions,
): Promise<PendingAnswer> {
  const conversation = await findConversation(request, id);
  return startTurn(request, conversation, { id, model }, { ...options, content: parseContent(content) });
}

async function startTurn(
  request: AnswerRequest,
  conversation: ConversationActor,
  { id, model }: { id: string; model: string },
  input: StartTurn,
): Promise<PendingAnswer> {
  const { key, principal, finalOnly, traceparent } = request;
  const keyed = { ...input, foreground: true as const, ...defined({ idempotencyKey: key, traceparent }) };
  const { turnId, from, frames } = unwrap(await conversation.streamTurn(principal, keyed, "ndjson"));
  const address = { conversationId: id, turnId, index: 0, finalOnly };
  return pendingAnswer(request, address, model, { from, opened: frames });
}

/** Submits results to the turn that waits for them. The requested answer is the turn's next. */
export async function submitResults(
  request: AnswerRequest,
  { conversationId, results }: ResultsInput,
  model: string | undefined,
): Promise<PendingAnswer> {
  const { principal, pointers, finalOnly } = request;
  const conversation = await findConversation(request, conversationId);
  const operationId = results[0]?.operationId ?? "";
  const turnId = turnOf(operationId);
  const turn = unwrap(await conversation.turn(principal, turnId));
  const answered = answerWithCall(turn, operationId);
  if (answered === null) {
    const id = toolCallId(conversationId, operationId);
    throw notFound(`There is no tool call "${id}".`);
  }
  checkModel(turn.agentId, model);
  const given = results.map((result) => result.operationId);
  const missing = answered.operationIds.filter((id) => !given.includes(id));
  if (missing.length > 0) {
    const ids = missing.map((id) => toolCallId(conversationId, id)).join(", ");
    throw invalidInput(
      pointers.input,
      `Must end with the results of all calls of the answer. Missing: ${ids}.`,
    );
  }
  const foreign = given.find((id) => !answered.operationIds.includes(id));
  if (foreign !== undefined)
    throw invalidInput(pointers.input, `${toolCallId(conversationId, foreign)} is a call of another answer.`);
  unwrap(await conversation.submitToolResults(principal, results));
  const address = { conversationId, turnId, index: answered.index + 1, finalOnly };
  return pendingAnswer(request, address, turn.agentId);
}

/** Throws `INVALID_INPUT` if the client names an agent other than the conversation's. */
export function checkModel(agentId: string, model: string | undefined): void {
  if (model === undefined || model === agentId) return;
  throw invalidInput("/model", `Must be "${agentId}", the agent of this conversation.`);
}

export function pendingAnswer(
  request: Pick<AnswerRequest, "actors" | "principal">,
  address: AnswerAddress,
  model: string,
  start: { from?: number; opened?: ReadableStream<Uint8Array> } = {},
): PendingAnswer {
  const { principal } = request;
  const { conversationId, turnId } = address;
  const conversation = () => findConversation(request, conversationId);
  return {
    address,
    model,
    frames: (signal) => turnFrames({ conversation, principal, turnId }, { ...start, signal }),
    view: async () => unwrap(await (await conversation()).turn(principal, turnId)),
  };
}

/** Returns the turn of an operation; for other ids, an id that no turn has. */
export function turnOf(operationId: string): string {
  const address = parseItemId(operationId);
  return address === null ? "" : turnIdOf(address);
}

function fingerprintOf(question: object): Promise<string> {
  // SAFETY: the question was parsed from JSON, and the schema changes nothing.
  return sha256Hex(canonicalJson(question as Json));
}
