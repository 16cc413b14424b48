/**
 * The thing that an active turn waits for. Everything that depends on it asks here: the queue, the status of the conversation,
 * leases, further cycles, and what clients are told. Pure.
 *
 * WAIT-1  An active turn waits for one thing at a time. Of several missing results, the one that comes first in `RESULT_WAITS`
 *         counts, so a turn that runs a tool of its own works, whatever else is missing.
 *         An agent that was called, or a run, waits for a person while it, or one below it, asks for an approval or an answer.
 * WAIT-2  A turn announces a wait for a person, for its client or for handles once, when it begins: also where another result was missing
 *         before.
 */
import type { Operation, OperationTarget } from "./operation.ts";
import { blockingOperations, dueOperations, type Turn } from "./turn.ts";

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

/** Returns the thing that an active turn waits for. */
export function waitOf(turn: Turn): Wait {
  if (turn.queued) return "queue";
  if (turn.call !== null || turn.assembly !== undefined) return "model";
  const missing = waitForResults(blockingOperations(turn));
  if (missing !== null) return missing;
  if (turn.waiting === undefined) return "model";
  return dueOperations(turn).length > 0 ? "cycle" : "background";
}

/** Returns the wait for the results of open operations (WAIT-1); `null` where there are none. */
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

/** Reports whether a turn works or waits for other turns to do so, so that later ones wait for it. */
export function holdsQueue(turn: Turn): boolean {
  const wait = waitOf(turn);
  return wait === "queue" || wait === "cycle" || works(turn);
}

/** Reports whether a turn that has begun waits only for what comes from outside, or for background work. */
export function onlyWaits(turn: Turn): boolean {
  return !holdsQueue(turn);
}

/** Reports whether a newer message leaves a turn alone that it would stop otherwise: nobody waits for its next answer. */
export function outlivesInterruption(turn: Turn): boolean {
  const wait = waitOf(turn);
  return wait === "handle" || wait === "cycle" || wait === "background";
}
