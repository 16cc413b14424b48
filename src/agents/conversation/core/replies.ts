/**
 * The replies of models in a turn, and replies that their provider paused. Pure.
 *
 * PAUSE-1  A paused reply goes back to its model as the last message, and the continuation is appended to it: one message,
 *          one reply, one event. Each continuation is a model call of its own, and one of the turn's moves.
 * PAUSE-2  A turn has at most `MAX_CONTINUATIONS` continuations, and they count as moves. A reply that is too long to keep or to send again
 *          is not continued. Without a continuation, the reply ends as it is.
 * PAUSE-3  If the text of the message is withdrawn, or the turn changes its model, the paused reply is dropped. The message restarts.
 */
import { profileAt } from "../../../library/definitions/version-chain.ts";
import { joinReplies } from "../../../model/joined-reply.ts";
import type { NativeReply } from "../../../model/messages.ts";
import type { ModelReply } from "../../../model/reply.ts";
import { joinTaints, type RequestTaint, taintMember } from "../../../model/taint.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { defined } from "../../../shared/defined.ts";
import type { ModelCall, PausedReply, Turn } from "./turn.ts";

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

export function withoutPaused({ paused: _withdrawn, ...turn }: Turn): Turn {
  return turn;
}

/** Returns the members of the turn that change when its call's reply is recorded. */
export function recorded(
  chain: VersionChain,
  turn: Turn,
  reply: ModelReply,
  now: number,
  notice?: true,
): Partial<Turn> {
  const { call, replies } = turn;
  if (call === null) return {};
  const { text, finishReason, reasoning, usage, providerMessageId } = reply;
  const native = nativeReply(chain, call, reply);
  const { taint, echoes } = turn;
  const members = defined({ reasoning, usage, providerMessageId, native, notice, taint, echoes });
  return { call: null, replies: [...replies, { item: call.item, text, finishReason, ...members, at: now }] };
}

/** Returns the taints of a turn after a request with `taint`, as members. */
export function taintsAfter(turn: Turn, { taint, echoes }: RequestTaint): RequestTaint {
  const taints = taintMember(joinTaints(turn.taint, taint));
  const left = joinTaints(turn.echoes, echoes).filter((origin) => !taints.taint?.includes(origin));
  return { ...taints, ...(left.length === 0 ? {} : { echoes: left }) };
}

/** Names the model that gave the reply's native parts: only that model is sent them again (NATIVE-1). */
export function nativeReply(
  chain: VersionChain,
  { profile = 0 }: ModelCall,
  { native: parts }: ModelReply,
): NativeReply | undefined {
  const model = profileAt(chain, profile);
  if (parts === undefined || model === undefined) return undefined;
  return { provider: model.provider, modelId: model.modelId, parts };
}
