/** `/api/conversations/:id/turns`: starts turns and reads them, and takes the results of tools that the client runs. */
import { z } from "zod";
import {
  acceptedTurn,
  frame,
  resolvedApproval,
  submittedResult,
  turn,
  turnSummary,
} from "../../protocol/conversation-schemas.ts";
import { turnPrompt } from "../../protocol/prompt.ts";
import {
  approvalAnswer,
  editTurn,
  outcomeSchema,
  regenerateTurn,
  startTurnBody,
  stopRequest,
} from "../../protocol/requests.ts";
import { ids } from "../../protocol/scalars.ts";
import type { StartedTurn } from "../../protocol/signals.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { pageSchema } from "../base/query.ts";
import { events, json, page, wantsEvents } from "../base/respond.ts";
import { type ApiResponse, ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, COPY_ERRORS, conversationParams, findConversation } from "./conversations.ts";

const TURNS = `${CONVERSATION}/turns` as const;
const TURN = `${TURNS}/:turnId` as const;
const APPROVAL = `${CONVERSATION}/operations/:operationId/approval` as const;
const REPLACE_ERRORS = [...COPY_ERRORS, "TOO_MANY_TURNS"] as const;
const RESULT = `${CONVERSATION}/operations/:operationId/result` as const;

export const turnParams = conversationParams.extend({ turnId: ids.turn });
const resultParams = conversationParams.extend({ operationId: ids.operation });
const callNumber = z
  .string()
  .regex(/^[1-9][0-9]{0,5}$/, "Must be the number of a model call: an integer, 1 or more.")
  .transform(Number)
  .meta({
    description: "The number of a model call among the `calls` of the turn, from 1. Default: the newest.",
    example: "1",
  });
export const resultSchema = outcomeSchema.describe(
  "The result of the tool, any JSON up to 1 MiB, or its error.",
);

const ACCEPTED: ApiResponse = {
  status: 202,
  description: "The turn has been accepted.",
  body: acceptedTurn,
  location: true,
};

export const turnRoutes: readonly Route[] = [
  route({
    id: "startTurn",
    method: "post",
    path: TURNS,
    tag: "turns",
    summary: "Start a turn",
    description:
      "Answers at once. Read the turn with `GET`, or follow it live: with `Accept: text/event-stream` the answer is the turn's frames, up to `turn.completed` or `turn.failed`. The same `idempotencyKey` and body always return the same turn.",
    params: conversationParams,
    body: startTurnBody.meta({
      example: { content: "What is 12*(3+4)?", idempotencyKey: "a key of yours" },
    }),
    answers: [
      ACCEPTED,
      {
        status: 200,
        description: "The turn's frames, for `Accept: text/event-stream`.",
        type: "text/event-stream",
        body: frame,
      },
    ],
    errors: ["IDEMPOTENCY_CONFLICT", "CONVERSATION_CLOSED", "TOO_MANY_TURNS"],
    handle: async ({ params, body }, ports, context) => {
      const { principal } = ports;
      const conversation = await findConversation(ports, params.id);
      const traceparent = context.req.header("traceparent");
      const input = { ...body, ...defined({ traceparent }) };
      if (wantsEvents(context)) {
        const { frames } = unwrap(await conversation.streamTurn(principal, input, "sse"));
        return events(context, async () => frames);
      }
      const { turnId, messageId, status } = unwrap(await conversation.startTurn(principal, input));
      return json({ turnId, messageId, ...defined({ status }) }, 202, `${context.req.path}/${turnId}`);
    },
  }),
  route({
    id: "listTurns",
    method: "get",
    path: TURNS,
    tag: "turns",
    summary: "List turns",
    params: conversationParams,
    query: pageSchema,
    answers: onePage("turns", turnSummary),
    handle: async ({ params, query }, ports) =>
      page("turns", unwrap(await (await findConversation(ports, params.id)).turns(ports.principal, query))),
  }),
  route({
    id: "getTurn",
    method: "get",
    path: TURN,
    tag: "turns",
    summary: "Read a turn with its moves",
    params: turnParams,
    answers: ok("The turn.", turn),
    handle: async ({ params: { id, turnId } }, ports) =>
      json(unwrap(await (await findConversation(ports, id)).turn(ports.principal, turnId))),
  }),
  route({
    id: "getTurnPrompt",
    method: "get",
    path: `${TURN}/prompt`,
    tag: "turns",
    summary: "Read the request of a model call of a turn",
    description:
      "For operators. The present code builds the request again from the stored turn, with its parts and their tokens. `call` is a number of the turn's `calls`. `missing` names parts that are not stored. `CONFLICT` before the turn has called a model. `NOT_FOUND` if the turn has no such call.",
    params: turnParams,
    query: z.object({ call: callNumber.optional() }),
    answers: ok("The request, and the reply if it is stored.", turnPrompt),
    errors: ["FORBIDDEN", "CONFLICT"],
    handle: async ({ params: { id, turnId }, query: { call } }, ports) =>
      json(unwrap(await (await findConversation(ports, id)).promptOfTurn(ports.principal, turnId, call))),
  }),
  route({
    id: "cancelTurn",
    method: "post",
    path: `${TURN}/cancel`,
    tag: "turns",
    summary: "Stop a turn",
    description:
      "The turn fails with `CANCELLED`. Its model call is aborted, and its tools are cancelled. The shown text remains as a message with `stopped`. Repeating the request returns the same answer. `CONFLICT` if the turn ended without a stop. A closed connection does not stop a turn. The body may be absent.",
    params: turnParams,
    body: stopRequest,
    optionalBody: true,
    answers: ok("The turn is stopped.", turn),
    errors: ["CONFLICT"],
    handle: async ({ params: { id, turnId }, body }, ports) =>
      json(unwrap(await (await findConversation(ports, id)).cancelTurn(ports.principal, turnId, body))),
  }),
  route({
    id: "regenerateTurn",
    method: "post",
    path: `${TURN}/regenerate`,
    tag: "turns",
    summary: "Answer a message again",
    description:
      "Starts a turn with the message of a turn that is over, also of a failed turn. It takes over the tool calls with their results, so no call runs again, and the model only answers anew. The turn and the later turns leave the context of the agents. They stay readable. `CONFLICT` if one of them is active, or if the turn was replaced. The body may be absent.",
    params: turnParams,
    body: regenerateTurn.meta({ example: { idempotencyKey: "a key of yours" } }),
    optionalBody: true,
    answers: [ACCEPTED],
    errors: REPLACE_ERRORS,
    handle: async ({ params: { id, turnId }, body }, ports) => {
      const conversation = await findConversation(ports, id);
      return accepted(id, unwrap(await conversation.regenerate(ports.principal, turnId, body)));
    },
  }),
  route({
    id: "editTurn",
    method: "post",
    path: `${TURN}/edit`,
    tag: "turns",
    summary: "Replace a message",
    description:
      "Starts a turn with another message in place of a turn that is over. The turn and the later turns leave the context of the agents. They stay readable. A note tells the model about their calls with effects. `CONFLICT` if one of them is active, or if the turn was replaced.",
    params: turnParams,
    body: editTurn.meta({ example: { content: "What is 12*(3+5)?", idempotencyKey: "a key of yours" } }),
    answers: [ACCEPTED],
    errors: REPLACE_ERRORS,
    handle: async ({ params: { id, turnId }, body }, ports) => {
      const conversation = await findConversation(ports, id);
      return accepted(id, unwrap(await conversation.edit(ports.principal, turnId, body)));
    },
  }),
  route({
    id: "submitToolResult",
    method: "post",
    path: RESULT,
    tag: "turns",
    summary: "Submit the result of a client's tool",
    description:
      "For a call with `client: true` in its `tool.requested`. The turn waits for the result, by default ten minutes. Give `result` or `error`. Repeating the same result returns the same answer. A different result is a conflict.",
    params: resultParams,
    body: resultSchema.meta({ example: { result: { celsius: 21 } } }),
    answers: ok("The result is recorded.", submittedResult),
    errors: ["CONFLICT"],
    handle: async ({ params: { id, operationId }, body }, ports) => {
      const conversation = await findConversation(ports, id);
      const submissions = [{ operationId, ...body }];
      const [submitted] = unwrap(await conversation.submitToolResults(ports.principal, submissions));
      if (submitted === undefined) throw new Error("The conversation must answer every submission.");
      return json(submitted);
    },
  }),
  route({
    id: "resolveApproval",
    method: "post",
    path: APPROVAL,
    tag: "turns",
    summary: "Approve or deny a tool's call",
    description:
      "For a call in the state `awaiting_approval`, which `approval.requested` announced. An approved call runs `target` with the shown `input`. Without `target`, the tool runs. If the call is denied, the model gets the error `APPROVAL_DENIED` with the reason. The rule of the tool names who may answer. Without a rule, the participants, operators and admins may. Repeating the same answer returns the same status. A different or late answer is a conflict.",
    params: resultParams,
    body: approvalAnswer.meta({ example: { approved: false, reason: "Too expensive." } }),
    answers: ok("The answer is recorded.", resolvedApproval),
    errors: ["PERMISSION_DENIED", "CONFLICT"],
    handle: async ({ params: { id, operationId }, body }, ports) => {
      const conversation = await findConversation(ports, id);
      return json(unwrap(await conversation.resolveApproval(ports.principal, operationId, body)));
    },
  }),
];

function accepted(conversationId: string, { turnId, messageId, status }: StartedTurn): Response {
  const path = `/api/conversations/${conversationId}/turns/${turnId}`;
  return json({ turnId, messageId, ...defined({ status }) }, 202, path);
}
