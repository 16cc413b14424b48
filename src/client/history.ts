/** Older pages of a transcript, read over HTTP and placed before the live part. */
import type { MessageView, TurnView } from "../protocol/conversation-schemas.ts";
import type { MoveView } from "../protocol/move-schemas.ts";
import { defined } from "../shared/defined.ts";
import type { LiveConversation, OperationState, TurnItem, TurnState } from "./state.ts";
import { itemsInOrder, newTurn, transcriptItem } from "./turns.ts";

export interface HistoryPage {
  messages: readonly MessageView[];
  /** Turns of these messages. A missing turn is shown without its tool calls. */
  turns: readonly TurnView[];
}

/**
 * Adds a page of older messages. Messages that are not older than the loaded transcript are skipped.
 *
 * @example
 * const { messages } = await client.messages.list(id, { order: "desc", limit: 100 });
 * conversation.addHistory({ messages: messages.toReversed(), turns: [] });
 */
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

/** Pages are read from the newest on, so a page may overlap the loaded part, or hold messages newer than it. */
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
  const agentId =
    view?.agentId ?? messages.findLast((message) => message.agentId !== undefined)?.agentId ?? "";
  return newTurn({
    id,
    createdAt,
    agentId,
    status: view?.status ?? "completed",
    completedAt: view === undefined ? createdAt : view.completedAt,
    items: itemsInOrder(
      messages,
      (view?.moves ?? []).flatMap((move) => itemsOfMove(move, id)),
      agentId,
    ),
    ...defined({
      error: view?.error,
      issues: view?.issues,
      caller: starterOf(view),
      silent: view?.silent,
      output: view?.output,
      spent: view?.spent,
    }),
  });
}

/** Adds the beginning of a turn that was loaded without it. */
function withMessages(turn: TurnState, added: readonly MessageView[]): TurnState {
  const messages = added.filter(({ turnId }) => turnId === turn.id);
  return messages.length === 0 ? turn : { ...turn, items: [...messages.map(transcriptItem), ...turn.items] };
}

function stateOf(result: MoveView["toolResult"]): OperationState["state"] {
  if (result === undefined) return "running";
  if (result.success) return "completed";
  return result.error?.code === "CANCELLED" ? "cancelled" : "failed";
}

/** Returns the thought and the tool call of a move. A move without a tool call is an answer, which is a message. */
function itemsOfMove({ id, reasoning, toolCall, toolResult }: MoveView, turnId: string): TurnItem[] {
  if (toolCall === undefined) return [];
  const { operationId, name, input, client, agent, async: isAsync, attempt, approval, task } = toolCall;
  const { result, error } = toolResult ?? {};
  const operation: OperationState = {
    id: operationId,
    ...{ turnId, name, input },
    state: stateOf(toolResult),
    ...defined({ result, error, client, agent, async: isAsync, attempt, approval, task }),
  };
  const tool: TurnItem = { type: "tool", id: operationId, operation };
  return reasoning ? [{ type: "thought", id, text: reasoning }, tool] : [tool];
}

/** Returns the agent or the run that started a turn. `undefined` if a user started it. */
function starterOf(view: TurnView | undefined): TurnState["caller"] {
  return view?.caller.type === "user" ? undefined : view?.caller;
}
