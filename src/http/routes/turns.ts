/** `/api/conversations/:id/turns`: saying something, and reading what came of it. */
import { accepts } from "hono/accepts";
import { z } from "zod";
import {
  clientToolsSchema,
  isOutcome,
  ONE_OUTCOME,
  outcomeFields,
  type ToolOutcome,
  toolChoiceSchema,
} from "../../protocol/client-tools.ts";
import { outputSchema } from "../../protocol/frames.ts";
import { parseContent } from "../../shared/content.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import { isOperationId, isTurnId } from "../../shared/identifiers.ts";
import { validate } from "../../shared/validation.ts";
import { readJson } from "../base/body.ts";
import type { HttpRoutes } from "../base/context.ts";
import { pageOptions, pageSchema } from "../base/query.ts";
import { events, json, page, refuseOtherMethods } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS } from "../openapi/operation.ts";
import { ids } from "../openapi/scalars.ts";
import {
  acceptedTurn,
  content,
  frame,
  listOf,
  submittedResult,
  turn,
  turnSummary,
} from "../openapi/views.ts";
import { findConversation } from "./conversations.ts";

const identifier = z.string().min(1).max(200);
const startSchema = z.strictObject({
  content: z.unknown(),
  replyToMessageId: z.exactOptional(identifier),
  idempotencyKey: z.exactOptional(identifier),
  output: z.exactOptional(outputSchema),
  tools: clientToolsSchema.exactOptional().meta({
    description:
      "Tools that you run: the turn waits for their results. At most 64 with 256 KiB, named differently from the agent's.",
  }),
  toolChoice: toolChoiceSchema.exactOptional().meta({
    description: "Which tools the model may or must use in its first reply; `auto` when absent.",
  }),
});
const resultSchema = z
  .strictObject(outcomeFields)
  .refine(isOutcome, ONE_OUTCOME)
  .meta({ description: "What the tool answered, any JSON up to 1 MiB, or why it failed." });

const params = z.object({ id: ids.conversation });

export const turnOperations: readonly ApiOperation[] = [
  {
    id: "startTurn",
    method: "post",
    path: "/api/conversations/:id/turns",
    tag: "turns",
    summary: "Say something",
    description:
      "Answers at once; what comes of it is read by `GET`, or followed live. With `Accept: text/event-stream` the answer is the turn's frames, up to its `turn.completed` or `turn.failed`. With an `idempotencyKey` the same body answers the same turn, however often it is sent.",
    params,
    body: startSchema
      .extend({ content })
      .meta({ example: { content: "What is 12*(3+4)?", idempotencyKey: "a key of yours" } }),
    answers: [
      { status: 202, description: "The turn has been accepted.", body: acceptedTurn, location: true },
      {
        status: 200,
        description: "The turn's frames as server-sent events, if they were asked for.",
        type: "text/event-stream",
        body: frame,
      },
    ],
    errors: [...BODY_ERRORS, "NOT_FOUND", "IDEMPOTENCY_CONFLICT", "CONVERSATION_CLOSED", "TOO_MANY_TURNS"],
  },
  {
    id: "listTurns",
    method: "get",
    path: "/api/conversations/:id/turns",
    tag: "turns",
    summary: "List turns",
    params,
    query: pageSchema,
    answers: [{ status: 200, description: "One page.", body: listOf("turns", turnSummary) }],
    errors: ["NOT_FOUND", "INVALID_INPUT"],
  },
  {
    id: "getTurn",
    method: "get",
    path: "/api/conversations/:id/turns/:turnId",
    tag: "turns",
    summary: "Read a turn with its moves",
    params: params.extend({ turnId: ids.turn }),
    answers: [{ status: 200, description: "The turn.", body: turn }],
    errors: ["NOT_FOUND"],
  },
  {
    id: "submitToolResult",
    method: "post",
    path: "/api/conversations/:id/operations/:operationId/result",
    tag: "turns",
    summary: "Give the result of a tool that you run",
    description:
      "For a call whose `tool.requested` has `client: true`: the turn waits for it, ten minutes as a rule. Give `result` or `error`. The same once more is answered the same; another one is a conflict.",
    params: params.extend({ operationId: ids.operation }),
    body: resultSchema.meta({ example: { result: { celsius: 21 } } }),
    answers: [{ status: 200, description: "The result is recorded.", body: submittedResult }],
    errors: [...BODY_ERRORS, "NOT_FOUND", "CONFLICT"],
  },
];

export function turnRoutes(app: HttpRoutes): void {
  app.post("/api/conversations/:id/turns", async (context) => {
    const { principal, actors, maxBodyBytes } = context.var;
    const conversation = await findConversation(actors, principal, context.req.param("id"));
    const body = validate(startSchema, await readJson(context.req.raw, maxBodyBytes));
    const input = { ...body, content: parseContent(body.content) };
    const wanted = accepts(context, {
      header: "Accept",
      supports: ["application/json", "text/event-stream"],
      default: "application/json",
    });
    if (wanted === "text/event-stream") {
      const { frames } = unwrap(await conversation.streamTurn(principal, input, "sse"));
      return events(context, async () => frames);
    }
    const { turnId, messageId } = unwrap(await conversation.startTurn(principal, input));
    return json({ turnId, messageId }, 202, `${context.req.path}/${turnId}`);
  });

  app.get("/api/conversations/:id/turns", async ({ req, var: { principal, actors } }) => {
    const options = pageOptions(req.query());
    const conversation = await findConversation(actors, principal, req.param("id"));
    return page("turns", unwrap(await conversation.turns(principal, options)));
  });
  refuseOtherMethods(app, "/api/conversations/:id/turns", ["GET", "POST"]);

  app.get("/api/conversations/:id/turns/:turnId", async ({ req, var: { principal, actors } }) => {
    const conversation = await findConversation(actors, principal, req.param("id"));
    const turnId = req.param("turnId");
    if (!isTurnId(turnId)) throw new DramatisError("NOT_FOUND", `There is no turn "${turnId}".`);
    return json(unwrap(await conversation.turn(principal, turnId)));
  });
  refuseOtherMethods(app, "/api/conversations/:id/turns/:turnId", ["GET"]);

  app.post("/api/conversations/:id/operations/:operationId/result", async ({ req, var: services }) => {
    const { principal, actors, maxBodyBytes } = services;
    const conversation = await findConversation(actors, principal, req.param("id"));
    const operationId = req.param("operationId");
    if (!isOperationId(operationId)) {
      throw new DramatisError("NOT_FOUND", `There is no operation "${operationId}".`);
    }
    // SAFETY: the schema says that a result is JSON.
    const outcome = validate(resultSchema, await readJson(req.raw, maxBodyBytes)) as ToolOutcome;
    const [taken] = unwrap(await conversation.submitToolResults(principal, [{ operationId, ...outcome }]));
    if (taken === undefined) throw new Error("A result that was submitted was taken.");
    return json(taken);
  });
  refuseOtherMethods(app, "/api/conversations/:id/operations/:operationId/result", ["POST"]);
}
