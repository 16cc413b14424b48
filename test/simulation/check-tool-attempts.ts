/** Checks of the attempts of tool calls: which calls are repeated, how often, and the pauses in between. */
import type { JournalEntryView, MoveView } from "../../src/protocol/views.ts";
import { callOf } from "./client-tool.ts";
import { firedIn, type Scope } from "./scope.ts";
import { RETRIES } from "./tools.ts";

/** Returns the entries of an operation's attempts that were repeated. */
export function failedAttempts(operationId: string | undefined, { outcome }: Scope): JournalEntryView[] {
  return outcome.journal.filter(
    (entry) => entry.type === "tool.call.failed" && entry.operationId === operationId,
  );
}

export function checkToolAttempts(scope: Scope): void {
  for (const turn of scope.outcome.turns) for (const move of turn.moves) checkCall(move, scope);
}

function checkCall({ toolCall, toolResult }: MoveView, scope: Scope): void {
  if (toolCall === undefined || toolCall.client) return;
  const { operationId, name, attempt = 1 } = toolCall;
  const { history, outcome, fail } = scope;
  const failed = failedAttempts(operationId, scope);
  const retry = Object.hasOwn(RETRIES, name) ? RETRIES[name as keyof typeof RETRIES] : undefined;
  const most = retry?.maxAttempts ?? 1;
  if (attempt > most) fail("tool attempts", `${operationId} (${name}) has had ${attempt} attempts.`);
  if (failed.length !== attempt - 1)
    fail(
      "tool attempts",
      `${operationId} is at attempt ${attempt}, and ${failed.length} have failed before.`,
    );
  if (failed.some(({ data }) => JSON.stringify(data).includes("it did not work")))
    fail("tool attempts", `${operationId} was repeated although the tool reported a failure.`);
  const mayPass = /may work later|a defect of the tool|did not answer within/.test(
    toolResult?.error?.message ?? "",
  );
  if (mayPass && attempt < most)
    fail("tool attempts", `${operationId} failed at attempt ${attempt} of ${most}, and may have passed.`);
  // The end of a pause is a time of the wall clock, and a crash may lose a failure.
  if (retry === undefined || outcome.lives > 1 || firedIn(scope, ({ kind }) => kind !== "delay") > 0) return;
  const call = callOf(toolCall.input);
  const runs = history.toolRuns.filter((run) => run.call === call && run.operationId === operationId);
  runs.slice(1).forEach((run, index) => {
    const pause = retry.backoffMs * 2 ** index;
    const before = runs[index]?.over?.at ?? runs[index]?.aborted?.at;
    if (before !== undefined && run.at - before < pause)
      fail("tool attempts", `${operationId} ran again after ${run.at - before} ms instead of ${pause} ms.`);
  });
}
