/** Contexts for formats, and their refusals. */
import { expect } from "vitest";
import type { ReplyOutcome } from "../../src/adapters/reply.ts";
import type { ModelContext } from "../../src/model/context.ts";
import type { ContextMessage, ContextPart } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";

export function context(given: Partial<ModelContext> = {}): ModelContext {
  return { systemInstructions: [], messages: [], tools: [], toolChoice: "auto", ...given };
}

/** Expects a refusal with a message that contains or matches `what`. */
export function expectUnsupported(build: () => unknown, what: RegExp | string): void {
  const message = typeof what === "string" ? expect.stringContaining(what) : expect.stringMatching(what);
  expect(build).toThrowError(expect.objectContaining({ code: "UNSUPPORTED", message }));
}

export function user(content: string, parts?: ContextPart[]): ContextMessage {
  return { role: "user", content, ...(parts === undefined ? {} : { parts }) };
}

/** A question, a reply with two calls, and their results in another order. One result is a failure. */
export const ROUND: ContextMessage[] = [
  user("Weather in Oslo and Rome?"),
  {
    role: "assistant",
    content: "I look.",
    toolCalls: [
      { id: "a", name: "lookup", arguments: { city: "Oslo" } },
      { id: "b", name: "lookup", arguments: {} },
    ],
  },
  { role: "tool", content: "no such city", toolCallId: "b", metadata: { isSuccess: false } },
  { role: "tool", content: "rain", toolCallId: "a", name: "lookup", metadata: { isSuccess: true } },
];

/** Turns a reply with native parts into the message that is sent back to its model. */
export function givenBack(outcome: ReplyOutcome, profile: ModelProfile): ContextMessage {
  if (!outcome.ok || outcome.reply.native === undefined) throw new Error("no native parts");
  const { text: content, toolCalls, native } = outcome.reply;
  return { role: "assistant", content, toolCalls, native: { ...profile, parts: native } };
}
