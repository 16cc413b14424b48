/**
 * The decisions of a run: applies signals to its state. Pure.
 *
 * RUNSIGNAL-1  A signal changes the run only if the run is open, its token has not ended, and its attempt is the current attempt.
 * RUNSIGNAL-3  After a crash, work that may run twice begins again, as the same operation. The outcome of a `once` task is unknown unless
 *              its result comes within `LOST_RESULT_MS`. Without a result it fails with `OUTCOME_UNKNOWN`, which the graph may handle.
 * RUNSIGNAL-4  A run that is interrupted more than `MAX_RECOVERIES` times before the next node ends fails with `RECOVERY_EXHAUSTED`. If a
 *              run only waits, for room too, its wake is no interruption.
 * RUNSIGNAL-6  From the second interruption on, interrupted tasks pause before they begin again: 250 ms, doubled up to a minute. A burst of
 *              crashes, which other work in the process may cause, therefore cannot exhaust the interruptions of a run.
 * RUNSIGNAL-5  If the outbox is full, the end of a node is still stored. The run continues later.
 * RUNSIGNAL-2  After a transient failure, another attempt follows, as the policy of the task says. A `once` task has no further attempt.
 */
import { nextAttemptAt } from "../../../library/tools/retry.ts";
import { addAmounts } from "../../../model/spending.ts";
import type { PartStart } from "../../../protocol/run-call.ts";
import type { RunError } from "../../../protocol/workflow-run.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { advance } from "./advance.ts";
import { Draft, type RunChange } from "./draft.ts";
import { endRun } from "./end.ts";
import { closePart, consider, timeOut, timeOutAt } from "./fan-in.ts";
import { takePart, takeProgress } from "./fan-out-parts.ts";
import { answerGate, closeGates } from "./gates.ts";
import { takeWait } from "./holds.ts";
import { beginPart } from "./own-part.ts";
import { LOST_RESULT_MS, MAX_RECOVERIES, MAX_RESUME_PAUSE_MS, RESUME_PAUSE_MS } from "./run-limits.ts";
import { retryRun } from "./run-retry.ts";
import { checkTime } from "./run-time.ts";
import type { NodeEnded, PartEnded, PartProgress, RunSignal } from "./signals.ts";
import type { Room } from "./start-room.ts";
import { isOver, type RunState, resolved, type Token } from "./state.ts";
import { pendingIn } from "./tree-room.ts";
import { reportedBy } from "./usage.ts";
import { workOf } from "./work.ts";

/**
 * Applies signals in their order. Returns the change, or `null` if the run is unchanged. `room` returns the outbox room for new work.
 * Throws the errors of `answerGate` and `retryRun`. Throws `QUEUE_OVERFLOW` if a wake could only advance tokens with more room; the caller
 * retries it later.
 */
export function plan(
  state: RunState,
  signals: readonly RunSignal[],
  now: number,
  room?: () => Room,
): RunChange | null {
  if (isOver(state) && !signals.some(({ type }) => type === "run.retry")) return null;
  const draft = new Draft(state, now, room);
  draft.spent = addAmounts(draft.spent, reportedBy(state, signals));
  const isHeld = signals.some(({ type }) => type === "run.hold");
  for (const signal of signals) {
    if (isOver(draft) && signal.type !== "run.retry") continue;
    apply(draft, signal);
    // The same step may crash the actor again, so a commit stores the recovery before tokens advance.
    if (!isOver(draft) && !isHeld && signal.type !== "run.recover") advance(draft);
  }
  const change = draft.finish();
  if (change === null && draft.room.isFull && signals.every(({ type }) => type === "run.expire"))
    throw new DramatisError("QUEUE_OVERFLOW", "The outbox is full. The run resumes after delivery.", {
      retriable: true,
    });
  return change;
}

function apply(draft: Draft, signal: RunSignal): void {
  switch (signal.type) {
    case "run.begin":
      begin(draft, signal.part);
      break;
    case "part.ended":
    case "part.progress":
      report(draft, signal);
      break;
    case "part.close":
      closePart(draft);
      break;
    case "run.waits":
      takeWait(draft, signal);
      break;
    case "run.advance":
    case "run.hold":
    case "run.used":
      break;
    case "node.ended":
      endNode(draft, signal);
      break;
    case "gate.answered":
      answerGate(draft, signal);
      break;
    case "run.recover":
      recover(draft);
      break;
    case "run.expire":
      expire(draft);
      break;
    case "run.retry":
      retryRun(draft, signal);
      break;
    case "run.cancel":
      draft.error = { code: "CANCELLED", message: signal.reason ?? "The run was cancelled." };
      endRun(draft, "cancelled", signal.by);
      break;
    default:
      signal satisfies never;
  }
}

function begin(draft: Draft, part?: PartStart): void {
  if (draft.before.made.tokens > 0) return;
  if (part !== undefined) {
    beginPart(draft, part);
    return;
  }
  const { initialNode } = draft.graph.definition;
  draft.create({ node: initialNode, scope: null, counts: {}, items: {}, fanIn: null });
}

function report(draft: Draft, signal: PartEnded | PartProgress): void {
  const token = draft.tokens.get(signal.token);
  if (token?.part !== true || token.phase.kind !== "working" || token.phase.attempt !== signal.attempt)
    return;
  draft.recoveries = 0;
  if (signal.type === "part.ended") {
    draft.tainted ??= signal.tainted;
    takePart(draft, token, signal.result);
  } else {
    takeProgress(draft, token, signal);
    if (token.scope !== null) consider(draft, token.scope.fanOut);
  }
}

function endNode(draft: Draft, { token: id, attempt, outcome, transient, task, tainted }: NodeEnded): void {
  const token = draft.tokens.get(id);
  const phase = token?.phase;
  if (token === undefined || phase?.kind !== "working" || phase.attempt !== attempt) return;
  const { node } = token;
  draft.tainted ??= tainted;
  // The end of a part has its own signal, with its result.
  if (token.part === true && "output" in outcome) return;
  draft.recoveries = 0;
  if ("error" in outcome && transient === true) {
    const work = workOf(draft.before.record, token);
    const own = attempt - (token.again?.attempts ?? 0);
    const notBefore =
      work?.kind === "task"
        ? nextAttemptAt(work.task.retry, { effect: work.task.effect, attempt: own }, draft.now)
        : undefined;
    if (notBefore !== undefined) {
      draft.change(id, { phase: { ...phase, attempt: attempt + 1, notBefore } });
      draft.note({ type: "task.retried", token: id, node, data: { attempt, error: { ...outcome.error } } });
      return;
    }
  }
  draft.change(id, { phase: resolved(phase, outcome) });
  const summary = task === undefined ? {} : { task: structuredClone(task) as never };
  draft.note(
    "error" in outcome
      ? { type: "task.failed", token: id, node, data: { attempt, error: { ...outcome.error }, ...summary } }
      : { type: "task.completed", token: id, node, data: { attempt, output: outcome.output, ...summary } },
  );
}

function expire(draft: Draft): void {
  checkTime(draft);
  if (isOver(draft)) return;
  for (const fanOut of [...draft.fanOuts.values()]) {
    if (!draft.fanOuts.has(fanOut.id)) continue;
    const due = timeOutAt(fanOut, draft.graph.meeting(fanOut.origin, fanOut.group));
    if (due !== null && due <= draft.now) timeOut(draft, fanOut.id);
  }
  closeGates(draft);
  for (const { id, node, phase } of [...draft.tokens.values()]) {
    if (phase.kind !== "working" || phase.lostUntil === undefined || phase.lostUntil > draft.now) continue;
    const { attempt } = phase;
    draft.change(id, { phase: resolved(phase, { error: OUTCOME_UNKNOWN }) });
    draft.note({ type: "task.failed", token: id, node, data: { attempt, error: { ...OUTCOME_UNKNOWN } } });
  }
}

/** Treats the work that ran before the crash as lost. Work that may run twice begins again. */
function recover(draft: Draft): void {
  const tokens = [...draft.tokens.values()];
  const interrupted = tokens.filter((token) => hasBegun(draft, token));
  if (interrupted.length === 0 && !tokens.some(pendingIn(draft.before))) return;
  draft.recoveries += 1;
  draft.note({ type: "workflow.recovered", data: { recoveries: draft.recoveries } });
  if (draft.recoveries > MAX_RECOVERIES) {
    draft.error = {
      code: "RECOVERY_EXHAUSTED",
      message: `The run was interrupted ${draft.recoveries} times while no node ended.`,
    };
    endRun(draft, "failed");
    return;
  }
  const crashes = draft.recoveries;
  const pause = crashes === 1 ? 0 : Math.min(RESUME_PAUSE_MS * 2 ** (crashes - 2), MAX_RESUME_PAUSE_MS);
  for (const token of interrupted) {
    const { id, node, phase } = token;
    const work = workOf(draft.before.record, token);
    if (phase.kind !== "working" || work?.kind !== "task") continue;
    if (work.task.effect !== "once") {
      if (pause > 0) draft.change(id, { phase: { ...phase, notBefore: draft.now + pause } });
      continue;
    }
    draft.change(id, { phase: { ...phase, lostUntil: draft.now + LOST_RESULT_MS } });
    draft.note({ type: "task.lost", token: id, node, data: { attempt: phase.attempt } });
  }
}

/** Reports whether the task of a token ran when the actor crashed. */
function hasBegun(draft: Draft, token: Token): boolean {
  const { phase } = token;
  if (phase.kind !== "working" || phase.lostUntil !== undefined) return false;
  return workOf(draft.before.record, token)?.kind === "task" && (phase.notBefore ?? 0) <= draft.now;
}

/** The error of a task with an unknown outcome. */
export const OUTCOME_UNKNOWN: RunError = {
  code: "OUTCOME_UNKNOWN",
  message: "The task was lost while it ran, and may have taken effect.",
};
