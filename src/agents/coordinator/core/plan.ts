/**
 * The decisions of a run: applies signals to its state. Pure.
 *
 * RUNSIGNAL-1  A signal changes the run only if the run is open, its token has not ended, and its attempt is the current attempt.
 * RUNSIGNAL-3  After a crash, work that may run twice begins again, as the same operation. The outcome of a `once` task is unknown unless
 *              its result comes within `LOST_RESULT_MS`. Without a result it fails with `OUTCOME_UNKNOWN`, which the graph may handle.
 * RUNSIGNAL-4  A run that is interrupted more than `MAX_RECOVERIES` times before the next node ends fails with `RECOVERY_EXHAUSTED`. If a
 *              run only waits, for outbox room or a share too, its wake is no interruption.
 * RUNSIGNAL-6  From the second interruption on, interrupted tasks pause before they begin again: 250 ms, doubled up to a minute. A burst of
 *              crashes, which other work in the process may cause, therefore cannot exhaust the interruptions of a run.
 * RUNSIGNAL-5  If the outbox is full, the end of a node is still stored. The run continues later.
 */
import { addAmounts } from "../../../model/spending.ts";
import type { PartStart } from "../../../protocol/run-call.ts";
import type { RunError } from "../../../protocol/workflow-run.ts";
import { backoffMs } from "../../../shared/backoff.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { advance } from "./advance.ts";
import { Draft, type RunChange } from "./draft.ts";
import { closePart, takeProgress, timeOut, timeOutAt } from "./fan-in.ts";
import { answerGate, closeGates } from "./gates.ts";
import { takeWait } from "./holds.ts";
import type { OutboxRoom } from "./outbox-reservation.ts";
import { takePart } from "./part-results.ts";
import { beginPart } from "./part-run.ts";
import type { RunRecord } from "./record.ts";
import { LOST_RESULT_MS, MAX_RECOVERIES, MAX_RESUME_PAUSE_MS, RESUME_PAUSE_MS } from "./run-limits.ts";
import { endRun, retryRun } from "./run-retry.ts";
import { checkTime } from "./run-time.ts";
import type { RunSignal } from "./signals.ts";
import { isOver, type RunState, resolved, type Token } from "./state.ts";
import { endNode } from "./token.ts";
import { pendingIn } from "./tree-share.ts";
import { reportedBy } from "./usage.ts";
import { initialState } from "./values.ts";
import { workOf } from "./work.ts";

/**
 * Applies signals in their order. Returns the change, or `null` if the run is unchanged. `outboxRoom` returns the outbox room for new work.
 * Throws the errors of `answerGate` and `retryRun`. Throws `QUEUE_OVERFLOW` if a wake could only advance tokens with more room; the caller
 * retries it later.
 */
export function plan(
  state: RunState,
  signals: readonly RunSignal[],
  now: number,
  outboxRoom?: () => OutboxRoom,
): RunChange | null {
  if (isOver(state) && !signals.some(({ type }) => type === "run.retry")) return null;
  const draft = new Draft(state, now, outboxRoom);
  draft.spent = addAmounts(draft.spent, reportedBy(state, signals));
  const isOutboxFull = signals.some(({ type }) => type === "run.outbox_full");
  for (const signal of signals) {
    if (isOver(draft) && signal.type !== "run.retry") continue;
    apply(draft, signal);
    // The same step may crash the actor again, so a commit stores the recovery before tokens advance.
    if (!isOver(draft) && !isOutboxFull && signal.type !== "run.recover") advance(draft);
  }
  const change = draft.finish();
  if (change === null && draft.outbox.isFull && signals.every(({ type }) => type === "run.expire"))
    throw new DramatisError("QUEUE_OVERFLOW", "The outbox is full. The run resumes after delivery.", {
      retriable: true,
    });
  return change;
}

type Signals = { readonly [Type in RunSignal["type"]]: Extract<RunSignal, { type: Type }> };

const APPLY: { readonly [Type in keyof Signals]: (draft: Draft, signal: Signals[Type]) => void } = {
  "run.begin": begin,
  "run.advance": () => undefined,
  "run.outbox_full": () => undefined,
  "run.used": () => undefined,
  "run.waits": takeWait,
  "node.ended": endNode,
  "part.progress": takeProgress,
  "part.ended": takePart,
  "part.close": closePart,
  "gate.answered": answerGate,
  "run.recover": recover,
  "run.expire": expire,
  "run.retry": retryRun,
  "run.cancel": cancel,
};

function apply(draft: Draft, signal: RunSignal): void {
  // SAFETY: the type of a signal names the function for it.
  const take = APPLY[signal.type] as (draft: Draft, signal: RunSignal) => void;
  take(draft, signal);
}

/**
 * Returns the state of a run before its first token, which `run.begin` makes. Its journal has one entry. A run that has a part of a fan-out
 * begins with the areas of `part`.
 */
export function newRun(record: RunRecord, part?: Pick<PartStart, "state" | "output">): RunState {
  return {
    record,
    status: "running",
    seq: 1,
    made: { tokens: 0, fanOuts: 0 },
    state: part?.state ?? initialState(record.workflow.definition),
    root: { active: 0, output: part?.output ?? {} },
    tokens: new Map(),
    fanOuts: new Map(),
  };
}

function begin(draft: Draft, { part }: Signals["run.begin"]): void {
  if (draft.before.made.tokens > 0) return;
  if (part !== undefined) {
    beginPart(draft, part);
    return;
  }
  const { initialNode } = draft.graph.definition;
  draft.create({ node: initialNode, scope: null, counts: {}, items: {}, fanIn: null });
}

function cancel(draft: Draft, { reason, by }: Signals["run.cancel"]): void {
  draft.error = { code: "CANCELLED", message: reason ?? "The run was cancelled." };
  endRun(draft, "cancelled", by);
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
  for (const token of [...draft.tokens.values()]) {
    const { id, phase } = token;
    if (phase.kind !== "working" || phase.lostUntil === undefined || phase.lostUntil > draft.now) continue;
    const { attempt } = phase;
    draft.change(id, { phase: resolved(phase, { error: OUTCOME_UNKNOWN }) });
    draft.noteOf(token, "task.failed", { attempt, error: { ...OUTCOME_UNKNOWN } });
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
  const pause = backoffMs(draft.recoveries - 1, RESUME_PAUSE_MS, MAX_RESUME_PAUSE_MS);
  for (const token of interrupted) {
    const { id, phase } = token;
    const work = workOf(draft.before.record, token);
    if (phase.kind !== "working" || work?.kind !== "task") continue;
    if (work.task.effect !== "once") {
      if (pause > 0) draft.change(id, { phase: { ...phase, notBefore: draft.now + pause } });
      continue;
    }
    draft.change(id, { phase: { ...phase, lostUntil: draft.now + LOST_RESULT_MS } });
    draft.noteOf(token, "task.lost", { attempt: phase.attempt });
  }
}

/** Reports whether the task of a token ran when the actor crashed. */
function hasBegun(draft: Draft, token: Token): boolean {
  const { phase } = token;
  if (phase.kind !== "working" || phase.lostUntil !== undefined) return false;
  return workOf(draft.before.record, token)?.kind === "task" && (phase.notBefore ?? 0) <= draft.now;
}

export const OUTCOME_UNKNOWN: RunError = {
  code: "OUTCOME_UNKNOWN",
  message: "The task was lost while it ran, and may have taken effect.",
};
