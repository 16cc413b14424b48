/** Older pages of a conversation, read over HTTP and put before what the live connection brought. */
import type { MessageView, MoveView, TurnView } from "../protocol/views.ts";
import type { LiveConversation, OperationState, TurnItem, TurnState } from "./state.ts";
import { newTurn } from "./turns.ts";

export interface HistoryPage {
  /** Oldest first. */
  messages: readonly MessageView[];
  /** The turns of these messages, as far as they could be read. */
  turns: readonly TurnView[];
}

/** The state with a page of older messages; what is not older than the loaded transcript is left out. */
export function addHistory(state: LiveConversation, page: HistoryPage): LiveConversation {
  const added = olderThanLoaded(state.messages, page.messages);
  if (added.length === 0) return state;
  const views = new Map(page.turns.map((view) => [view.id, view]));
  const present = new Set(state.turns.map(({ id }) => id));
  const older = [...new Set(added.map(({ turnId }) => turnId))].filter((id) => !present.has(id));
  return {
    ...state,
    messages: [...added, ...state.messages],
    turns: [
      ...older.map((id) => turnFromHistory(id, added, views.get(id))),
      ...state.turns.map((turn) => withMessages(turn, added)),
    ],
  };
}

/** Pages are read from the newest on, so one may overlap what is loaded, or hold what arrives live in a moment. */
function olderThanLoaded(
  loaded: readonly MessageView[],
  page: readonly MessageView[],
): readonly MessageView[] {
  const first = loaded[0];
  if (first === undefined) return [];
  const known = new Set(loaded.map(({ id }) => id));
  const overlap = page.findIndex(({ id }) => known.has(id));
  const older = overlap < 0 ? page : page.slice(0, overlap);
  return older.filter(({ createdAt }) => createdAt <= first.createdAt);
}

function turnFromHistory(id: string, added: readonly MessageView[], view?: TurnView): TurnState {
  const messages = added.filter(({ turnId }) => turnId === id);
  const createdAt = view?.createdAt ?? messages[0]?.createdAt ?? "";
  return newTurn({
    id,
    createdAt,
    agentId: view?.agentId ?? messages.findLast(({ agentId }) => agentId !== undefined)?.agentId ?? "",
    status: view?.status ?? "completed",
    completedAt: view === undefined ? createdAt : view.completedAt,
    items: [
      ...messages.filter(({ role }) => role === "user").map(messageItem),
      ...(view?.moves ?? []).flatMap((move) => itemsOfMove(move, id)),
      ...messages.filter(({ role }) => role === "agent").map(messageItem),
    ],
    ...(view?.error === undefined ? {} : { error: view.error }),
    ...(view?.issues === undefined ? {} : { issues: view.issues }),
    ...(view?.output === undefined ? {} : { output: view.output }),
  });
}

/** The beginning of a turn of which only the end was loaded. */
function withMessages(turn: TurnState, added: readonly MessageView[]): TurnState {
  const messages = added.filter(({ turnId }) => turnId === turn.id);
  return messages.length === 0 ? turn : { ...turn, items: [...messages.map(messageItem), ...turn.items] };
}

function messageItem(message: MessageView): TurnItem {
  return { type: "message", id: message.id, message };
}

/** A move without a tool call is the answer itself and stands among the messages. */
function itemsOfMove({ id, reasoning, toolCall, toolResult }: MoveView, turnId: string): TurnItem[] {
  if (toolCall === undefined) return [];
  const { operationId, name, input } = toolCall;
  const operation: OperationState = {
    id: operationId,
    turnId,
    name,
    input,
    state: toolResult === undefined ? "running" : toolResult.success ? "completed" : "failed",
    ...(toolResult?.result === undefined ? {} : { result: toolResult.result }),
    ...(toolResult?.error === undefined ? {} : { error: toolResult.error }),
  };
  return [
    ...(reasoning === undefined || reasoning === ""
      ? []
      : [{ type: "thought" as const, id, text: reasoning }]),
    { type: "tool", id: operationId, operation },
  ];
}
