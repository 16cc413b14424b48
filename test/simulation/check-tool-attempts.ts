/** Checks of the attempts of tool calls: which calls are repeated, how often, and the pauses in between. */
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import type { MoveView } from "../../src/protocol/move-schemas.ts";
import { firedIn, type Scope, takenIn } from "./scope.ts";
import { RETRIES } from "./tools.ts";

/** Returns the entries of an operation's attempts that were repeated. */
export function failedAttempts(operationId: string | undefined, { outcome }: Scope): JournalEntryView[] {
  return outcome.journal.filter(
    (entry) => entry.type === "tool.call.failed" && entry.operationId === operationId,
  );
}

export function checkToolAttempts(scope: Scope): void {
  const taken = takenIn(scope.outcome);
  for (const move of scope.outcome.turns.flatMap(({ moves }) => moves))
    if (!taken.has(move.toolCall?.operationId ?? "")) checkCall(move, scope);
}

function checkCall({ toolCall, toolResult }: MoveView, scope: Scope): void {
  if (toolCall === undefined || toolCall.client) return;
  const { operationId, name, attempt = 1 } = toolCall;
  const { history, outcome, conversation, fail } = scope;
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
  // A run may last longer than the actor waits for it, so a pause begins with the commit of the failure.
  const starts = history.dispatches.filter(({ operationIds }) => operationIds.includes(operationId));
  failed.forEach(({ seq }, index) => {
    const pause = retry.backoffMs * 2 ** index;
    const from = history.commits.findLast((one) => one.conversation === conversation && one.seq <= seq)?.at;
    // A turn may be stopped in the pause.
    const { at = Number.POSITIVE_INFINITY } = starts[index + 1] ?? {};
    if (from === undefined || at - from < pause)
      fail(
        "tool attempts",
        `${operationId} started ${at - (from ?? 0)} ms after its failure instead of ${pause} ms.`,
      );
  });
}
