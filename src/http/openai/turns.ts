/**
 * Turns as the OpenAI protocols ask for them: begun in a conversation of their own or in one that exists, or gone on with by
 * results of the client's tools.
 *
 * OAI-8  The same request under the same idempotency key is the same turn, and another one is refused.
 * OAI-9  Results are taken only together with all that their answer asked for, and the turn that waits for them goes on:
 *        the agent's work is done once, however often they are sent.
 */
import { ulid } from "ulid";
import { z } from "zod";
import { parseItemId, turnId as turnIdOf } from "../../agents/conversation/core/ids.ts";
import { callsBeside, partAfter } from "../../compat/answer.ts";
import { type AnswerAddress, conversationOfKey, toolCallId } from "../../compat/openai/ids.ts";
import { type GivenResult, invalidInput, type TurnInput } from "../../compat/openai/input.ts";
import type { ActorLookup, ConversationActor } from "../../protocol/actor-lookup.ts";
import type { StartTurn, TurnView } from "../../protocol/conversation-api.ts";
import type { Frame } from "../../protocol/frames.ts";
import { parseContent } from "../../shared/content.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import { isChosenId } from "../../shared/identifiers.ts";
import { canonicalJson, type Json } from "../../shared/json.ts";
import type { Principal } from "../../shared/principal.ts";
import { findConversation } from "../routes/conversations.ts";
import { type ReadOptions, turnFrames } from "../routes/turn-frames.ts";
import { noSuchModel } from "./errors.ts";

const MAX_KEY_LENGTH = 200;

/** The header of both protocols, for their descriptions. */
export const keyHeader = z.object({
  "Idempotency-Key": z
    .string()
    .max(MAX_KEY_LENGTH)
    .optional()
    .meta({ description: "The same key and body are answered the same, however often they are sent." }),
});

/** Who asks, under which key, and how. */
export interface Asking {
  actors: ActorLookup;
  principal: Principal;
  /** What the client sent as `Idempotency-Key`. */
  key: string | undefined;
  /** Whether only the last message counts: the answer must be one JSON value. */
  finalOnly: boolean;
}

/** A turn that has been taken on, and one of its answers. */
export interface Asked {
  address: AnswerAddress;
  model: string;
  /** The turn's frames from its beginning; read once, and no further when the signal aborts. */
  frames(signal?: AbortSignal): AsyncGenerator<Frame, void>;
  view(): Promise<TurnView>;
}

export type TurnOptions = Pick<StartTurn, "tools" | "toolChoice" | "output">;

/** The key of a request, checked. Throws `INVALID_INPUT`. */
export function idempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined || header === "") return undefined;
  if (header.length <= MAX_KEY_LENGTH) return header;
  throw new DramatisError("INVALID_INPUT", `An Idempotency-Key has at most ${MAX_KEY_LENGTH} characters.`);
}

/** Begins a conversation with what was said before, and says its next message. `body` is the whole request. */
export async function beginConversation(
  asking: Asking,
  model: string,
  { history, content }: Extract<TurnInput, { type: "message" }>,
  { listed, body, ...options }: TurnOptions & { listed: boolean; body: Json },
): Promise<Asked> {
  const { principal, key } = asking;
  if (!isChosenId(model)) throw noSuchModel(model);
  const checked = parseContent(content);
  const { tenant, subject } = principal;
  const id = key === undefined ? `conv_${ulid()}` : await conversationOfKey(tenant, subject, key);
  const conversation = await asking.actors.conversation(tenant, id);
  const created = await conversation.create(principal, {
    id,
    agentId: model,
    ...(history.length === 0 ? {} : { history }),
    ...(listed ? {} : { listed: false }),
    ...(key === undefined ? {} : { fingerprint: await fingerprintOf(body) }),
  });
  if (!created.ok && created.error.code === "NOT_FOUND") throw noSuchModel(model);
  unwrap(created);
  return startTurn(asking, conversation, { id, model }, { ...options, content: checked });
}

/** Says the next message in a conversation. */
export async function continueConversation(
  asking: Asking,
  { id, model }: { id: string; model: string },
  { content }: Extract<TurnInput, { type: "message" }>,
  options: TurnOptions,
): Promise<Asked> {
  const conversation = await findConversation(asking.actors, asking.principal, id);
  return startTurn(asking, conversation, { id, model }, { ...options, content: parseContent(content) });
}

async function startTurn(
  asking: Asking,
  conversation: ConversationActor,
  { id, model }: { id: string; model: string },
  input: Omit<StartTurn, "idempotencyKey">,
): Promise<Asked> {
  const { key, principal, finalOnly } = asking;
  const keyed = key === undefined ? input : { ...input, idempotencyKey: key };
  const { turnId, from, frames } = unwrap(await conversation.streamTurn(principal, keyed, "ndjson"));
  const address = { conversationId: id, turnId, part: 0, finalOnly };
  return asked(asking, address, model, { from, opened: frames });
}

/** Gives results to the turn that waits for them; its next answer is what is asked for. */
export async function deliverResults(
  asking: Asking,
  { conversationId, results }: Extract<TurnInput, { type: "results" }>,
  model: string | undefined,
  path: string,
): Promise<Asked> {
  const { principal, finalOnly } = asking;
  const conversation = await findConversation(asking.actors, principal, conversationId);
  const [first] = results;
  const turnId = turnOf(first?.operationId ?? "");
  const turn = unwrap(await conversation.turn(principal, turnId));
  const part = partAfter(turn, first?.operationId ?? "");
  if (part === null) throw new DramatisError("NOT_FOUND", "There is no such tool call.");
  checkModel(turn.agentId, model);
  checkComplete(conversationId, callsBeside(turn, first?.operationId ?? ""), results, path);
  unwrap(
    await conversation.submitToolResults(
      principal,
      results.map(({ operationId, result }) => ({ operationId, result })),
    ),
  );
  return readAnswer(asking, { conversationId, turnId, part, finalOnly }, turn.agentId);
}

/** An answer of a turn that exists. */
export function readAnswer(
  asking: Pick<Asking, "actors" | "principal">,
  address: AnswerAddress,
  model: string,
): Asked {
  return asked(asking, address, model, {});
}

/** Throws `INVALID_INPUT` where the client names another agent than the conversation's. */
export function checkModel(agentId: string, model: string | undefined): void {
  if (model === undefined || model === agentId) return;
  throw invalidInput("/model", `Must be "${agentId}", as in all of this conversation.`);
}

function checkComplete(
  conversationId: string,
  calls: readonly string[],
  results: readonly GivenResult[],
  path: string,
): void {
  const missing = calls.filter((call) => !results.some(({ operationId }) => operationId === call));
  if (missing.length > 0) {
    const ids = missing.map((call) => toolCallId(conversationId, call)).join(", ");
    throw invalidInput(path, `Must end with the results of all calls of the answer; missing: ${ids}.`);
  }
  const foreign = results.find(({ operationId }) => !calls.includes(operationId));
  if (foreign !== undefined) throw invalidInput(path, `${foreign.callId} is a call of another answer.`);
}

function asked(
  { actors, principal }: Pick<Asking, "actors" | "principal">,
  address: AnswerAddress,
  model: string,
  start: Pick<ReadOptions, "from" | "opened">,
): Asked {
  const { conversationId, turnId } = address;
  const conversation = () => findConversation(actors, principal, conversationId);
  return {
    address,
    model,
    frames: (signal) => turnFrames({ conversation, principal, turnId }, { ...start, signal }),
    view: async () => unwrap(await (await conversation()).turn(principal, turnId)),
  };
}

/** The turn of an operation; ids that are none lead to a turn that there is not. */
function turnOf(operationId: string): string {
  const address = parseItemId(operationId);
  return address === null ? "" : turnIdOf(address);
}

async function fingerprintOf(body: Json): Promise<string> {
  const bytes = new TextEncoder().encode(canonicalJson(body));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
