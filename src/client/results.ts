/** Pure changes of the results that a client has given and the conversation has not yet recorded. */
import type { ToolSubmission } from "../protocol/requests.ts";
import type { WireError } from "../protocol/views.ts";
import type { LiveConversation, OperationState } from "./state.ts";

/** The state with a result on its way; it takes the place of one of the same call. A call that is over takes none. */
export function addResult(state: LiveConversation, result: ToolSubmission): LiveConversation {
  const { results = [] } = state;
  const others = results.filter(({ operationId }) => operationId !== result.operationId);
  return settleResults({ ...state, error: null, results: [...others, { ...result, status: "sending" }] });
}

/** The state with one of its results marked as refused, and why; `null` if there is none of this call. */
export function rejectResult(
  state: LiveConversation,
  operationId: string,
  refusal: WireError,
): LiveConversation | null {
  const { results = [] } = state;
  if (!results.some((result) => result.operationId === operationId)) return null;
  const rejected = results.map((result) =>
    result.operationId === operationId ? { ...result, status: "rejected" as const, refusal } : result,
  );
  return { ...state, results: rejected };
}

/** The state without the results of calls that are over, however they ended. */
export function settleResults(state: LiveConversation): LiveConversation {
  const { results = [] } = state;
  if (results.length === 0) return state;
  const over = new Set<string>();
  for (const turn of state.turns) {
    for (const { operation } of callsOf(turn)) {
      if (turn.status !== "active" || operation.state !== "running") over.add(operation.id);
    }
  }
  const left = results.filter(({ operationId }) => !over.has(operationId));
  return left.length === results.length ? state : { ...state, results: left };
}

/** The calls of tools that a client is to run, and of which this one has given no result. */
export function pendingCalls(state: LiveConversation): OperationState[] {
  const given = new Set(state.results?.map(({ operationId }) => operationId));
  return state.turns
    .filter(({ status }) => status === "active")
    .flatMap(callsOf)
    .map(({ operation }) => operation)
    .filter(({ id, client, state: phase }) => client === true && phase === "running" && !given.has(id));
}

function callsOf({ items }: LiveConversation["turns"][number]) {
  return items.filter((item) => item.type === "tool");
}
