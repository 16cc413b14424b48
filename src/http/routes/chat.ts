/** `/api/conversations/:id/chat`: a conversation as the AI SDK's `useChat` speaks with one. */
import type { Context } from "hono";
import { z } from "zod";
import { type UiChunk, UiMessageEncoder } from "../../compat/ui-message/chunks.ts";
import { chatSchema, chatTurn } from "../../compat/ui-message/request.ts";
import type { Frame } from "../../protocol/frames.ts";
import { DramatisError, toErrorData, unwrap } from "../../shared/errors.ts";
import { validate } from "../../shared/validation.ts";
import { readJson } from "../base/body.ts";
import type { HttpEnv, HttpRoutes } from "../base/context.ts";
import { empty, refuseOtherMethods, sse } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS } from "../openapi/operation.ts";
import { ids } from "../openapi/scalars.ts";
import { findConversation } from "./conversations.ts";
import { type ReadOptions, type TurnSource, turnFrames } from "./turn-frames.ts";

const PATH = "/api/conversations/:id/chat";
/** As many turns can be active at once. */
const MAX_ACTIVE = 64;
const HEADERS = { "x-vercel-ai-ui-message-stream": "v1" };

const params = z.object({ id: ids.conversation });
const chunk = z.looseObject({ type: z.string() }).meta({
  id: "UiMessageChunk",
  description: "A chunk of the AI SDK's UI message stream; `[DONE]` ends it.",
});

export const chatOperations: readonly ApiOperation[] = [
  {
    id: "chat",
    method: "post",
    path: PATH,
    tag: "events",
    summary: "Say something as `useChat` does",
    description:
      "Takes what `DefaultChatTransport` of the AI SDK sends. Only the last message is read, and its id is the idempotency key; the conversation knows the others. Leaving the stream ends the stream, not the turn.",
    params,
    body: chatSchema,
    answers: [{ status: 200, description: "The turn.", type: "text/event-stream", body: chunk }],
    errors: [
      ...BODY_ERRORS,
      "UNSUPPORTED",
      "NOT_FOUND",
      "FORBIDDEN",
      "IDEMPOTENCY_CONFLICT",
      "TOO_MANY_TURNS",
    ],
  },
  {
    id: "resumeChat",
    method: "get",
    path: PATH,
    tag: "events",
    summary: "Take up the stream of the turn in progress",
    description: "The newest active turn from its beginning, as the AI SDK's `resume` wants it.",
    params,
    answers: [
      { status: 200, description: "The turn.", type: "text/event-stream", body: chunk },
      { status: 204, description: "No turn is active." },
    ],
    errors: ["NOT_FOUND"],
  },
];

export function chatRoutes(app: HttpRoutes): void {
  app.post(PATH, async (context) => {
    const { principal, actors, maxBodyBytes } = context.var;
    const find = () => findConversation(actors, principal, context.req.param("id"));
    const conversation = await find();
    const input = chatTurn(validate(chatSchema, await readJson(context.req.raw, maxBodyBytes)));
    const { turnId, from, frames } = unwrap(await conversation.streamTurn(principal, input, "ndjson"));
    return answer(context, { conversation: find, principal, turnId }, { from, opened: frames });
  });

  app.get(PATH, async (context) => {
    const { principal, actors } = context.var;
    const find = () => findConversation(actors, principal, context.req.param("id"));
    const turns = unwrap(await (await find()).turns(principal, { limit: MAX_ACTIVE, order: "desc" }));
    const active = turns.items.find(({ status }) => status === "active");
    if (active === undefined) return empty();
    return answer(context, { conversation: find, principal, turnId: active.id });
  });
  refuseOtherMethods(app, PATH, ["GET", "POST"]);
}

function answer(context: Context<HttpEnv>, source: TurnSource, start: ReadOptions = {}): Promise<Response> {
  return sse(context, (signal) => payloads(turnFrames(source, { ...start, signal })), HEADERS);
}

async function* payloads(frames: AsyncIterable<Frame>): AsyncGenerator<{ data: string }, void> {
  for await (const chunk of chunks(frames)) yield { data: JSON.stringify(chunk) };
  yield { data: "[DONE]" };
}

async function* chunks(frames: AsyncIterable<Frame>): AsyncGenerator<UiChunk, void> {
  const encoder = new UiMessageEncoder();
  try {
    for await (const frame of frames) yield* encoder.push(frame);
  } catch (error) {
    if (!(error instanceof DramatisError)) console.error(error);
    yield* encoder.fail(toErrorData(error));
  }
}
