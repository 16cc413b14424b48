/** The state of a new run. Pure. */
import type { PartStart } from "../../../protocol/run-call.ts";
import type { RunRecord } from "./record.ts";
import type { RunState } from "./state.ts";
import { initialState } from "./values.ts";

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
