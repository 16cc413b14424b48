/**
 * Hooks: the tasks of a persona that make the request of a cycle and extract memories of a completed turn. A run of a hook is an operation
 * with an id of its own, which the Executor runs. Pure.
 *
 * HOOK-1  A turn without hooks needs no hook state and no additional statement.
 */
import type { ActiveTurn } from "../../../library/hooks/hook-inputs.ts";
import type { PinnedHook } from "../../../protocol/definitions.ts";
import { operationId, type TurnKey } from "../../../protocol/ids.ts";
import type { MemoryScope } from "../../../protocol/memory.ts";
import type { MemorySubject } from "../../../protocol/memory-schemas.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { HOOK_TIMEOUT_MS } from "./conversation-limits.ts";
import type { Operation, TaskReservation } from "./operation.ts";

/** The index of the reply of a hook's operation, which no reply requested. */
export const HOOK_REPLY = -1;

/** A run of a hook. Times are milliseconds since the epoch. */
export interface HookRun extends TaskReservation {
  readonly item: number;
  /** From 1. A run that a crash repeats is the same attempt. */
  readonly attempt: number;
  /** Earliest start of the attempt. */
  readonly notBefore: number;
  /** The actor died under a `once` task: until then its executor may still deliver the result. */
  readonly deadline?: number;
}

export interface Assembly extends HookRun {
  /** The other turns that were active when the cycle began. */
  readonly others: readonly ActiveTurn[];
  /** The call after it is the turn's last. */
  readonly final?: true;
}

/** The user that an extraction learns about, and its sources: as in `ExtractedMemories`. */
export interface Learner {
  readonly scope: MemoryScope;
  readonly subject: MemorySubject;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly used: readonly string[];
  readonly tainted?: true;
}

export interface Extraction extends HookRun {
  readonly stem: string;
  readonly agentId: string;
  readonly startedAt: number;
  /** Absent if the agent has no memory. */
  readonly learner?: Learner;
  /** Crashes of the actor under this run; 0 when absent. */
  readonly recoveries?: number;
  /** The run has failed, and another extraction of the agent has succeeded since then (HOOK-7). */
  readonly again?: true;
}

export interface Extractions {
  /** Running extractions, by the numbers of their turns. */
  readonly running: Readonly<Record<string, Extraction>>;
  /** Consecutive failures, by agent; 0 for absent agents. */
  readonly failures: Readonly<Record<string, number>>;
  /** The runs that failed and begin once more (HOOK-7), by the numbers of their turns. */
  readonly lost?: Readonly<Record<string, Extraction>>;
}

export function runningExtractions({ extraction }: { extraction?: Extractions }): [number, Extraction][] {
  return Object.entries(extraction?.running ?? {}).map(([n, run]) => [Number(n), run]);
}

export function extractionOf(
  { extraction }: { extraction?: Extractions },
  n: number,
): Extraction | undefined {
  return extraction?.running[n];
}

export function hookOperation(turn: TurnKey, hook: PinnedHook, run: HookRun, input: JsonObject): Operation {
  const { library, id, effect, timeoutMs } = hook;
  const { item, attempt, deadline, reserved } = run;
  return {
    item,
    reply: HOOK_REPLY,
    toolCallId: operationId(turn, item),
    name: id,
    tool: { library, id, version: 0 },
    effect,
    target: "code",
    mode: "sync",
    status: deadline === undefined ? "pending" : "interrupted",
    attempt,
    timeoutMs: Math.min(timeoutMs, HOOK_TIMEOUT_MS),
    input,
    ...defined({ reserved }),
  };
}

/** Reports whether a run works, or may have at `now`: an interrupted one may still. */
export function isHookRunning({ reserving, notBefore, deadline }: HookRun, now: number): boolean {
  return reserving === undefined && (deadline !== undefined || notBefore <= now);
}
