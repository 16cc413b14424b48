/**
 * Callers: who starts turns. Pure.
 *
 * CALLER-1  Two callers never share an idempotency key: the names of their keys differ, whatever text both choose.
 */
import type { Caller } from "../../../protocol/views.ts";

/** Returns the origin of what a caller writes, as session events name it. */
export function originOf(caller: Caller): string {
  return `${caller.type}:${idOf(caller)}`;
}

/**
 * Returns the name of a caller's idempotency key. An agent's keys do not depend on its turn: an agent that repeats a
 * request in another turn gets the same answer.
 */
export function callerKey(caller: Caller, key: string): string {
  const id = idOf(caller);
  const name = `${id.length}:${id}:${key}`;
  return caller.type === "user" ? name : `${caller.type}:${name}`;
}

/** Returns the caller's own id, without its turn. */
function idOf(caller: Caller): string {
  switch (caller.type) {
    case "user":
      return caller.userId;
    case "agent":
      return caller.agentId;
    case "workflow":
      return caller.runId;
    default:
      return caller satisfies never;
  }
}
