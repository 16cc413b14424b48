/**
 * Which effects a state calls for. Derived, never stored: after a crash the same state asks for the same effects.
 *
 * EFFECT-1  A state calls for at most one model call per turn, and for none while one of its tools is pending.
 * CLIENTTOOL-3  A turn that waits for its client calls for no effect: the actor may sleep until the client answers, and
 *               wakes by itself when the client's time is up.
 */
import { HEARTBEAT_MS } from "../core/limits.ts";
import {
  type ConversationState,
  deadlineOf,
  type ModelCall,
  type Operation,
  pendingOperations,
  type Turn,
} from "../core/state.ts";

export type Effect =
  | { kind: "model"; key: string; turn: Turn; call: ModelCall }
  | { kind: "tools"; key: string; turn: Turn; operations: Operation[] };

export function effectsOf(state: ConversationState): Effect[] {
  return [...state.active.values()].flatMap(effectOfTurn);
}

/** The effect a turn waits for. `key` names the attempt: an effect with the same key is the same work. */
export function effectOfTurn(turn: Turn): Effect[] {
  if (turn.status !== "active") return [];
  if (turn.call !== null) {
    const { item, attempt } = turn.call;
    return [{ kind: "model", key: `model:${turn.n}:${item}:${attempt}`, turn, call: turn.call }];
  }
  const operations = pendingOperations(turn).filter(({ client }) => !client);
  if (operations.length === 0) return [];
  return [{ kind: "tools", key: `tools:${turn.n}:${turn.replies.length}`, turn, operations }];
}

/** In how many milliseconds a state must be looked after; `null` when there is nothing to look after. */
export function dueIn(state: ConversationState, now: number): number | null {
  if (state.active.size === 0) return null;
  const deadlines = [...state.active.values()].flatMap((turn) =>
    pendingOperations(turn).flatMap((operation) => (operation.client ? [deadlineOf(turn, operation)] : [])),
  );
  const heartbeat = effectsOf(state).length > 0 ? HEARTBEAT_MS : Number.POSITIVE_INFINITY;
  return Math.max(0, Math.min(heartbeat, ...deadlines.map((deadline) => deadline - now)));
}
