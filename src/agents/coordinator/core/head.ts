/** The head of a run: the members that any commit may change. Names are short, because each row of the journal has a head. Pure. */
import type { Amounts } from "../../../model/spending.ts";
import type { RunError, RunStatus } from "../../../protocol/workflow-run.ts";
import { defined } from "../../../shared/defined.ts";
import type { RunState, RunTime } from "./state.ts";

export interface Head {
  /** Status; `running` when absent. */
  s?: RunStatus;
  /** Tokens made so far. */
  t: number;
  /** Fan-outs made so far; 0 if absent. */
  f?: number;
  error?: RunError;
  time?: RunTime;
  /** Recoveries; 0 if absent. */
  r?: number;
  /** Retries, and the time of the newest retry; absent before the first. */
  n?: [retries: number, from: number];
  /** Tokens, billionths of a dollar, model calls and tool calls; zero if absent. */
  u?: [tokens: number, nanoDollars: number, modelCalls: number, toolCalls: number];
  m?: true;
}

export function headOf({ status, made, error, time, recoveries, retried, spent, tainted }: RunState): Head {
  return {
    ...defined({
      s: status === "running" ? undefined : status,
      f: made.fanOuts || undefined,
      error,
      time,
      r: recoveries || undefined,
      n: retried && [retried.retries, retried.from],
      u: spent && [spent.tokens, spent.nanoDollars, spent.modelCalls, spent.toolCalls],
      m: tainted,
    }),
    t: made.tokens,
  };
}

/** Returns the use of a run from its head; `undefined` if it is zero. */
export function spentIn({ u }: Pick<Head, "u">): Amounts | undefined {
  if (u === undefined) return undefined;
  const [tokens, nanoDollars, modelCalls, toolCalls] = u;
  return { tokens, nanoDollars, modelCalls, toolCalls };
}
