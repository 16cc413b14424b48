/** The state of a run: its tokens, its open fan-outs, and the areas that nodes read and write. */
import type { Amounts } from "../../../model/spending.ts";
import type { RunPart, Wait } from "../../../protocol/run-call.ts";
import type { WorkflowDefinition, WorkflowSynchronization } from "../../../protocol/workflow-definition.ts";
import type { RunError, RunStatus } from "../../../protocol/workflow-run.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import type { RunRecord } from "./record.ts";

/** An immutable run, as of one commit. */
export interface RunState {
  readonly record: RunRecord;
  readonly status: RunStatus;
  /** The number of the newest journal entry. */
  readonly seq: number;
  /** Tokens and fan-outs made so far, which is also the number of the next token or fan-out. */
  readonly made: { readonly tokens: number; readonly fanOuts: number };
  readonly state: JsonObject;
  /** The scope of tokens outside branches. */
  readonly root: Scope;
  /** Open tokens, by number. Tokens that arrived at a fan-in are listed in their branch. */
  readonly tokens: ReadonlyMap<number, Token>;
  /** Open fan-outs, by number. */
  readonly fanOuts: ReadonlyMap<number, FanOut>;
  /** Absent if empty. */
  readonly stopped?: StoppedWork;
  /** Crashes that interrupted work since a node last ended; 0 if absent. */
  readonly recoveries?: number;
  /** Retries of the run, and the time of the newest one in milliseconds since the epoch; absent before the first. */
  readonly retried?: { readonly retries: number; readonly from: number };
  /** Extensions and questions of the time limit; absent before the first. */
  readonly time?: RunTime;
  /** The use of the run, including its sub-workflows and agents; zero if absent. */
  readonly spent?: Amounts;
  /** A task of the run, or of a run below it, has read untrusted content of a memory (MEMTOOL-6). */
  readonly tainted?: true;
  /** Present once the run failed, was cancelled, or its time was over. */
  readonly error?: RunError;
  /** The output of the run. Present once it completed. */
  readonly output?: JsonObject;
}

/** The tokens and fan-outs stopped by failures, unchanged, by number. A retry continues them (RUNRETRY-1). */
export interface StoppedWork {
  readonly tokens: ReadonlyMap<number, Token>;
  /** Fan-outs with no active branch. */
  readonly fanOuts: ReadonlyMap<number, FanOut>;
}

/** Extensions and questions of the time limit of a run. */
export interface RunTime {
  /** The beginning of its newest extension, in milliseconds since the epoch. */
  readonly since?: number;
  /** Questions for more time so far. */
  readonly asked: number;
  /** The last question has no answer yet. */
  readonly isAsked?: true;
  /** The time of the last question, in milliseconds since the epoch. */
  readonly askedAt?: number;
}

/** Tokens of one branch, or of no branch. */
export interface Scope {
  /** Tokens that have not ended, and fan-outs that are open. */
  readonly active: number;
  /** The area `output`: the values that nodes of this scope have written. */
  readonly output: Json;
}

export interface Branch extends Scope {
  /** The numbers of its tokens that wait at the fan-in. */
  readonly arrived: readonly number[];
  readonly failure?: RunError;
  /** Progress of a part of a spread fan-out; absent in other branches and before the first report. */
  readonly tally?: PartTally;
}

export interface Spread {
  readonly total: number;
  /** Branches in each part. The last part may have fewer. */
  readonly size: number;
  /** Iterations of transitions on the way of the token that started it. */
  readonly base: Readonly<Record<string, number>>;
  /** Present while running parts must end. The fan-in is then decided, and further parts do not begin. */
  readonly closing?: Closing;
}

/** The wait for the end of the parts of a fan-out that run. */
export interface Closing {
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** True if the fan-in has timed out and continues with the completed branches. */
  readonly isTimeout: boolean;
}

export interface PartTally {
  readonly completed: number;
  readonly failed: number;
  /** Length of the result as JSON; absent before the part has ended. */
  readonly length?: number;
}

/** The place of a scope: `null` for the run, otherwise a branch of a fan-out. */
export type ScopeKey = { readonly fanOut: number; readonly branch: number } | null;

export interface FanOut {
  readonly id: number;
  readonly group: string;
  /** The `ref` of the node that starts it. */
  readonly origin: string;
  readonly outer: ScopeKey;
  /** The path of the token that starts it. */
  readonly path: string;
  readonly branches: readonly Branch[];
  /** Finished branches, including failed branches. */
  readonly finished: number;
  readonly failed: number;
  readonly counts: Counts;
  /** Milliseconds since the epoch; absent before the first arrival. */
  readonly firstArrivalAt?: number;
  /** Its branches are spread over runs of their own: then `branches` has the parts. */
  readonly spread?: Spread;
  /** It has a part of the branches of a fan-out of the parent run. */
  readonly part?: Pick<RunPart, "first" | "total">;
}

export interface Meeting {
  readonly target: string;
  /** The `ref` of the transition into the fan-in. */
  readonly transition: string;
  readonly synchronization: WorkflowSynchronization;
}

/** Iterations of each transition on a token's path. */
export type Counts = Readonly<Record<string, number>>;

/** A pointer of execution at a node. */
export interface Token {
  readonly id: number;
  /** The `ref` of its node. */
  readonly node: string;
  readonly scope: ScopeKey;
  readonly counts: Counts;
  /** Items of a `foreach`, by name. */
  readonly items: JsonObject;
  /** The branches joined by the fan-in before this token; `null` without a fan-in. */
  readonly fanIn: Json;
  readonly phase: Phase;
  /** Milliseconds since the epoch: when it was made, last retried, or its agent was asked. */
  readonly createdAt: number;
  /** A run of its own has the branches of a part. */
  readonly part?: true;
  /** Present after a retry. */
  readonly again?: Again;
}

/** The work of a token before its newest retry. */
export interface Again {
  /** Attempts before the retry. Later attempts continue the numbering. */
  readonly attempts: number;
  /** Operations before the retry, for a `once` task or a gate. The retry begins another operation. */
  readonly operations: number;
}

export type Phase =
  /** The node has not begun. After a retry it has its earlier input. */
  | { readonly kind: "ready"; readonly input?: JsonObject }
  /** The task, the sub-workflow or the agent of the node runs. */
  | Working
  /** The node has ended. Its transitions come next. */
  | Resolved;

export interface Working {
  readonly kind: "working";
  readonly input: JsonObject;
  /** From 1. */
  readonly attempt: number;
  /** The earliest start of the attempt, in milliseconds since the epoch; absent if it may begin at once. */
  readonly notBefore?: number;
  /**
   * Set if a crash of the actor lost the attempt, which may have taken effect. Its result may still come until this time, in milliseconds
   * since the epoch.
   */
  readonly lostUntil?: number;
  /** The share of the run that the token has started (TREESHARE-1). Absent for other work. */
  readonly share?: number;
  /** The question of a gate, as a person sees it. */
  readonly prompt?: string;
  /** The deadline for an answer, in milliseconds since the epoch; absent without a deadline. */
  readonly deadline?: number;
  /** The newest message of the run or the agent about its wait; absent before the first. */
  readonly wait?: Readonly<Wait>;
}

export type WorkingToken = Token & { readonly phase: Working };

export interface Resolved extends Pick<Working, "input" | "attempt"> {
  readonly kind: "resolved";
  readonly outcome: NodeOutcome;
}

export function resolved({ input, attempt }: Working, outcome: NodeOutcome): Resolved {
  return { kind: "resolved", outcome, input, attempt };
}

export type NodeOutcome = { readonly output: Json } | { readonly error: RunError };

export function isOver({ status }: Pick<RunState, "status">): boolean {
  return status !== "running" && status !== "waiting";
}

export function definitionOf({ record }: Pick<RunState, "record">): WorkflowDefinition {
  return record.workflow.definition;
}

/** Returns the first index of a part, and the number of its branches. */
export function placeOf({ total, size }: Spread, part: number): { first: number; size: number } {
  const first = part * size;
  return { first, size: Math.min(size, total - first) };
}

/** Returns the path of the tokens of a branch, and its group and index. A part of a spread fan-out has the indexes of its branches in its path. */
export function branchPlace(
  { path, origin, branches, group, part, spread }: FanOut,
  index: number,
): { path: string; group: string; branch: number } {
  if (spread !== undefined) {
    const { first, size } = placeOf(spread, index);
    return { path: `${path}.${origin}.${first}-${first + size - 1}`, group, branch: first };
  }
  const branch = (part?.first ?? 0) + index;
  const own = (part?.total ?? branches.length) > 1 ? `${path}.${origin}.${branch}` : path;
  return { path: own, group, branch };
}
