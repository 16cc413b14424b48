/**
 * `/api/conversations/:id/chat`: a conversation in the protocol of the AI SDK's `useChat`.
 *
 * CHATAPPROVE-1  An answer to a request for approval is an answer of the principal, as on any other route. Its stream
 *                contains the turn's events since then, even if the same answer is repeated.
 * CHATREGENERATE-1  `regenerate-message` starts a turn that answers the newest version of the message's turn again. A message that never
 *                   arrived starts its turn.
 */
import type { Context } from "hono";
import { z } from "zod";
import { type UiChunk, UiMessageEncoder } from "../../compat/ui-message/chunks.ts";
import {
  type ChatAnswers,
  chatAnswers,
  chatRegeneration,
  chatSchema,
  chatTurn,
} from "../../compat/ui-message/request.ts";
import type { ConversationActor } from "../../protocol/actor-lookup.ts";
import type { TurnSummary } from "../../protocol/conversation-schemas.ts";
import { type Frame, TURN_HEADER } from "../../protocol/frames.ts";
import type { StartedTurn } from "../../protocol/signals.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, toErrorData, unwrap } from "../../shared/errors.ts";
import { MAX_PAGE_SIZE } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import type { HttpEnv } from "../base/context.ts";
import { empty, sse } from "../base/respond.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, conversationParams, findConversation } from "./conversations.ts";
import { type ReadOptions, turnFrames } from "./turn-frames.ts";

const PATH = `${CONVERSATION}/chat` as const;
/** Maximum number of active turns. */
const MAX_ACTIVE = 64;
const HEADERS = { "x-vercel-ai-ui-message-stream": "v1" };

const chunk = z.looseObject({ type: z.string() }).meta({
  id: "UiMessageChunk",
  description: "A chunk of the AI SDK's UI message stream. `[DONE]` ends the stream.",
});

export const chatRoutes: readonly Route[] = [
  route({
    id: "chat",
    method: "post",
    path: PATH,
    tag: "events",
    summary: "Start a turn with `useChat`",
    description:
      "Takes the requests of the AI SDK's `DefaultChatTransport`. Only the last message is read. Its id is the idempotency key. The trigger `regenerate-message` answers it again. A last message of the assistant answers requests for approval, by the ids that its stream gave. Then the stream of the turn continues. The header `x-dramatis-turn` names the turn. `POST …/turns/:turnId/cancel` stops it. Closing the stream does not stop it.",
    params: conversationParams,
    body: chatSchema,
    answers: [{ status: 200, description: "The turn.", type: "text/event-stream", body: chunk }],
    errors: [
      "UNSUPPORTED",
      "FORBIDDEN",
      "PERMISSION_DENIED",
      "CONFLICT",
      "IDEMPOTENCY_CONFLICT",
      "TOO_MANY_TURNS",
    ],
    handle: async ({ params, body }, ports, context) => {
      const { principal } = ports;
      const conversation = await findConversation(ports, params.id);
      const answers = chatAnswers(body);
      if (answers !== undefined) {
        const from = await answered(conversation, principal, answers);
        return streamed(context, params.id, answers.turnId, { from }, answers.shown);
      }
      const regenerated = await regenerate(conversation, principal, body);
      if (regenerated !== undefined)
        return streamed(context, params.id, regenerated.turnId, { from: regenerated.from });
      const traceparent = context.req.header("traceparent");
      const input = { ...chatTurn(body), ...defined({ traceparent }) };
      const turn = unwrap(await conversation.streamTurn(principal, input, "ndjson", true));
      return streamed(context, params.id, turn.turnId, { from: turn.from, opened: turn.frames });
    },
  }),
  route({
    id: "resumeChat",
    method: "get",
    path: PATH,
    tag: "events",
    summary: "Resume the stream of the active turn",
    description:
      "The newest active turn from its beginning, for the AI SDK's `resume`. A turn that waits for background work is returned only if no other turn is active.",
    params: conversationParams,
    answers: [
      { status: 200, description: "The turn.", type: "text/event-stream", body: chunk },
      { status: 204, description: "No turn is active." },
    ],
    handle: async ({ params }, ports, context) => {
      const conversation = await findConversation(ports, params.id);
      const active = await activeTurn(conversation, ports.principal);
      return active === undefined ? empty() : streamed(context, params.id, active.id);
    },
  }),
];

/** Returns the newest active turn. A turn that only waits is returned if no other turn is active. */
export async function activeTurn(
  conversation: ConversationActor,
  principal: Principal,
): Promise<TurnSummary | undefined> {
  const turns = await conversation.turns(principal, { limit: MAX_ACTIVE, order: "desc" });
  const all = unwrap(turns).items.filter(({ status }) => status === "active");
  return all.find(({ phase }) => phase !== "waiting") ?? all[0];
}

/** Starts a turn that answers a message again; `undefined` for other requests (CHATREGENERATE-1). */
async function regenerate(
  conversation: ConversationActor,
  principal: Principal,
  body: z.output<typeof chatSchema>,
): Promise<StartedTurn | undefined> {
  const asked = chatRegeneration(body);
  if (asked === undefined) return undefined;
  const id = asked.turnId ?? (await turnOfMessage(conversation, principal, asked.userMessageId));
  if (id === undefined) return undefined;
  return unwrap(await conversation.regenerate(principal, await newestVersion(conversation, principal, id)));
}

/** Returns the newest version of a turn. A view names at most 32 later versions. */
async function newestVersion(
  conversation: ConversationActor,
  principal: Principal,
  id: string,
): Promise<string> {
  for (let newest = id; ; ) {
    const { versions = [newest] } = unwrap(await conversation.turn(principal, newest));
    const last = versions.at(-1) ?? newest;
    if (last === newest) return newest;
    newest = last;
  }
}

/** Returns the turn of a user's message: one of the newest messages with this id, or with this key. */
async function turnOfMessage(
  conversation: ConversationActor,
  principal: Principal,
  id: string,
): Promise<string | undefined> {
  const page = unwrap(await conversation.messages(principal, { limit: MAX_PAGE_SIZE, order: "desc" }));
  return page.items.find((message) => message.id === id || message.clientId === id)?.turnId;
}

/** Submits the answers. Returns the number of the entry after which the turn continues (CHATAPPROVE-1). */
export async function answered(
  conversation: ConversationActor,
  principal: Principal,
  { turnId, answers }: Pick<ChatAnswers, "turnId" | "answers">,
): Promise<number> {
  unwrap(await conversation.turn(principal, turnId));
  const newest = async (limit: number) =>
    unwrap(await conversation.journal(principal, { limit, order: "desc" })).items;
  const [before] = await newest(1);
  const approvals = answers.map(({ operationId, answer }) => ({ operationId, ...answer }));
  unwrap(await conversation.answerCalls(principal, { approvals }));
  const given = (await newest(MAX_PAGE_SIZE)).filter(
    ({ type, operationId = "" }) =>
      type === "approval.resolved" && answers.some((one) => one.operationId === operationId),
  );
  return Math.min(before?.seq ?? 0, ...given.map(({ seq }) => seq - 1));
}

function streamed(
  context: Context<HttpEnv>,
  conversationId: string,
  turnId: string,
  start: ReadOptions = {},
  shown: readonly string[] = [],
): Promise<Response> {
  const { principal } = context.var;
  const source = { conversation: () => findConversation(context.var, conversationId), principal, turnId };
  const headers = { ...HEADERS, [TURN_HEADER]: turnId };
  return sse(
    context,
    (signal) => payloads(turnFrames(source, { ...start, signal, untilWaiting: true }), shown),
    headers,
  );
}

async function* payloads(
  frames: AsyncIterable<Frame>,
  shown: readonly string[],
): AsyncGenerator<{ data: string }, void> {
  const encoder = new UiMessageEncoder(shown);
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
