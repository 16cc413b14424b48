/**
 * The time limit of a run. Pure.
 *
 * RUNTIME-1  At its time limit, a run ends as `timed_out` (`fail`) or `cancelled` (`cancel_all`), or a person is asked (`human_gate`). The
 *            run continues during the question. Approval grants the same time again. Rejection ends the run as `timed_out`.
 */
import type { HumanAction } from "../../../protocol/task-definition.ts";
import type { Draft } from "./draft.ts";
import { graphOf } from "./graph.ts";
import { endRun } from "./run-retry.ts";
import { definitionOf, type RunState, type RunTime } from "./state.ts";

/** Token numbers of the run's own gates follow this number: the first question for more time has the next number. */
const RUN_GATES = 4_000_000;

/** The question of that gate. */
export const OVERTIME: HumanAction = {
  kind: "human.approve",
  prompt:
    "The time limit of this run has passed. Approve to give the run the same time again. Otherwise it ends.",
};

/** Returns when the time of a run is over, in milliseconds since the epoch; `null` without a limit, or while a person is asked. */
export function runDueAt(state: Pick<RunState, "record" | "time">): number | null {
  const { timeoutMs } = definitionOf(state);
  const { time, record } = state;
  // The parent run enforces the time limit of its parts (RUNPART-3).
  if (timeoutMs === undefined || time?.isAsked === true || record.part !== undefined) return null;
  return (time?.since ?? record.createdAt) + timeoutMs;
}

/** Returns the number of the open question for more time, if any. */
export function openGate({ time }: { time?: RunTime | undefined }): number | undefined {
  return time?.isAsked === true ? RUN_GATES + time.asked : undefined;
}

/** Reports whether a number belongs to a question of the run for more time. */
export function wasAsked({ time }: Pick<RunState, "time">, gate: number): boolean {
  return gate > RUN_GATES && gate <= RUN_GATES + (time?.asked ?? 0);
}

/** Reacts to the end of a run's time, if it is over. */
export function checkTime(draft: Draft): void {
  const due = runDueAt({ record: draft.before.record, ...(draft.time && { time: draft.time }) });
  if (due === null || due > draft.now) return;
  const { onTimeout = "human_gate", timeoutMs } = graphOf(definitionOf(draft.before)).definition;
  if (onTimeout === "human_gate") {
    draft.time = { ...draft.time, asked: (draft.time?.asked ?? 0) + 1, isAsked: true, askedAt: draft.now };
    draft.note({ type: "gate.opened", data: { prompt: OVERTIME.prompt, deadline: null } });
    return;
  }
  draft.error = { code: "TIMEOUT", message: `The run did not end within ${timeoutMs} ms.` };
  endRun(draft, onTimeout === "fail" ? "timed_out" : "cancelled");
}

/** Applies the answer to a question for more time. */
export function answerOvertime(draft: Draft, isApproved: boolean): void {
  if (isApproved) {
    draft.time = { asked: draft.time?.asked ?? 0, since: draft.now };
    return;
  }
  draft.error = {
    code: "TIMEOUT",
    message: "The run exceeded its time limit, and its extension was not approved.",
  };
  endRun(draft, "timed_out");
}
