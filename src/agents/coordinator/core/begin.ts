/** The state of a new run. Pure. */
import type { RunRecord } from "./record.ts";
import type { RunState } from "./state.ts";
import { initialState } from "./values.ts";

/** Returns the state of a run before its first token, which `run.begin` makes. Its journal has one entry. */
export function newRun(record: RunRecord): RunState {
  return {
    record,
    status: "running",
    seq: 1,
    made: { tokens: 0, fanOuts: 0 },
    state: initialState(record.workflow.definition),
    root: { active: 0, output: {} },
    tokens: new Map(),
    fanOuts: new Map(),
  };
}
