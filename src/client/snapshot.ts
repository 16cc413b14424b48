/** State from a snapshot: everything the server records is replaced, what only this client knows is kept. */
import type { MessageView, Snapshot } from "../protocol/views.ts";
import type { LiveConversation, TurnItem, TurnState } from "./state.ts";
import { newTurn } from "./turns.ts";

/** The state after a snapshot that stands for all journal entries up to `seq`. */
export function fromSnapshot(
  state: LiveConversation,
  snapshot: Snapshot,
  seq: number | null,
): LiveConversation {
  const history = contiguousHistory(state, snapshot);
  const messages = [...history, ...snapshot.messages];
  const clientIds = new Set(snapshot.messages.map((message) => message.clientId));
  return {
    ...state,
    seq,
    conversation: snapshot.conversation,
    messages,
    turns: [...olderTurns(state, snapshot, history), ...snapshotTurns(snapshot, messages)],
    pending: state.pending.filter(({ clientId }) => !clientIds.has(clientId)),
    error: null,
  };
}

/** Older pages that were loaded stay if the snapshot continues them without a gap. */
function contiguousHistory(state: LiveConversation, { messages }: Snapshot): readonly MessageView[] {
  const first = messages[0]?.id;
  return state.messages.slice(
    0,
    Math.max(
      0,
      state.messages.findIndex(({ id }) => id === first),
    ),
  );
}

function olderTurns(
  state: LiveConversation,
  snapshot: Snapshot,
  history: readonly MessageView[],
): readonly TurnState[] {
  const kept = new Set(history.map(({ turnId }) => turnId));
  const replaced = new Set(turnIdsOf(snapshot));
  return state.turns.filter(({ id }) => kept.has(id) && !replaced.has(id));
}

function turnIdsOf({ turns, messages }: Snapshot): string[] {
  return [...turns.map(({ id }) => id), ...messages.map(({ turnId }) => turnId)];
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

/** Question, tools, answers, text in progress: the order in which they appear live. */
function itemsOf(
  snapshot: Snapshot,
  allMessages: readonly MessageView[],
  turn: { id: string; agentId: string; createdAt: string },
): TurnItem[] {
  const messages = allMessages.filter(({ turnId }) => turnId === turn.id);
  const operations = snapshot.operations.filter(({ turnId }) => turnId === turn.id);
  const partials = snapshot.partials.filter(({ turnId }) => turnId === turn.id);
  return [
    ...messages.filter(({ role }) => role === "user").map(messageItem),
    ...operations.map((operation): TurnItem => ({ type: "tool", id: operation.id, operation })),
    ...messages.filter(({ role }) => role === "agent").map(messageItem),
    ...partials.map(({ messageId, text }): TurnItem => {
      const { agentId, createdAt: startedAt } = turn;
      return { type: "partial", id: messageId, text, agentId, startedAt, restarted: false };
    }),
  ];
}

function messageItem(message: MessageView): TurnItem {
  return { type: "message", id: message.id, message };
}
