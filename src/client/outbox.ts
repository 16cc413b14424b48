/**
 * The outbox: messages, tool results and stops that this client has sent and the conversation has not recorded. Pure changes.
 *
 * CLIENT-4  A pending message stays until the conversation records it or its sender discards it.
 * CLIENT-6  A pending result stays until its call is over.
 * CLIENT-7  A pending stop stays until its turn is over, or the conversation has the wanted state. A newer stop or resume of the
 *           conversation replaces an older stop or resume.
 */
import type { WireError } from "../protocol/move-schemas.ts";
import type { ToolSubmission } from "../protocol/requests.ts";
import { wrongInput } from "./errors.ts";
import {
  isStopped,
  type LiveConversation,
  type OperationState,
  type PendingCall,
  type PendingMessage,
  type PendingStop,
  type TurnState,
} from "./state.ts";

/** Adds a message as `sending`. */
export function addPending(
  state: LiveConversation,
  message: Omit<PendingMessage, "status" | "error">,
): LiveConversation {
  return { ...state, error: null, pending: [...state.pending, { ...message, status: "sending" }] };
}

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

/** Adds a stop or a resume. Drops it if it would have no effect. */
export function addStop(state: LiveConversation, stop: PendingStop): LiveConversation {
  const { stops = [] } = state;
  const turnOf = (other: PendingStop) => (other.type === "turn.cancel" ? other.turnId : null);
  const isReplaced = (other: PendingStop) => turnOf(other) === turnOf(stop);
  return settleStops({
    ...state,
    error: null,
    stops: [...stops.filter((other) => !isReplaced(other)), stop],
  });
}

export function settleStops(state: LiveConversation): LiveConversation {
  const { stops = [], turns, conversation } = state;
  if (stops.length === 0) return state;
  const isPending = (stop: PendingStop): boolean => {
    // A turn that is not known may be about to begin.
    if (stop.type === "turn.cancel")
      return turns.every(({ id, status }) => id !== stop.turnId || status === "active");
    return conversation === null || isStopped(state) !== (stop.type === "conversation.cancel");
  };
  const left = stops.filter(isPending);
  return left.length === stops.length ? state : { ...state, stops: left };
}

/**
 * Removes the stop that an error refuses. Returns `null` if there is no such stop. It is no error if the turn has already ended or the
 * conversation has already resumed.
 */
export function refuseStop(
  state: LiveConversation,
  ref: string | undefined,
  error: WireError,
): LiveConversation | null {
  const { stops = [] } = state;
  const isRefused = (stop: PendingStop) =>
    stop.type === "turn.cancel"
      ? stop.turnId === ref
      : stop.type === ref || (stop.type === "conversation.resume" && error.code === "NOT_CANCELLED");
  const left = stops.filter((stop) => !isRefused(stop));
  if (left.length === stops.length) return null;
  const isHarmless = error.code === "CONFLICT" || error.code === "NOT_CANCELLED";
  return { ...state, stops: left, ...(isHarmless ? {} : { error }) };
}

/** Rejects the message or result with this id, or returns `null`. */
export function reject(state: LiveConversation, id: string, error: WireError): LiveConversation | null {
  const { pending, results = [] } = state;
  const messageIndex = pending.findIndex(({ clientId }) => clientId === id);
  const message = pending[messageIndex];
  if (message !== undefined)
    return { ...state, pending: pending.with(messageIndex, { ...message, status: "rejected", error }) };
  const resultIndex = results.findIndex(({ operationId }) => operationId === id);
  const result = results[resultIndex];
  if (result === undefined) return null;
  return { ...state, results: results.with(resultIndex, { ...result, status: "rejected", refusal: error }) };
}

export function settleResults(state: LiveConversation): LiveConversation {
  const { results = [] } = state;
  if (results.length === 0) return state;
  const over = new Set<string>();
  for (const turn of state.turns) {
    for (const { id, state: phase } of operationsOf(turn))
      if (turn.status !== "active" || phase !== "running") over.add(id);
  }
  const left = results.filter(({ operationId }) => !over.has(operationId));
  return left.length === results.length ? state : { ...state, results: left };
}

/**
 * Returns the tool calls that a client must run and for which this client has not sent a result.
 *
 * @example
 * for (const { operationId, input } of pendingCalls(conversation.getSnapshot())) {
 *   conversation.submitToolResult(operationId, { result: await run(input) });
 * }
 */
export function pendingCalls(state: LiveConversation): PendingCall[] {
  const sent = new Set(state.results?.map(({ operationId }) => operationId));
  return state.turns
    .filter(({ status }) => status === "active")
    .flatMap(operationsOf)
    .filter(({ id, client, state: phase }) => client === true && phase === "running" && !sent.has(id))
    .map(({ id: operationId, ...call }) => ({ operationId, ...call }));
}

/** Throws `INVALID_INPUT` for an invalid call id, and `NOT_FOUND` for an id that no loaded turn has. */
export function checkCallId(state: LiveConversation, operationId: unknown): void {
  if (typeof operationId !== "string" || operationId === "") {
    throw wrongInput(
      "INVALID_INPUT",
      `submitToolResult needs the \`operationId\` of an item of \`pendingCalls\` as its first argument, and got ${String(operationId)}.`,
    );
  }
  // Before the first snapshot the calls are unknown, and the server decides.
  if (state.conversation === null) return;
  if (state.turns.some((turn) => operationsOf(turn).some(({ id }) => id === operationId))) return;
  throw wrongInput(
    "NOT_FOUND",
    `There is no tool call "${operationId}" in this conversation. Use the \`operationId\` of an item of \`pendingCalls\`.`,
  );
}

function operationsOf({ items }: TurnState): OperationState[] {
  return items.flatMap((item) => (item.type === "tool" ? [item.operation] : []));
}
