/** `/v1/responses`: answers that can be continued and read again. A response is one answer of a turn. */
import type { Context } from "hono";
import { z } from "zod";
import { answerCount, answerOf } from "../../compat/answer.ts";
import { type AnswerAddress, parseResponseId, toolCallId } from "../../compat/openai/ids.ts";
import { invalidInput } from "../../compat/openai/input.ts";
import { ResponseEventEncoder } from "../../compat/openai/response-events.ts";
import { responseObject } from "../../compat/openai/response-object.ts";
import {
  type ResponseRequest,
  responseInput,
  responseOptions,
  responseSchema,
} from "../../compat/openai/response-request.ts";
import type { TurnView } from "../../protocol/conversation-schemas.ts";
import { notFound, unwrap } from "../../shared/errors.ts";
import type { HttpEnv } from "../base/context.ts";
import { json, sse } from "../base/respond.ts";
import { type Route, route } from "../openapi/route.ts";
import { findConversation } from "../routes/conversations.ts";
import { streamedAnswer, wholeAnswer } from "./answers.ts";
import {
  type AnswerRequest,
  beginConversation,
  checkModel,
  continueConversation,
  keyHeader,
  nameIgnored,
  type PendingAnswer,
  pendingAnswer,
  requestAnswer,
  submitResults,
  TURN_ERRORS,
} from "./turns.ts";

const PATH = "/v1/responses";
const ONE = `${PATH}/:id`;
/** A repeated request is recognised among this many latest messages. */
const MAX_REPEAT_DISTANCE = 200;

const POINTERS = { input: "/input", format: "/text/format" };

const response = z
  .looseObject({ id: z.string(), object: z.literal("response"), output: z.array(z.looseObject({})) })
  .meta({ id: "OpenAiResponse", description: "A `response` of the OpenAI API." });
const event = z
  .looseObject({ type: z.string(), sequence_number: z.int() })
  .meta({ id: "OpenAiResponseEvent", description: "A streaming event of the OpenAI API's responses." });

const responseParams = z.object({ id: z.string().describe("Id of a response.") });

export const responseRoutes: readonly Route[] = [
  route({
    id: "openAiCreateResponse",
    method: "post",
    path: PATH,
    tag: "openai",
    summary: "Create a response",
    description:
      "`model` is the id of an agent. `previous_response_id` or `conversation` continues a conversation. Items `function_call_output` continue the turn that made the calls. With `stream` the answer is events.",
    headers: keyHeader,
    body: responseSchema,
    answers: [{ status: 200, description: "The response, or its events.", body: response, stream: event }],
    errors: TURN_ERRORS,
    errorFormat: "openai",
    handle: async ({ headers, body }, _, context) => {
      nameIgnored(context, responseSchema, body);
      const format = body.text?.format;
      const pending = await requestAnswer(context, headers, format, POINTERS, (request) =>
        start(request, body),
      );
      if (body.stream === true) return streamed(context, pending);
      return json(responseObject(pending.address, pending.model, await wholeAnswer(pending)));
    },
  }),
  route({
    id: "openAiGetResponse",
    method: "get",
    path: ONE,
    tag: "openai",
    summary: "Read a response again",
    params: responseParams,
    query: z.object({
      stream: z.string().optional().describe("Set to `true` to stream the events, from the first."),
    }),
    answers: [{ status: 200, description: "The response so far.", body: response, stream: event }],
    errorFormat: "openai",
    handle: async ({ params, query }, ports, context) => {
      const { address, turn } = await findResponse(ports, params.id);
      if (context.req.query("starting_after") !== undefined)
        throw invalidInput("/starting_after", "Is not supported: the stream begins with the first event.");
      if (query.stream === "true") return streamed(context, pendingAnswer(ports, address, turn.agentId));
      return json(responseObject(address, turn.agentId, answerOf(turn, address)));
    },
  }),
  route({
    id: "openAiCancelResponse",
    method: "post",
    path: `${ONE}/cancel`,
    tag: "openai",
    summary: "Stop a response",
    description:
      "Stops the turn of the response. The response has the status `cancelled` and the shown text. Repeating the request returns the same answer. It is a `conflict` if the turn ended without a stop.",
    params: responseParams,
    answers: [{ status: 200, description: "The response.", body: response }],
    errors: ["CONFLICT"],
    errorFormat: "openai",
    handle: async ({ params }, ports) => {
      const { address } = await findResponse(ports, params.id);
      const conversation = await findConversation(ports, address.conversationId);
      const turn = unwrap(await conversation.cancelTurn(ports.principal, address.turnId));
      return json(responseObject(address, turn.agentId, answerOf(turn, address)));
    },
  }),
];

function streamed(context: Context<HttpEnv>, pending: PendingAnswer): Promise<Response> {
  const encoder = new ResponseEventEncoder(pending.address, pending.model);
  return sse(context, async function* (signal) {
    for await (const event of streamedAnswer(pending, encoder, signal))
      yield { event: event.type, data: JSON.stringify(event) };
  });
}

/** Finds the turn of a response. Throws `NOT_FOUND` unless it exists and the principal may read it. */
async function findResponse(
  ports: Pick<AnswerRequest, "actors" | "principal">,
  id: string,
): Promise<{ address: AnswerAddress; turn: TurnView }> {
  const address = parseResponseId(id);
  if (address !== null) {
    const conversation = await findConversation(ports, address.conversationId);
    const turn = await conversation.turn(ports.principal, address.turnId);
    if (!turn.ok && turn.error.code !== "NOT_FOUND") unwrap(turn);
    if (turn.ok && address.index < answerCount(turn.value)) return { address, turn: turn.value };
  }
  throw notFound(`There is no response "${id}".`);
}

async function start(request: AnswerRequest, body: ResponseRequest): Promise<PendingAnswer> {
  const previous = await previousOf(request, body);
  const input = responseInput(body, previous !== null);
  const model = body.model ?? undefined;
  if (input.type === "results") {
    if (previous !== null && previous.id !== input.conversationId)
      throw invalidInput("/input", "The results belong to calls of another conversation.");
    return submitResults(request, input, model);
  }
  const options = responseOptions(body);
  if (previous === null) {
    if (model === undefined) throw invalidInput("/model", "Is required.");
    const { stream, ...question } = body;
    return beginConversation(request, model, input, { ...options, listed: true, question });
  }
  checkModel(previous.model, model);
  if (previous.turn !== undefined) await checkLatest(request, previous.id, previous.turn);
  return continueConversation(request, previous, input, options);
}

/**
 * Returns the conversation that a request continues, with the turn of the previous response. Returns `null` for a new
 * conversation.
 */
async function previousOf(
  request: AnswerRequest,
  { previous_response_id: id, conversation }: ResponseRequest,
): Promise<{ id: string; model: string; turn?: TurnView } | null> {
  if (id != null && conversation != null)
    throw invalidInput("/conversation", "Give `conversation` or `previous_response_id`, not both.");
  if (id != null) {
    const { address, turn } = await findResponse(request, id);
    return { id: address.conversationId, model: turn.agentId, turn };
  }
  if (conversation == null) return null;
  const conversationId = typeof conversation === "string" ? conversation : conversation.id;
  const actor = await findConversation(request, conversationId);
  const { agentId } = unwrap(await actor.view(request.principal));
  return { id: conversationId, model: agentId };
}

/** Responses cannot be branched: throws unless the turn is the latest and waits for no results. */
async function checkLatest(
  { key, ...ports }: AnswerRequest,
  conversationId: string,
  turn: TurnView,
): Promise<void> {
  const waiting = turn.moves.flatMap(({ toolCall, toolResult }) =>
    toolCall?.client === true && toolResult === undefined ? [toolCall.operationId] : [],
  );
  if (turn.status === "active" && waiting.length > 0) {
    const ids = waiting.map((operation) => toolCallId(conversationId, operation)).join(", ");
    throw invalidInput("/input", `Must contain the outputs of the function calls ${ids}.`);
  }
  const conversation = await findConversation(ports, conversationId);
  const latest = async (limit: number) =>
    unwrap(await conversation.messages(ports.principal, { limit, order: "desc" })).items;
  const [last] = await latest(1);
  if (last?.turnId === turn.id) return;
  // A repeated request was accepted before, and later turns may have followed.
  if (key !== undefined && (await latest(MAX_REPEAT_DISTANCE)).some(({ clientId }) => clientId === key))
    return;
  throw invalidInput(
    "/previous_response_id",
    "Must be the latest response of its conversation: responses cannot be branched.",
  );
}
