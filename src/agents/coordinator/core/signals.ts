/** The signals of a run: events from outside that its decisions take. */
import type { Amounts } from "../../../model/spending.ts";
import type { PartResult, PartStart, Wait } from "../../../protocol/run-call.ts";
import type { TaskSummary } from "../../../protocol/task-summary.ts";
import type { RunError } from "../../../protocol/workflow-run.ts";
import type { Json } from "../../../shared/json.ts";
import type { NodeOutcome } from "./state.ts";

export type RunSignal =
  /** The run begins: the first one. */
  | { readonly type: "run.begin"; readonly part?: PartStart }
  /** Tokens can go on. */
  | { readonly type: "run.advance" }
  /** An attempt of a node's work has ended. */
  | NodeEnded
  /** The run or the agent of a node begins or ends a wait for a person, or a rest. */
  | RunWaits
  /** A sub-workflow or an agent reports what it has used, and has not reported before. */
  | { readonly type: "run.used"; readonly spent: Amounts }
  /** The run of a part has completed, or reports how far it is. */
  | PartEnded
  | PartProgress
  /** The run above wants what the branches of this part have completed. */
  | { readonly type: "part.close" }
  /** The actor woke: the attempts that ran are lost. */
  | { readonly type: "run.recover" }
  /** A person answers a gate. */
  | GateAnswered
  /** The outbox has no room: tokens do not go on in this commit. */
  | { readonly type: "run.hold" }
  /** Something may be due. */
  | { readonly type: "run.expire" }
  | { readonly type: "run.cancel"; readonly reason?: string; readonly by: string }
  /** A person lets a failed run go on. */
  | RunRetried;

export interface RunRetried {
  readonly type: "run.retry";
  /** The subject that asks for it. */
  readonly by: string;
  /** The number of the newest entry that the subject has seen. The run must not have gone on since. Not checked when absent. */
  readonly seq?: number;
  /** Effects of `once` tasks that may have happened may happen again. */
  readonly repeatOnce?: boolean;
}

export interface RunWaits {
  readonly type: "run.waits";
  readonly token: number;
  readonly attempt: number;
  readonly wait: Readonly<Wait>;
}

export interface PartEnded {
  readonly type: "part.ended";
  readonly token: number;
  readonly attempt: number;
  readonly result: PartResult;
  /** As of `node.ended`. */
  readonly tainted?: true;
}

export interface PartProgress {
  readonly type: "part.progress";
  readonly token: number;
  readonly attempt: number;
  readonly completed: number;
  readonly failed: number;
  /** Milliseconds since the epoch. */
  readonly firstArrivalAt?: number;
}

export interface GateAnswered {
  readonly type: "gate.answered";
  readonly token: number;
  readonly answer: Json;
  /** The subject that answers. */
  readonly by: string;
}

export interface NodeEnded {
  readonly type: "node.ended";
  readonly token: number;
  readonly attempt: number;
  readonly outcome: NodeOutcome;
  /** The attempt failed for a reason that may pass. */
  readonly transient?: true;
  readonly task?: TaskSummary;
  /** It has read untrusted content of a memory (MEMTOOL-6). */
  readonly tainted?: true;
}

/** Returns the error of a node whose envelope was not delivered, or of which nobody knows whether it was. */
export function undelivered({ status, error: { code, message } }: Undelivered): RunError {
  return { code: status === "unknown" ? "OUTCOME_UNKNOWN" : code, message };
}

interface Undelivered {
  readonly status: "failed" | "unknown";
  readonly error: RunError;
}
