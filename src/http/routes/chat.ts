/** `/api/conversations/:id/chat`: a conversation in the protocol of the AI SDK's `useChat`. */
import type { Context } from "hono";
import { z } from "zod";
import { type UiChunk, UiMessageEncoder } from "../../compat/ui-message/chunks.ts";
import { chatSchema, chatTurn } from "../../compat/ui-message/request.ts";
import { type Frame, TURN_HEADER } from "../../protocol/frames.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, toErrorData, unwrap } from "../../shared/errors.ts";
import { readBody } from "../base/body.ts";
import type { HttpEnv, HttpRoutes } from "../base/context.ts";
import { empty, sse } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS } from "../openapi/operation.ts";
import { CONVERSATION, conversationOf, conversationParams } from "./conversations.ts";
import { type ReadOptions, turnFrames } from "./turn-frames.ts";

const PATH = `${CONVERSATION}/chat` as const;
/** Maximum number of active turns. */
const MAX_ACTIVE = 64;
const HEADERS = { "x-vercel-ai-ui-message-stream": "v1" };

const chunk = z.looseObject({ type: z.string() }).meta({
  id: "UiMessageChunk",
  description: "A chunk of the AI SDK's UI message stream. `[DONE]` ends the stream.",
});

export const chatOperations: readonly ApiOperation[] = [
  {
    id: "chat",
    method: "post",
    path: PATH,
    tag: "events",
    summary: "Start a turn with `useChat`",
    description:
      "Takes the requests of the AI SDK's `DefaultChatTransport`. Only the last message is read; its id is the idempotency key. The header `x-dramatis-turn` names the turn, which `POST …/turns/:turnId/cancel` stops; leaving the stream does not.",
    params: conversationParams,
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
    summary: "Resume the stream of the active turn",
    description:
      "The newest active turn from its beginning, for the AI SDK's `resume`; one that waits for work in the background only if no other is active.",
    params: conversationParams,
    answers: [
      { status: 200, description: "The turn.", type: "text/event-stream", body: chunk },
      { status: 204, description: "No turn is active." },
    ],
    errors: ["NOT_FOUND"],
  },
];

export function chatRoutes(app: HttpRoutes): void {
  app.post(PATH, async (context) => {
    const conversation = await conversationOf(context);
    const traceparent = context.req.header("traceparent");
    const input = { ...chatTurn(await readBody(context, chatSchema)), ...defined({ traceparent }) };
    const turn = unwrap(await conversation.streamTurn(context.var.principal, input, "ndjson", true));
    return streamed(context, turn.turnId, { from: turn.from, opened: turn.frames });
  });

  app.get(PATH, async (context) => {
    const conversation = await conversationOf(context);
    const turns = await conversation.turns(context.var.principal, { limit: MAX_ACTIVE, order: "desc" });
    const all = unwrap(turns).items.filter(({ status }) => status === "active");
    const active = all.find(({ phase }) => phase !== "waiting") ?? all[0];
    return active === undefined ? empty() : streamed(context, active.id);
  });
}

function streamed(
  context: Context<HttpEnv, "/:id">,
  turnId: string,
  start: ReadOptions = {},
): Promise<Response> {
  const { principal } = context.var;
  const source = { conversation: () => conversationOf(context), principal, turnId };
  const headers = { ...HEADERS, [TURN_HEADER]: turnId };
  return sse(
    context,
    (signal) => payloads(turnFrames(source, { ...start, signal, untilWaiting: true })),
    headers,
  );
}

async function* payloads(frames: AsyncIterable<Frame>): AsyncGenerator<{ data: string }, void> {
  const encoder = new UiMessageEncoder();
  const payload = (chunk: UiChunk) => ({ data: JSON.stringify(chunk) });
  try {
    for await (const frame of frames) yield* encoder.push(frame).map(payload);
    yield* encoder.end().map(payload);
  } catch (error) {
    if (!(error instanceof DramatisError)) console.error(error);
    yield* encoder.fail(toErrorData(error)).map(payload);
  }
  yield { data: "[DONE]" };
}
