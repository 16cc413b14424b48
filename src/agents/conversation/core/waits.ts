/**
 * The wait of an active turn. The queue, the status of the conversation, leases, further cycles and client frames use it. Pure.
 *
 * WAIT-1  An active turn has one wait at a time. If several results are missing, the first kind in `RESULT_WAITS` counts. A turn that runs
 *         its own tool therefore works, even if other results are missing. The call of an agent or a run counts as a wait for a person
 *         while the callee, or work below it, waits for a person.
 * WAIT-2  A turn announces a wait for a person, for its client or for handles once, when it begins, even if another result was missing
 *         before.
 */
import type { Operation, OperationTarget } from "./operation.ts";
import type { Turn } from "./turn.ts";
import { blockingOperations, dueOperations } from "./turn-operations.ts";

/**
 * The missing result of an operation. It comes from a tool that runs, from an agent or a run, after a person's approval, from the client, or by a
 * handle.
 */
export type ResultWait = (typeof RESULT_WAITS)[number];

/** In the order of WAIT-1. */
const RESULT_WAITS = ["tools", "agents", "person", "client", "handle"] as const;

/**
 * `queue`: for earlier turns. `model`: for a model call, or for the hook before it. `cycle`: for other turns to let its next cycle
 * begin. `background`: for results of background operations only.
 */
export type Wait = "queue" | "model" | ResultWait | "cycle" | "background";

export function waitOf(turn: Turn): Wait {
  if (turn.queued) return "queue";
  if (turn.call !== null || turn.assembly !== undefined) return "model";
  const missing = waitForResults(blockingOperations(turn));
  if (missing !== null) return missing;
  if (turn.waiting === undefined) return "model";
  return dueOperations(turn).length > 0 ? "cycle" : "background";
}

/** Returns the wait for the results of open operations (WAIT-1); `null` without open operations. */
export function waitForResults(open: readonly WaitingOperation[]): ResultWait | null {
  const waits = new Set(open.map(waitForResult));
  return RESULT_WAITS.find((wait) => waits.has(wait)) ?? null;
}

const WAITS: Readonly<Record<OperationTarget, ResultWait>> = {
  code: "tools",
  agent: "agents",
  client: "client",
  workflow: "agents",
};

/** An operation, as far as its wait depends on it. */
export type WaitingOperation = Pick<Operation, "target" | "status"> &
  Partial<Pick<Operation, "agent" | "hold">>;

function waitForResult({ target, status, agent, hold }: WaitingOperation): ResultWait {
  if (status === "awaiting_approval" || agent?.asks?.length || hold?.isHeld) return "person";
  if (status === "deferred") return "handle";
  return WAITS[target];
}

/** Reports whether a turn calls a model, or waits for a tool of its own or for an agent that it called. */
export function works(turn: Turn): boolean {
  return callsModel(turn) || waitOf(turn) === "agents";
}

/** Reports whether a turn calls a model, or is about to without anybody's word. */
export function callsModel(turn: Turn): boolean {
  const wait = waitOf(turn);
  return wait === "model" || wait === "tools";
}

/** Reports whether a turn blocks later turns: it works, or waits for other turns. */
export function blocksQueue(turn: Turn): boolean {
  const wait = waitOf(turn);
  return wait === "queue" || wait === "cycle" || works(turn);
}

/** Reports whether a turn that has begun only waits: for outside events or for background work. */
export function onlyWaits(turn: Turn): boolean {
  return !blocksQueue(turn);
}

/** Reports whether a newer message does not stop a turn, because the turn owes no immediate answer. */
export function outlivesInterruption(turn: Turn): boolean {
  const wait = waitOf(turn);
  return wait === "handle" || wait === "cycle" || wait === "background";
}
