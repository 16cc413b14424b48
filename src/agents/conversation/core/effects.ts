/**
 * The effects that a state calls for. They are derived, never stored: after a crash the same state calls for the same
 * effects.
 *
 * EFFECT-1  A state calls for at most one model call per turn, and for none while one of its tools is pending.
 * CLIENTTOOL-3  A turn that waits for its client calls for no effect: the actor may hibernate until the client answers,
 *               and wakes by itself when the client's time is up.
 */
import { HEARTBEAT_MS } from "./limits.ts";
import {
  type ConversationState,
  deadlineOf,
  type ModelCall,
  type Operation,
  pendingOperations,
  type Turn,
} from "./state.ts";

/** `key` identifies the work: two effects with the same key are the same attempt. */
export type Effect =
  | { kind: "model"; key: string; turn: Turn; call: ModelCall }
  | { kind: "tools"; key: string; turn: Turn; operations: Operation[] };

export function effectsOf({ active }: ConversationState): Effect[] {
  return [...active.values()].flatMap((turn) => effectOfTurn(turn) ?? []);
}

/** Returns the effect that a turn waits for; `undefined` where there is none. */
export function effectOfTurn(turn: Turn): Effect | undefined {
  const { n, status, call, replies } = turn;
  if (status !== "active") return undefined;
  if (call !== null) return { kind: "model", key: `model:${n}:${call.item}:${call.attempt}`, turn, call };
  const operations = pendingOperations(turn).filter(({ client }) => !client);
  if (operations.length === 0) return undefined;
  return { kind: "tools", key: `tools:${n}:${replies.length}`, turn, operations };
}

/** Returns in how many milliseconds the actor must wake; `null` while no turn is active. */
export function dueIn(state: ConversationState, now: number): number | null {
  if (state.active.size === 0) return null;
  const deadlines = [...state.active.values()].flatMap((turn) =>
    pendingOperations(turn).flatMap((operation) => (operation.client ? [deadlineOf(turn, operation)] : [])),
  );
  const heartbeat = effectsOf(state).length > 0 ? HEARTBEAT_MS : Number.POSITIVE_INFINITY;
  return Math.max(0, Math.min(heartbeat, ...deadlines.map((deadline) => deadline - now)));
}
