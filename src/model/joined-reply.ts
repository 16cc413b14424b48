/** Joins a reply that its provider paused with its continuation. Pure. */
import { defined } from "../shared/defined.ts";
import type { NativePart } from "./messages.ts";
import type { ModelReply } from "./reply.ts";
import { addUsage } from "./usage.ts";

/** Continuations of paused replies in one turn. */
export const MAX_CONTINUATIONS = 10;
/** Characters of a paused reply, text and reasoning: each continuation sends all of it again. A longer one is not continued. */
const MAX_PAUSED_LENGTH = 1024 * 1024;

/** The part of a reply before a pause. It has no calls: a reply with calls ends with them. */
export type ReplyBeginning = Pick<
  ModelReply,
  "text" | "reasoning" | "usage" | "providerMessageId" | "native"
>;

/** Reports whether a reply was paused, and may be continued after this number of continuations. */
export function isContinuable(
  { finishReason, text, reasoning = "" }: ModelReply,
  continuations: number,
): boolean {
  if (finishReason !== "paused" || continuations >= MAX_CONTINUATIONS) return false;
  return text.length + reasoning.length <= MAX_PAUSED_LENGTH;
}

/** Returns both as one reply, which ends as the continuation does. */
export function joinReplies(before: ReplyBeginning | undefined, reply: ModelReply): ModelReply {
  if (before === undefined) return reply;
  const reasoning = [before.reasoning, reply.reasoning].filter((text) => text !== undefined).join("\n\n");
  const isNative = before.native !== undefined || reply.native !== undefined;
  return {
    ...reply,
    text: before.text + reply.text,
    ...defined({
      reasoning: reasoning === "" ? undefined : reasoning,
      usage: addUsage(before.usage, reply.usage),
      providerMessageId: before.providerMessageId ?? reply.providerMessageId,
      native: isNative ? [...(before.native ?? textParts(before)), ...partsOf(reply)] : undefined,
    }),
  };
}

function partsOf(reply: ModelReply): NativePart[] {
  const calls = reply.toolCalls.map((_call, index): NativePart => ({ type: "tool-call", index }));
  return reply.native ?? [...textParts(reply), ...calls];
}

function textParts({ text }: ReplyBeginning): NativePart[] {
  return text === "" ? [] : [{ type: "text", length: text.length }];
}
