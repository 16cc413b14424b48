/**
 * The time limit of a run. Pure.
 *
 * RUNTIME-1  At the end of its time, a run ends as `timed_out` (`fail`), or as `cancelled` (`cancel_all`), or a person is asked
 *            (`human_gate`). Meanwhile it goes on. A person who approves gives it the same time once more; otherwise it ends as `timed_out`.
 */
import type { HumanAction } from "../../../protocol/task-definition.ts";
import type { Draft } from "./draft.ts";
import { endRun } from "./end.ts";
import { graphOf } from "./graph.ts";
import { definitionOf, type RunState, type RunTime } from "./state.ts";

/** The number of the first gate of the run itself, in the place of a token's. Each question for more time has the next one. */
const RUN_GATES = 4_000_000;

/** The question of that gate. */
export const OVERTIME: HumanAction = {
  kind: "human.approve",
  prompt: "The time of this run is over. Approve to give it the same time once more; otherwise it ends.",
};

/** Returns when the time of a run is over, in milliseconds since the epoch; `null` where it has no limit, or a person was asked. */
export function runDueAt(state: Pick<RunState, "record" | "time">): number | null {
  const { timeoutMs } = definitionOf(state);
  const { time, record } = state;
  // The run above keeps the time of its parts (OWNPART-3).
  if (timeoutMs === undefined || time?.isAsked === true || record.part !== undefined) return null;
  return (time?.since ?? record.createdAt) + timeoutMs;
}

/** Returns the number of the question for more time that waits for an answer; `undefined` where none does. */
export function openGate({ time }: { time?: RunTime | undefined }): number | undefined {
  return time?.isAsked === true ? RUN_GATES + time.asked : undefined;
}

/** Reports whether a number is that of a question that the run has asked. */
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

/** Takes the answer to the question whether a run may go on. */
export function answerOvertime(draft: Draft, isApproved: boolean): void {
  if (isApproved) {
    draft.time = { asked: draft.time?.asked ?? 0, since: draft.now };
    return;
  }
  draft.error = { code: "TIMEOUT", message: "The time of the run was over, and nobody wanted it to go on." };
  endRun(draft, "timed_out");
}
