/** The signals of a run: events from outside that its decisions take. */
import type { Amounts } from "../../../model/spending.ts";
import type { PartResult, PartStart, Wait } from "../../../protocol/run-call.ts";
import type { TaskSummary } from "../../../protocol/task-summary.ts";
import type { RunError } from "../../../protocol/workflow-run.ts";
import type { Json } from "../../../shared/json.ts";
import type { NodeOutcome } from "./state.ts";

export type RunSignal =
  /** The first signal: the run begins. */
  | { readonly type: "run.begin"; readonly part?: PartStart }
  | { readonly type: "run.advance" }
  /** An attempt of a node has ended. */
  | NodeEnded
  /** The run or the agent of a node begins or ends a wait for a person, or a rest. */
  | RunWaits
  /** A sub-workflow or an agent reports new use. */
  | { readonly type: "run.used"; readonly spent: Amounts }
  /** The run of a part has completed, or reports how far it is. */
  | PartEnded
  | PartProgress
  /** The parent run asks this part to end with its completed branches. */
  | { readonly type: "part.close" }
  /** The actor woke after a crash: its running attempts are lost. */
  | { readonly type: "run.recover" }
  /** A person answers a gate. */
  | GateAnswered
  /** The outbox is full: no token advances in this commit. */
  | { readonly type: "run.outbox_full" }
  /** A deadline may have passed. */
  | { readonly type: "run.expire" }
  | { readonly type: "run.cancel"; readonly reason?: string; readonly by: string }
  /** A person retries a failed run. */
  | RunRetried;

export interface RunRetried {
  readonly type: "run.retry";
  /** The subject that requests the retry. */
  readonly by: string;
  /** The number of the newest entry that the subject has seen. The run must not have advanced since. Not checked if absent. */
  readonly seq?: number;
  /** Allows effects of `once` tasks to happen again. */
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
  readonly transient?: true;
  /** The id of the rule that denied the task while it ran. */
  readonly rule?: string;
  readonly task?: TaskSummary;
  /** It has read untrusted content of a memory (MEMTOOL-6). */
  readonly tainted?: true;
}

/** Returns the error of a node with an envelope that was not delivered, or with an unknown delivery. */
export function undelivered({ status, error: { code, message } }: Undelivered): RunError {
  return { code: status === "unknown" ? "OUTCOME_UNKNOWN" : code, message };
}

interface Undelivered {
  readonly status: "failed" | "unknown";
  readonly error: RunError;
}
