/** Pure changes of one turn, and of the list of turns; everything else keeps its identity. */
import type { TurnItem, TurnState } from "./state.ts";

/** What is known of a turn whose start was not seen. */
export type TurnSeed = Pick<TurnState, "id" | "agentId" | "createdAt"> & Partial<TurnState>;

export function newTurn(seed: TurnSeed): TurnState {
  return { status: "active", completedAt: null, items: [], retries: [], retrying: false, ...seed };
}

/** The turns with one of them changed; a turn that is not there yet is added from its seed. */
export function changeTurn(
  turns: readonly TurnState[],
  seed: TurnSeed,
  change: (turn: TurnState) => TurnState,
): readonly TurnState[] {
  const index = turns.findLastIndex((turn) => turn.id === seed.id);
  const before = turns[index];
  if (before === undefined) return [...turns, change(newTurn(seed))];
  const after = change(before);
  return after === before ? turns : turns.with(index, after);
}

/** The turn with an item put in the place of the one with its id, or at the end. */
export function putItem(turn: TurnState, item: TurnItem): TurnState {
  const index = turn.items.findIndex(({ id }) => id === item.id);
  const items = index < 0 ? [...turn.items, item] : turn.items.with(index, item);
  return { ...turn, items };
}

/** The turn with the item of this id changed; unknown ids and unchanged items leave it as it is. */
export function changeItem(turn: TurnState, id: string, change: (item: TurnItem) => TurnItem): TurnState {
  const index = turn.items.findIndex((item) => item.id === id);
  const before = turn.items[index];
  if (before === undefined) return turn;
  const after = change(before);
  return after === before ? turn : { ...turn, items: turn.items.with(index, after) };
}

/** The turn without the item of this id. */
export function dropItem(turn: TurnState, id: string): TurnState {
  return { ...turn, items: turn.items.filter((item) => item.id !== id) };
}

/** The turn at its end: a partial text that never became a message is gone, as it is after a reload. */
export function endTurn(turn: TurnState, outcome: Partial<TurnState>): TurnState {
  return {
    ...turn,
    ...outcome,
    retrying: false,
    items: turn.items.filter((item) => item.type !== "partial"),
  };
}

/** The turn without its notice of a retry, once the next attempt shows progress. */
export function progressed(turn: TurnState): TurnState {
  return turn.retrying ? { ...turn, retrying: false } : turn;
}

/**
 * Text with a delta at an offset (UTF-16 units) put in. What is known already changes nothing; a delta beyond the
 * end is left out, as the text between is missing; one that disagrees replaces everything after its offset.
 */
export function mergeDelta(text: string, offset: number, delta: string): string {
  if (offset > text.length) return text;
  const merged = text.slice(0, offset) + delta;
  return text.startsWith(merged) ? text : merged;
}
