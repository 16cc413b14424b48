/** The head of a run: what its every commit may change. Names are short, because each row of the journal has one. Pure. */
import type { RunError, RunStatus } from "../../../protocol/workflow-run.ts";
import { defined } from "../../../shared/defined.ts";
import type { RunState, RunTime } from "./state.ts";

export interface Head {
  /** Status; `running` when absent. */
  s?: RunStatus;
  /** Tokens that were made. */
  t: number;
  /** Fan-outs that were made; none when absent. */
  f?: number;
  error?: RunError;
  time?: RunTime;
  /** Recoveries; none when absent. */
  r?: number;
}

export function headOf({ status, made, error, time, recoveries }: RunState): Head {
  return {
    ...defined({
      s: status === "running" ? undefined : status,
      f: made.fanOuts || undefined,
      error,
      time,
      r: recoveries || undefined,
    }),
    t: made.tokens,
  };
}
