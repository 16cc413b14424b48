/** Pure changes of turns and their items. Unchanged objects keep their identity (VIEW-1). */
import type { MessageView } from "../protocol/conversation-schemas.ts";
import type { OperationState, TurnItem, TurnState } from "./state.ts";

/** The known facts of a turn that is new to the client. */
export type TurnSeed = Pick<TurnState, "id" | "agentId" | "createdAt"> & Partial<TurnState>;

export function newTurn(seed: TurnSeed): TurnState {
  return { status: "active", completedAt: null, items: [], retries: [], retrying: false, ...seed };
}

export function transcriptItem(message: MessageView): TurnItem {
  return { type: "message", id: message.id, message };
}

export function partialItem(id: string, agentId: string, startedAt: string, text = ""): TurnItem {
  return { type: "partial", id, text, agentId, startedAt, restarted: false };
}

/** Returns the items of a loaded turn in their live order: question, work, answers. `agentId` is the agent of the turn. */
export function itemsInOrder(
  messages: readonly MessageView[],
  work: readonly TurnItem[],
  agentId: string,
): TurnItem[] {
  const isAnswer = (message: MessageView) => message.role === "agent" && message.agentId === agentId;
  const answers = messages.filter(isAnswer).map(transcriptItem);
  const questions = messages.filter((message) => !isAnswer(message)).map(transcriptItem);
  return [...questions, ...work, ...answers];
}

/** Changes the turn of the seed, and adds it first if it is missing. */
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

export function putItem(turn: TurnState, item: TurnItem): TurnState {
  const index = turn.items.findIndex(({ id }) => id === item.id);
  const items = index < 0 ? [...turn.items, item] : turn.items.with(index, item);
  return { ...turn, items };
}

export function changeItem(turn: TurnState, id: string, change: (item: TurnItem) => TurnItem): TurnState {
  const index = turn.items.findIndex((item) => item.id === id);
  const before = turn.items[index];
  if (before === undefined) return turn;
  const after = change(before);
  return after === before ? turn : { ...turn, items: turn.items.with(index, after) };
}

export function dropItem(turn: TurnState, id: string): TurnState {
  return { ...turn, items: turn.items.filter((item) => item.id !== id) };
}

/** Ends a turn, which then waits no longer. Partial texts without a completed message are removed, as after a reload. */
export function endTurn({ phase: _over, ...turn }: TurnState, outcome: Partial<TurnState>): TurnState {
  const items = turn.items.filter((item) => item.type !== "partial");
  return { ...turn, ...outcome, retrying: false, items };
}

/** Clears `retrying` when an attempt makes progress. */
export function progressed(turn: TurnState): TurnState {
  return turn.retrying ? { ...turn, retrying: false } : turn;
}

/**
 * Merges a delta at an offset (UTF-16 units) into a text. A known delta is a no-op. A delta beyond the end is dropped, because the text
 * between is missing. A delta that differs replaces the text after its offset.
 */
export function mergeDelta(text: string, offset: number, delta: string): string {
  if (offset > text.length) return text;
  const merged = text.slice(0, offset) + delta;
  return text.startsWith(merged) ? text : merged;
}

/** Changes an operation. A finished operation is no longer deferred or held. */
export function changeOperation(operation: OperationState, change: Partial<OperationState>): OperationState {
  const { deferredUntil: _over, held: _held, ...others } = operation;
  return { ...(change.state === undefined ? operation : others), ...change };
}

/** Starts the next attempt of a tool call: without progress, and with a new id of its workflow run. */
export function nextAttempt(item: TurnItem): TurnItem {
  if (item.type !== "tool") return item;
  const { progress: _before, runId: _run, attempt = 1, ...operation } = item.operation;
  return { ...item, operation: { ...operation, attempt: attempt + 1 } };
}
