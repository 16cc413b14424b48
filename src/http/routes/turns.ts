/** `/api/conversations/:id/turns`: starts turns and reads them, and takes the results of tools that the client runs. */

import { accepts } from "hono/accepts";
import { z } from "zod";
import {
  acceptedTurn,
  content,
  frame,
  resolvedApproval,
  submittedResult,
  turn,
  turnSummary,
} from "../../protocol/conversation-schemas.ts";
import { approvalFields, identifier, outcomeSchema, turnFields } from "../../protocol/requests.ts";
import { ids } from "../../protocol/scalars.ts";
import { parseContent } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { pageSchema } from "../base/query.ts";
import { events, json, page } from "../base/respond.ts";
import { BODY_ERRORS, ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, conversationParams, findConversation, stopSchema } from "./conversations.ts";

const TURNS = `${CONVERSATION}/turns` as const;
const TURN = `${TURNS}/:turnId` as const;
const APPROVAL = `${CONVERSATION}/operations/:operationId/approval` as const;
const RESULT = `${CONVERSATION}/operations/:operationId/result` as const;

const startSchema = z.strictObject({
  content: z.unknown(),
  idempotencyKey: identifier.exactOptional(),
  ...turnFields,
  to: turnFields.to.meta({
    description:
      "The participating agent that receives the message. Default: the first agent that the text mentions as `@id`. Otherwise the author of the message that it replies to, then the agent of this user's newest answered turn, then the conversation's first agent.",
  }),
  tools: turnFields.tools.meta({
    description:
      "Tools that the client runs: the turn waits for their results. At most 64, together 256 KiB. Their names must differ from the agent's tools.",
  }),
  toolChoice: turnFields.toolChoice.meta({
    description: "Tools that the model may or must use in its first reply. Default: `auto`.",
  }),
  budget: turnFields.budget.meta({
    description:
      "Limits of this turn. The limits of the conversation and of its agent also apply: the smallest limit decides.",
  }),
  untrusted: turnFields.untrusted.meta({
    description:
      "The content has text from elsewhere, such as a mail. A memory that comes from it is tainted.",
  }),
});
export const turnParams = conversationParams.extend({ turnId: ids.turn });
const resultParams = conversationParams.extend({ operationId: ids.operation });
export const resultSchema = outcomeSchema.meta({
  description: "The result of the tool, any JSON up to 1 MiB, or its error.",
});

const approvalSchema = z.strictObject({
  approved: approvalFields.approved.meta({ description: "`true`: the call runs." }),
  reason: approvalFields.reason.meta({ description: "The model gets the reason of a denial." }),
});

export const turnRoutes: readonly Route[] = [
  route(
    {
      id: "startTurn",
      method: "post",
      path: TURNS,
      tag: "turns",
      summary: "Start a turn",
      description:
        "Answers at once. Read the turn with `GET`, or follow it live: with `Accept: text/event-stream` the answer is the turn's frames, up to `turn.completed` or `turn.failed`. The same `idempotencyKey` and body always return the same turn.",
      params: conversationParams,
      body: startSchema
        .extend({ content })
        .meta({ example: { content: "What is 12*(3+4)?", idempotencyKey: "a key of yours" } }),
      reads: startSchema,
      answers: [
        { status: 202, description: "The turn has been accepted.", body: acceptedTurn, location: true },
        {
          status: 200,
          description: "The turn's frames, for `Accept: text/event-stream`.",
          type: "text/event-stream",
          body: frame,
        },
      ],
      errors: [...BODY_ERRORS, "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "CONVERSATION_CLOSED", "TOO_MANY_TURNS"],
    },
    async ({ params, body }, ports, context) => {
      const { principal } = ports;
      const conversation = await findConversation(ports, params.id);
      const traceparent = context.req.header("traceparent");
      const input = { ...body, content: parseContent(body.content), ...defined({ traceparent }) };
      const wanted = accepts(context, {
        header: "Accept",
        supports: ["application/json", "text/event-stream"],
        default: "application/json",
      });
      if (wanted === "text/event-stream") {
        const { frames } = unwrap(await conversation.streamTurn(principal, input, "sse"));
        return events(context, async () => frames);
      }
      const { turnId, messageId, status } = unwrap(await conversation.startTurn(principal, input));
      return json({ turnId, messageId, ...defined({ status }) }, 202, `${context.req.path}/${turnId}`);
    },
  ),
  route(
    {
      id: "listTurns",
      method: "get",
      path: TURNS,
      tag: "turns",
      summary: "List turns",
      params: conversationParams,
      query: pageSchema,
      answers: onePage("turns", turnSummary),
      errors: ["NOT_FOUND", "INVALID_INPUT"],
    },
    async ({ params, query }, ports) =>
      page("turns", unwrap(await (await findConversation(ports, params.id)).turns(ports.principal, query))),
  ),
  route(
    {
      id: "getTurn",
      method: "get",
      path: TURN,
      tag: "turns",
      summary: "Read a turn with its moves",
      params: turnParams,
      answers: ok("The turn.", turn),
      errors: ["NOT_FOUND"],
    },
    async ({ params: { id, turnId } }, ports) =>
      json(unwrap(await (await findConversation(ports, id)).turn(ports.principal, turnId))),
  ),
  route(
    {
      id: "cancelTurn",
      method: "post",
      path: `${TURN}/cancel`,
      tag: "turns",
      summary: "Stop a turn",
      description:
        "The turn fails with `CANCELLED`. Its model call is aborted, and its tools are cancelled. The shown text remains as a message with `stopped`. Repeating the request returns the same answer. `CONFLICT` if the turn ended without a stop. A closed connection does not stop a turn. The body may be absent.",
      params: turnParams,
      body: stopSchema,
      optionalBody: true,
      answers: ok("The turn is stopped.", turn),
      errors: [...BODY_ERRORS, "NOT_FOUND", "CONFLICT"],
    },
    async ({ params: { id, turnId }, body }, ports) =>
      json(unwrap(await (await findConversation(ports, id)).cancelTurn(ports.principal, turnId, body))),
  ),
  route(
    {
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
      errors: [...BODY_ERRORS, "NOT_FOUND", "CONFLICT"],
    },
    async ({ params: { id, operationId }, body }, ports) => {
      const conversation = await findConversation(ports, id);
      const submissions = [{ operationId, ...body }];
      const [submitted] = unwrap(await conversation.submitToolResults(ports.principal, submissions));
      if (submitted === undefined) throw new Error("The conversation must answer every submission.");
      return json(submitted);
    },
  ),
  route(
    {
      id: "resolveApproval",
      method: "post",
      path: APPROVAL,
      tag: "turns",
      summary: "Approve or deny a tool's call",
      description:
        "For a call in the state `awaiting_approval`, which `approval.requested` announced. An approved call runs `target` with the shown `input`. Without `target`, the tool runs. If the call is denied, the model gets the error `APPROVAL_DENIED` with the reason. The rule of the tool names who may answer. Without a rule, the participants, operators and admins may. Repeating the same answer returns the same status. A different or late answer is a conflict.",
      params: resultParams,
      body: approvalSchema.meta({ example: { approved: false, reason: "Too expensive." } }),
      answers: ok("The answer is recorded.", resolvedApproval),
      errors: [...BODY_ERRORS, "PERMISSION_DENIED", "NOT_FOUND", "CONFLICT"],
    },
    async ({ params: { id, operationId }, body }, ports) => {
      const conversation = await findConversation(ports, id);
      return json(unwrap(await conversation.resolveApproval(ports.principal, operationId, body)));
    },
  ),
];
