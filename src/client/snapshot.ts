/** The state after a snapshot. It replaces recorded facts and keeps facts that only this client has. */
import type { MessageView } from "../protocol/conversation-schemas.ts";
import type { Snapshot } from "../protocol/views.ts";
import type { LiveConversation, TurnItem, TurnState } from "./state.ts";
import { itemsInOrder, newTurn, partialItem } from "./turns.ts";

/** Applies a snapshot that covers all journal entries up to `seq`. */
export function fromSnapshot(
  state: LiveConversation,
  snapshot: Snapshot,
  seq: number | null,
): LiveConversation {
  const history = contiguousHistory(state, snapshot);
  const messages = [...history, ...snapshot.messages];
  const clientIds = new Set(snapshot.messages.map((message) => message.clientId));
  const { stops = [] } = state;
  const active = new Set(snapshot.turns.flatMap(({ id, status }) => (status === "active" ? [id] : [])));
  const remainingStops = stops.filter((stop) => stop.type !== "turn.cancel" || active.has(stop.turnId));
  return {
    ...state,
    seq,
    conversation: snapshot.conversation,
    messages,
    turns: [...olderTurns(state, snapshot, history), ...snapshotTurns(snapshot, messages)],
    pending: state.pending.filter(({ clientId }) => !clientIds.has(clientId)),
    ...(remainingStops.length === stops.length ? {} : { stops: remainingStops }),
    error: null,
  };
}

/** Returns the loaded older messages if the snapshot continues them without a gap. */
function contiguousHistory(state: LiveConversation, { messages }: Snapshot): readonly MessageView[] {
  const first = state.messages.findIndex(({ id }) => id === messages[0]?.id);
  return state.messages.slice(0, Math.max(0, first));
}

function olderTurns(
  state: LiveConversation,
  { turns, messages }: Snapshot,
  history: readonly MessageView[],
): readonly TurnState[] {
  const kept = new Set(history.map(({ turnId }) => turnId));
  const replaced = new Set([...turns.map(({ id }) => id), ...messages.map(({ turnId }) => turnId)]);
  return state.turns.filter(({ id }) => kept.has(id) && !replaced.has(id));
}

function snapshotTurns(snapshot: Snapshot, messages: readonly MessageView[]): TurnState[] {
  const turns = new Map(
    snapshot.turns.map((summary) => [
      summary.id,
      newTurn({ ...summary, items: itemsOf(snapshot, messages, summary) }),
    ]),
  );
  for (const { turnId: id, createdAt, agentId } of snapshot.messages) {
    if (turns.has(id)) continue;
    const seed = { id, createdAt, agentId: agentId ?? snapshot.conversation.agentId };
    const items = itemsOf(snapshot, messages, seed);
    turns.set(id, newTurn({ ...seed, status: "completed", completedAt: createdAt, items }));
  }
  return [...turns.values()];
}

function itemsOf(
  { operations, partials }: Snapshot,
  messages: readonly MessageView[],
  { id, agentId, createdAt }: Pick<TurnState, "id" | "agentId" | "createdAt">,
): TurnItem[] {
  const isOwn = ({ turnId }: { turnId: string }) => turnId === id;
  const tools = operations.filter(isOwn).map((operation): TurnItem => {
    return { type: "tool", id: operation.id, operation };
  });
  return [
    ...itemsInOrder(messages.filter(isOwn), tools, agentId),
    ...partials.filter(isOwn).map(({ messageId, text }) => partialItem(messageId, agentId, createdAt, text)),
  ];
}
