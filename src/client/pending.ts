/** Pure changes of what a client has sent and the conversation has not yet recorded. */
import type { WireError } from "../protocol/views.ts";
import type { LiveConversation, PendingMessage } from "./state.ts";

/** The state with a message that is being sent. */
export function addPending(
  state: LiveConversation,
  message: Omit<PendingMessage, "status" | "error">,
): LiveConversation {
  return { ...state, error: null, pending: [...state.pending, { ...message, status: "sending" }] };
}

/** The state without a message that was not recorded. */
export function dropPending(state: LiveConversation, clientId: string): LiveConversation {
  const pending = state.pending.filter((message) => message.clientId !== clientId);
  return pending.length === state.pending.length ? state : { ...state, pending };
}

/** The messages with one of them marked as refused, and why. */
export function rejectPending(
  pending: readonly PendingMessage[],
  clientId: string,
  error: WireError,
): readonly PendingMessage[] {
  return pending.map((message) =>
    message.clientId === clientId ? { ...message, status: "rejected", error } : message,
  );
}
