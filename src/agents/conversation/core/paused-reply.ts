/**
 * Replies that their provider paused, and their continuations. Pure.
 *
 * PAUSE-1  A paused reply goes back to its model as the last message, and the continuation is appended to it: one message,
 *          one reply, one event. Each continuation is a model call of its own, and one of the turn's moves.
 * PAUSE-2  A turn has at most `MAX_CONTINUATIONS` continuations, none beyond its moves, and none of a reply that is too long to
 *          be sent again. The reply then ends as it is.
 * PAUSE-3  What withdraws the message's text, or calls another model, withdraws the paused reply too: the message begins
 *          anew.
 */
import { joinReplies } from "../../../model/joined-reply.ts";
import type { NativeReply } from "../../../model/messages.ts";
import type { ModelReply } from "../../../model/reply.ts";
import { defined } from "../../../shared/defined.ts";
import type { PausedReply, Turn } from "./turn.ts";

/** Returns the reply with the turn's paused one before it. */
export function wholeReply({ paused }: Turn, reply: ModelReply): ModelReply {
  if (paused === undefined) return reply;
  const { native, ...before } = paused;
  return joinReplies({ ...before, ...defined({ native: native?.parts }) }, reply);
}

/** Returns a reply as the turn keeps it until it is continued. */
export function pausedReply(
  { text, reasoning, usage, providerMessageId }: ModelReply,
  native: NativeReply | undefined,
): PausedReply {
  return { text, ...defined({ reasoning, usage, providerMessageId, native }) };
}

/** Returns the turn without its paused reply. */
export function withoutPaused({ paused: _withdrawn, ...turn }: Turn): Turn {
  return turn;
}
