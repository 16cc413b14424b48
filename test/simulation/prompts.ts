/** The requests of a turn's model calls, as the conversation rebuilds them, and their check. */
import { isDeepStrictEqual } from "node:util";
import { callCount } from "../../src/agents/conversation/core/planning/as-of.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import type { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { defined } from "../../src/shared/defined.ts";
import type { PromptRecord } from "./history.ts";
import type { Scope } from "./scope.ts";

export function promptsOf(runtime: ConversationRuntime, turn: Turn): PromptRecord[] {
  return Array.from({ length: callCount(turn) }, (_, index) => {
    const { turnId, call, request: body, missing } = runtime.prompt(turn, index + 1);
    return { turnId, call, ...defined({ requestId: turn.calls?.[index]?.requestId }), body, missing };
  });
}

/** Compares each rebuilt request with the request that the provider received. */
export function checkPrompts({ history, outcome, conversation, fail }: Scope): void {
  const calls = history.modelCalls.filter((call) => call.conversation === conversation);
  const bodies = new Map(calls.map(({ requestId, body }) => [requestId, body]));
  const compare = ({ turnId, call, body, missing }: PromptRecord, received: string | undefined) => {
    if (received === undefined || missing.length > 0) return;
    if (!isDeepStrictEqual(body, JSON.parse(received)))
      fail("prompts", `Call ${call} of ${turnId} is ${JSON.stringify(body)}, not ${received}.`);
  };
  for (const prompt of outcome.prompts) compare(prompt, bodies.get(prompt.requestId ?? ""));
  for (const { prompts, body } of calls) {
    for (const prompt of prompts.slice(0, -1)) compare(prompt, bodies.get(prompt.requestId ?? ""));
    for (const prompt of prompts.slice(-1)) compare(prompt, body);
  }
}
