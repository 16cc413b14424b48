/** Checks of repetition: attempts of a model, the pauses between them, and recoveries of a turn. */
import {
  MAX_RECOVERIES,
  MODEL_ATTEMPTS,
  MODEL_BACKOFF_MS,
} from "../../src/agents/conversation/core/conversation-limits.ts";
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import { isJsonObject } from "../../src/shared/json.ts";
import type { ModelCallRecord } from "./history.ts";
import { firedIn, type Scope } from "./scope.ts";

export function checkAttempts(scope: Scope): void {
  for (const turn of scope.outcome.turns) {
    for (const { id, outcome } of turn.calls) {
      if (outcome !== undefined && outcome.attempts > MODEL_ATTEMPTS)
        scope.fail("attempts", `${id} took ${outcome.attempts} attempts.`);
    }
  }
  checkPauses(scope);
}

function checkPauses(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  // The end of a pause is a time of the wall clock. A crash may lose a failure, which is then repeated without a pause.
  if (outcome.lives > 1 || firedIn(scope, ({ kind }) => kind === "jump") > 0) return;
  const calls = history.modelCalls.filter((call) => call.conversation === conversation);
  for (const own of Map.groupBy(calls, ({ tag, round }) => `${tag}.${round}`).values()) {
    let failed = 0;
    own.forEach((call, index) => {
      const before = own[index - 1];
      failed = before !== undefined && isRetried(before, call) ? failed + 1 : 0;
      const pause = failed === 0 ? 0 : (MODEL_BACKOFF_MS[failed - 1] ?? 0);
      if (before !== undefined && call.at - before.at < pause)
        fail("attempts", `${call.requestId} was made ${call.at - before.at} ms after ${before.requestId}.`);
    });
  }
}

function isRetried(before: ModelCallRecord, call: ModelCallRecord): boolean {
  return before.failure !== undefined && before.profile === call.profile;
}

export function checkRecoveries({ outcome, fail }: Scope): void {
  for (const { id } of outcome.turns) {
    const most = Math.max(...crashesOf(id, outcome.journal));
    if (most > MAX_RECOVERIES) fail("recoveries", `${id} was resumed ${most} times without an outcome.`);
  }
}

/** Reports whether a turn was interrupted as often, without an outcome, as it may be. */
export function isExhausted(turnId: string, { outcome }: Scope): boolean {
  return crashesOf(turnId, outcome.journal).at(-1) === MAX_RECOVERIES;
}

/** Returns the number of crashes under a turn since its last outcome, after each entry. */
function crashesOf(turnId: string, journal: readonly JournalEntryView[]): number[] {
  const counts = [0];
  for (const entry of journal) {
    if (entry.turnId !== turnId) continue;
    const before = counts.at(-1) ?? 0;
    if (entry.type === "turn.resumed") counts.push(before + 1);
    else if (isOutcome(entry)) counts.push(0);
  }
  return counts;
}

function isOutcome({ type, data }: JournalEntryView): boolean {
  if (type === "message.reset") return isJsonObject(data) && data.reason === "invalid_output";
  return ["llm.call.failed", "message.completed", "tool.completed", "tool.failed"].includes(type);
}
