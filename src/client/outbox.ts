/**
 * The outbox: messages and tool results that this client has sent and the conversation has not recorded. Pure changes.
 *
 * CLIENT-4  A pending message stays until the conversation records it or its sender discards it.
 * CLIENT-6  A pending result stays until its call is over.
 */
import type { ToolSubmission } from "../protocol/requests.ts";
import type { WireError } from "../protocol/views.ts";
import type { LiveConversation, OperationState, PendingMessage, TurnState } from "./state.ts";

/** Adds a message as `sending`. */
export function addPending(
  state: LiveConversation,
  message: Omit<PendingMessage, "status" | "error">,
): LiveConversation {
  return { ...state, error: null, pending: [...state.pending, { ...message, status: "sending" }] };
}

/** Removes a message. */
export function dropPending(state: LiveConversation, clientId: string): LiveConversation {
  const pending = state.pending.filter((message) => message.clientId !== clientId);
  return pending.length === state.pending.length ? state : { ...state, pending };
}

/** Adds a result as `sending`, in place of one of the same call. A result of a call that is over is dropped. */
export function addResult(state: LiveConversation, result: ToolSubmission): LiveConversation {
  const { results = [] } = state;
  const others = results.filter(({ operationId }) => operationId !== result.operationId);
  return settleResults({ ...state, error: null, results: [...others, { ...result, status: "sending" }] });
}

/** Rejects the message or result with this id. Returns `null` if there is none. */
export function reject(state: LiveConversation, id: string, error: WireError): LiveConversation | null {
  const { pending, results = [] } = state;
  const messageIndex = pending.findIndex(({ clientId }) => clientId === id);
  const message = pending[messageIndex];
  if (message !== undefined) {
    return { ...state, pending: pending.with(messageIndex, { ...message, status: "rejected", error }) };
  }
  const resultIndex = results.findIndex(({ operationId }) => operationId === id);
  const result = results[resultIndex];
  if (result === undefined) return null;
  return { ...state, results: results.with(resultIndex, { ...result, status: "rejected", refusal: error }) };
}

/** Removes the results of calls that are over. */
export function settleResults(state: LiveConversation): LiveConversation {
  const { results = [] } = state;
  if (results.length === 0) return state;
  const over = new Set<string>();
  for (const turn of state.turns) {
    for (const { id, state: phase } of operationsOf(turn)) {
      if (turn.status !== "active" || phase !== "running") over.add(id);
    }
  }
  const left = results.filter(({ operationId }) => !over.has(operationId));
  return left.length === results.length ? state : { ...state, results: left };
}

/**
 * Returns the tool calls that a client must run and for which this client has sent no result.
 *
 * @example
 * for (const { id, input } of pendingCalls(conversation.getSnapshot())) {
 *   conversation.submitToolResult(id, { result: await run(input) });
 * }
 */
export function pendingCalls(state: LiveConversation): OperationState[] {
  const sent = new Set(state.results?.map(({ operationId }) => operationId));
  return state.turns
    .filter(({ status }) => status === "active")
    .flatMap(operationsOf)
    .filter(({ id, client, state: phase }) => client === true && phase === "running" && !sent.has(id));
}

function operationsOf({ items }: TurnState): OperationState[] {
  return items.flatMap((item) => (item.type === "tool" ? [item.operation] : []));
}
