/** Hides the shown content of an erased entry. Pure. */
import type { MessageView } from "../protocol/conversation-schemas.ts";
import type { LiveConversation, TurnItem, TurnState } from "./state.ts";

/** Replaces erased content, as in later answers of the server. */
const ERASED = "[erased]";

interface Entry {
  messageId?: string;
  operationId?: string;
}

export function withoutMessage(state: LiveConversation, entry: Entry): LiveConversation {
  return { ...state, messages: state.messages.map((message) => hidden(message, entry)) };
}

/** Hides the content of an item of a turn. */
export function withoutItem(turn: TurnState, entry: Entry): TurnState {
  const id = entry.messageId ?? entry.operationId;
  return { ...turn, items: turn.items.map((item) => (item.id === id ? hiddenItem(item, entry) : item)) };
}

function hidden(message: MessageView, { messageId }: Entry): MessageView {
  return message.id === messageId ? { ...message, content: ERASED } : message;
}

function hiddenItem(item: TurnItem, entry: Entry): TurnItem {
  if (item.type === "message") return { ...item, message: hidden(item.message, entry) };
  if (item.type !== "tool") return { ...item, text: ERASED };
  const { result, error, progress: _progress, task: _task, ...operation } = item.operation;
  const outcome = {
    ...(result === undefined ? {} : { result: ERASED }),
    ...(error === undefined ? {} : { error: { ...error, message: ERASED } }),
  };
  return { ...item, operation: { ...operation, input: {}, ...outcome } };
}
