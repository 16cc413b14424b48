/** `/v1/responses`: answers that can be continued and read again. A response is one answer of a turn. */
import { z } from "zod";
import { type AnswerEvent, type AnswerPart, partCount, partOf } from "../../compat/answer.ts";
import { type AnswerAddress, parseResponseId, toolCallId } from "../../compat/openai/ids.ts";
import { invalidInput } from "../../compat/openai/input.ts";
import { type ResponseEvent, ResponseEventEncoder } from "../../compat/openai/response-events.ts";
import { responseObject } from "../../compat/openai/response-object.ts";
import {
  type ResponseRequest,
  responseInput,
  responseOptions,
  responseSchema,
} from "../../compat/openai/response-request.ts";
import type { TurnView } from "../../protocol/views.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import { validate } from "../../shared/validation.ts";
import { readJson } from "../base/body.ts";
import type { HttpRoutes } from "../base/context.ts";
import { json, refuseOtherMethods, sse } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS } from "../openapi/operation.ts";
import { findConversation } from "../routes/conversations.ts";
import { seeded } from "../routes/seeding.ts";
import { type StreamEncoder, streamedAnswer, wholeAnswer } from "./answers.ts";
import { CONVERSATION_HEADER, inFieldsOf } from "./errors.ts";
import {
  type Asked,
  type Asking,
  beginConversation,
  checkModel,
  continueConversation,
  deliverResults,
  idempotencyKey,
  keyHeader,
  readAnswer,
} from "./turns.ts";

const PATH = "/v1/responses";
const ONE = `${PATH}/:id`;
/** As many messages back a request that is sent again is known. */
const MAX_SINCE = 200;

const FIELDS = {
  agentId: "/model",
  history: "/input",
  content: "/input",
  toolChoice: "/tool_choice",
  output: "/text/format",
} as const;

const response = z
  .looseObject({ id: z.string(), object: z.literal("response"), output: z.array(z.looseObject({})) })
  .meta({ id: "OpenAiResponse", description: "A `response` of the OpenAI API." });
const event = z
  .looseObject({ type: z.string(), sequence_number: z.int() })
  .meta({ id: "OpenAiResponseEvent", description: "A streaming event of the OpenAI API's responses." });

export const responseOperations: readonly ApiOperation[] = [
  {
    id: "openAiCreateResponse",
    method: "post",
    path: PATH,
    tag: "openai",
    summary: "Ask for a response",
    description:
      "`model` is an agent's id. `previous_response_id`, or `conversation`, goes on in the conversation that it names; items `function_call_output` go on with the turn that asked for them. With `stream` the answer is events.",
    headers: keyHeader,
    body: responseSchema,
    answers: [{ status: 200, description: "The response, or its events.", body: response, stream: event }],
    errors: [
      ...BODY_ERRORS,
      ...["FORBIDDEN", "NOT_FOUND", "CONFLICT", "IDEMPOTENCY_CONFLICT", "TOO_MANY_TURNS", "UNSUPPORTED"],
    ] as const,
    errorFormat: "openai",
  },
  {
    id: "openAiGetResponse",
    method: "get",
    path: ONE,
    tag: "openai",
    summary: "Read a response again",
    params: z.object({ id: z.string().meta({ description: "Id of a response." }) }),
    query: z.object({
      stream: z.string().optional().meta({ description: "Give `true` for its events, from the first." }),
    }),
    answers: [
      { status: 200, description: "The response, as far as it has got.", body: response, stream: event },
    ],
    errors: ["NOT_FOUND", "INVALID_INPUT"],
    errorFormat: "openai",
  },
];

export function responseRoutes(app: HttpRoutes): void {
  app.post(PATH, seeded, async (context) => {
    const { principal, actors, maxBodyBytes } = context.var;
    const request = validate(responseSchema, await readJson(context.req.raw, maxBodyBytes));
    const key = idempotencyKey(context.req.header("idempotency-key"));
    const finalOnly = request.text?.format?.type === "json_schema";
    const asked = await ask({ actors, principal, key, finalOnly }, request).catch((error: unknown) => {
      throw inFieldsOf(error, FIELDS);
    });
    context.res.headers.set(CONVERSATION_HEADER, asked.address.conversationId);
    return request.stream === true
      ? sse(context, (signal) => streamedAnswer(asked, new ResponseStream(asked), signal))
      : json(responseObject(asked.address, asked.model, await wholeAnswer(asked)));
  });
  refuseOtherMethods(app, PATH, ["POST"]);

  app.get(ONE, async (context) => {
    const { principal, actors } = context.var;
    const { address, turn } = await findResponse({ actors, principal }, context.req.param("id"));
    if (context.req.query("starting_after") !== undefined) {
      throw invalidInput("/starting_after", "Is not supported: the events come from the first.");
    }
    if (context.req.query("stream") !== "true") {
      return json(responseObject(address, turn.agentId, partOf(turn, address)));
    }
    const asked = readAnswer({ actors, principal }, address, turn.agentId);
    return sse(context, (signal) => streamedAnswer(asked, new ResponseStream(asked), signal));
  });
  refuseOtherMethods(app, ONE, ["GET"]);
}

/** A response's turn. Throws `NOT_FOUND` for an id that names no answer, or not one of the caller's. */
async function findResponse(
  { actors, principal }: Pick<Asking, "actors" | "principal">,
  id: string,
): Promise<{ address: AnswerAddress; turn: TurnView }> {
  const address = parseResponseId(id);
  if (address !== null) {
    const conversation = await findConversation(actors, principal, address.conversationId);
    const turn = await conversation.turn(principal, address.turnId);
    if (!turn.ok && turn.error.code !== "NOT_FOUND") unwrap(turn);
    if (turn.ok && address.part < partCount(turn.value)) return { address, turn: turn.value };
  }
  throw new DramatisError("NOT_FOUND", "There is no such response.");
}

async function ask(asking: Asking, request: ResponseRequest): Promise<Asked> {
  const previous = await conversationOf(asking, request);
  const input = responseInput(request, previous !== null);
  const model = request.model ?? undefined;
  if (input.type === "results") {
    if (previous !== null && previous.id !== input.conversationId) {
      throw invalidInput("/input", "The results are of calls of another conversation.");
    }
    return deliverResults(asking, input, model, "/input");
  }
  const options = responseOptions(request);
  if (previous === null) {
    if (model === undefined) throw invalidInput("/model", "Is required.");
    const { stream, ...question } = request;
    // SAFETY: the body was JSON, and the schema changes nothing.
    const body = question as unknown as Json;
    return beginConversation(asking, model, input, { ...options, listed: true, body });
  }
  checkModel(previous.agentId, model);
  if (previous.turn !== undefined) await checkNewest(asking, previous.id, previous.turn);
  return continueConversation(asking, { id: previous.id, model: previous.agentId }, input, options);
}

/** The conversation that a request goes on in; `null` for one that begins. */
async function conversationOf(
  asking: Asking,
  { previous_response_id: id, conversation }: ResponseRequest,
): Promise<{ id: string; agentId: string; turn?: TurnView } | null> {
  if (id != null && conversation != null) {
    throw invalidInput("/conversation", "Give this or `previous_response_id`, not both.");
  }
  if (id != null) {
    const { address, turn } = await findResponse(asking, id);
    return { id: address.conversationId, agentId: turn.agentId, turn };
  }
  if (conversation == null) return null;
  const conversationId = typeof conversation === "string" ? conversation : conversation.id;
  const actor = await findConversation(asking.actors, asking.principal, conversationId);
  const { agentId } = unwrap(await actor.view(asking.principal));
  return { id: conversationId, agentId };
}

/** A conversation has one course: what is said next is said behind its last turn, and not while that waits. */
async function checkNewest(
  { actors, principal, key }: Asking,
  conversationId: string,
  turn: TurnView,
): Promise<void> {
  const path = "/previous_response_id";
  const waiting = turn.moves.flatMap(({ toolCall, toolResult }) =>
    toolCall?.client === true && toolResult === undefined ? [toolCall.operationId] : [],
  );
  if (turn.status === "active" && waiting.length > 0) {
    const ids = waiting.map((operation) => toolCallId(conversationId, operation)).join(", ");
    throw invalidInput("/input", `No output was given for the function calls ${ids}.`);
  }
  const conversation = await findConversation(actors, principal, conversationId);
  const newest = async (limit: number) =>
    unwrap(await conversation.messages(principal, { limit, order: "desc" })).items;
  const [last] = await newest(1);
  if (last?.turnId === turn.id) return;
  // A request that is sent again has been taken already, and more may have been said since.
  if (key !== undefined && (await newest(MAX_SINCE)).some(({ clientId }) => clientId === key)) return;
  throw invalidInput(
    path,
    "Must be the last response of its conversation: conversations do not branch here.",
  );
}

/** The events as payloads; each is named by its type. */
class ResponseStream implements StreamEncoder<{ event: string; data: string }> {
  readonly #encoder: ResponseEventEncoder;

  constructor({ address, model }: Asked) {
    this.#encoder = new ResponseEventEncoder(address, model);
  }

  start() {
    return payloads(this.#encoder.start());
  }

  push(event: AnswerEvent) {
    return payloads(this.#encoder.push(event));
  }

  end(part: AnswerPart) {
    return payloads(this.#encoder.end(part));
  }

  fail(error: Parameters<ResponseEventEncoder["fail"]>[0]) {
    return payloads(this.#encoder.fail(error));
  }
}

function payloads(events: readonly ResponseEvent[]): { event: string; data: string }[] {
  return events.map((event) => ({ event: event.type, data: JSON.stringify(event) }));
}
