/**
 * The effects that a state calls for. They are derived, never stored: after a crash the same state calls for the same
 * effects.
 *
 * EFFECT-1  A state calls for at most one model call per turn, and for none while an operation that the turn waits for is
 *           open.
 * EFFECT-4  Each operation and attempt is an effect of its own: whatever else a turn calls for, it keeps its key.
 * EFFECT-6  A turn that waits for others after crashes (ISOLATE-2) calls for no effect meanwhile.
 * CLIENTTOOL-3  A turn that waits for its client calls for no effect: the actor may hibernate until the client answers,
 *               and wakes by itself when the client's time is up.
 */
import { heartbeatIn } from "./heartbeat.ts";
import { heldTurns } from "./isolation.ts";
import type { Operation } from "./operation.ts";
import {
  type ConversationState,
  type ModelCall,
  openOperations,
  runnableOperations,
  type Turn,
} from "./state.ts";

export type ModelCallEffect = { kind: "model"; key: string; turn: Turn; call: ModelCall };
export type OperationEffect = { kind: "tool"; key: string; turn: Turn; operation: Operation };

/** `key` identifies the work: two effects with the same key are the same attempt. */
export type Effect = ModelCallEffect | OperationEffect;

export function effectsOf({ active }: ConversationState): Effect[] {
  const held = heldTurns(active);
  return [...active.values()].flatMap((turn) => (held.has(turn.n) ? [] : effectsOfTurn(turn)));
}

/** Returns the effects that a turn calls for unless it is held. */
export function effectsOfTurn(turn: Turn): Effect[] {
  const { n, status, call } = turn;
  if (status !== "active") return [];
  const operations = runnableOperations(turn).map(
    (operation): Effect => ({
      kind: "tool",
      key: `tool:${n}:${operation.item}:${operation.attempt}`,
      turn,
      operation,
    }),
  );
  if (call === null) return operations;
  return [{ kind: "model", key: `model:${n}:${call.item}:${call.attempt}`, turn, call }, ...operations];
}

/** Returns the keys of the effects that a turn no longer calls for. A new turn has no `before`, one that is over no `after`. */
export function endedEffects(before: Turn | undefined, after: Turn | undefined): string[] {
  if (before === undefined) return [];
  const left = new Set(after === undefined ? [] : effectsOfTurn(after).map(({ key }) => key));
  return effectsOfTurn(before).flatMap(({ key }) => (left.has(key) ? [] : [key]));
}

/**
 * Returns in how many milliseconds the actor must wake; `null` while no turn is active. Effects are as old as their turn, or
 * as this life of the actor, which began at `wokeAt` and started them anew.
 */
export function dueIn(state: ConversationState, now: number, wokeAt: number): number | null {
  if (state.active.size === 0) return null;
  const deadlines = [...state.active.values()].flatMap((turn) =>
    openOperations(turn).map(({ deadline = Number.POSITIVE_INFINITY }) => deadline),
  );
  const heartbeats = effectsOf(state).map(({ turn }) => heartbeatIn(now - Math.max(turn.createdAt, wokeAt)));
  return Math.max(0, Math.min(...heartbeats, ...deadlines.map((deadline) => deadline - now)));
}
