/** Joins a reply that its provider paused with its continuation. Pure. */
import { defined } from "../shared/defined.ts";
import type { NativePart } from "./messages.ts";
import type { ModelReply } from "./reply.ts";
import { addUsage } from "./usage.ts";

/** Continuations of paused replies in one turn. */
export const MAX_CONTINUATIONS = 10;

/** The part of a reply before a pause. It has no calls: a reply with calls ends with them. */
export type ReplyBeginning = Pick<
  ModelReply,
  "text" | "reasoning" | "usage" | "providerMessageId" | "native"
>;

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
