/**
 * Planning of approvals: a call of a tool that must not run before a person has allowed it. Pure.
 *
 * APPROVE-1  A call of a tool with `approval: "always"` that passed every check waits for a person. It calls for no effect and survives a
 *            crash. Results of an executor, a client or a handle do not settle it.
 * APPROVE-2  An approval starts the call with the input that was shown, once. Later attempts need no further approval.
 * APPROVE-3  A call that is denied or not approved before its deadline never runs. The model gets `APPROVAL_DENIED` with the reason.
 * APPROVE-4  The first answer counts. An identical answer is a no-op. A different answer is a `CONFLICT`, also after the call ended without
 *            an answer.
 * APPROVE-5  The text of a message never answers a request for approval. If messages interrupt, a new message denies all waiting calls
 *            (`superseded`), including calls of turns that continue. Otherwise the calls keep waiting.
 * APPROVE-6  A turn that waits for a person blocks no queue and keeps no lease. If the call runs in the background, its turn continues.
 * APPROVE-7  A call whose turn ends while it waits is `CANCELLED`. It has not started, so its outcome is never unknown.
 * ELICIT-5  An answer names the question by its `round`, and counts for this question only.
 * ASK-1  If a tool call waits for a person in the conversation of a called agent, each conversation above shows it, up to the users'
 *        conversation. An answer from there names its operation id. The first answer counts, from any of these conversations.
 * ASK-6  If the answer overtakes a request, the request is not shown.
 */
import { MAX_ASKS, MAX_CONVERSATION_ASKS } from "../../../../protocol/agent-call.ts";
import type { ApprovalOutcome } from "../../../../protocol/approval.ts";
import { MAX_VALUES_BYTES } from "../../../../protocol/elicitation.ts";
import type { ToolResult } from "../../../../protocol/executor-api.ts";
import { defined } from "../../../../shared/defined.ts";
import { conflict, type DramatisError } from "../../../../shared/errors.ts";
import type { JsonObject } from "../../../../shared/json.ts";
import { violations } from "../../../../shared/json-schema/violations.ts";
import { utf8Length } from "../../../../shared/utf8.ts";
import { invalidAt } from "../../../../shared/validation.ts";
import type { AgentDecision } from "../decisions.ts";
import { awaitsApproval, type Operation, withAsk } from "../operation.ts";
import type { AgentAsked, ApprovalResolved } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import type { Turn } from "../turn.ts";
import { blockingOperations, openCalls, openOperations } from "../turn-operations.ts";
import { announceWait, type ItemResult, resume } from "./results.ts";
import { failure } from "./tool-call.ts";

type Denial = Exclude<ApprovalOutcome, "approved">;

/** Throws `CONFLICT` if the operation waits for no approval, or has another answer. */
export function planApproval(
  state: ConversationState,
  { turn: n, item, approved, caller: by, reason, values }: ApprovalResolved,
): AgentDecision[] {
  const turn = state.active.get(n);
  const operation = turn?.operations.find((candidate) => candidate.item === item);
  if (turn === undefined || operation === undefined) throw refused("its turn is over.");
  if (isAnswered(operation, approved)) return [];
  const outcome = approved ? ("approved" as const) : ("denied" as const);
  const answer = {
    type: "RESOLVE_APPROVAL" as const,
    turn: n,
    item,
    outcome,
    by,
    ...defined({ reason, values }),
  };
  // The call runs or is sent. The turn works, or continues its earlier wait.
  if (approved) return [answer];
  return [answer, ...resume(state, turn, [{ item, result: denied(operation, "denied", reason) }])];
}

/**
 * Reports whether an operation already has this answer. Throws `CONFLICT` for a different answer, or if the operation has ended or needs no
 * answer (APPROVE-4).
 */
export function isAnswered(operation: Operation, approved: boolean): boolean {
  const { approval, status, agent } = operation;
  if (awaitsApproval(operation)) return false;
  const below = (agent?.asks ?? []).map(({ operationId }) => operationId).join(" or ");
  if (below !== "") throw refused(`it waits for an agent that asks. Answer ${below}.`);
  switch (approval?.outcome) {
    case "approved":
      if (approved) return true;
      throw refused("it was approved before. To stop it, stop its turn.");
    case "denied":
      if (!approved) return true;
      throw refused("it was denied before.");
    case "expired":
      throw refused("its deadline has passed.");
    case "superseded":
      throw refused("a newer message came first.");
    default:
      throw refused(status === "cancelled" ? "it was stopped." : "it needs no approval.");
  }
}

/** Returns the decisions on calls without approval. Each also needs its result. */
export function unapproved(
  { n: turn }: Turn,
  waiting: readonly Operation[],
  outcome: Denial,
): { answers: AgentDecision[]; results: ItemResult[] } {
  return {
    answers: waiting.map(({ item }) => ({ type: "RESOLVE_APPROVAL", turn, item, outcome })),
    results: waiting.map((operation) => ({ item: operation.item, result: denied(operation, outcome) })),
  };
}

/** Denies the calls of a turn that wait for a person, because a newer message came (APPROVE-5). */
export function supersede(turn: Turn): AgentDecision[] {
  const waiting = openOperations(turn).filter(awaitsApproval);
  if (waiting.length === 0) return [];
  const { answers, results } = unapproved(turn, waiting, "superseded");
  const settle = results.map((given) => ({ type: "RESUME_FROM_TOOL" as const, turn: turn.n, ...given }));
  return [...answers, ...settle];
}

/** Returns a turn as `supersede` leaves it, for notes to other turns. */
export function superseded(turn: Turn): Turn {
  const operations = turn.operations.map((operation): Operation => {
    if (!awaitsApproval(operation)) return operation;
    return { ...operation, status: "failed", result: denied(operation, "superseded") };
  });
  return { ...turn, operations };
}

/** Returns the result of a call that was not approved, for the model. */
function denied({ toolCallId, name, elicited }: Operation, outcome: Denial, reason?: string): ToolResult {
  const what =
    elicited === undefined ? `The call of "${name}" did not run` : `"${name}" asked a person and stopped`;
  return failure(toolCallId, "APPROVAL_DENIED", `${what}: ${whyOf(outcome, reason)}`);
}

/**
 * Throws `INVALID_INPUT` for an approval whose values do not fit the question of the operation, and `CONFLICT` for an answer to an earlier
 * question of the call (ELICIT-5).
 */
export function checkValues(
  { elicited }: Operation,
  { approved, values, round }: Pick<ApprovalResolved, "approved" | "values"> & { round?: number },
): void {
  if (elicited !== undefined && round !== undefined && round !== elicited.round)
    throw refused("the call asks another question now.");
  if (!approved) return;
  if (elicited !== undefined && values !== undefined && round === undefined)
    throw invalidAt("/round", "Is required with `values`: give the `round` of the question.");
  const problem = valuesProblem(elicited, values);
  if (problem !== null) throw invalidAt("/values", problem, `The answer is not valid: /values: ${problem}`);
}

function valuesProblem(elicited: Operation["elicited"], values: JsonObject | undefined): string | null {
  if (elicited === undefined)
    return values === undefined ? null : "Must be absent, because the call asks no question.";
  if (values === undefined) return "Is required: the call asks a question. Give `{}` if it needs no values.";
  if (utf8Length(JSON.stringify(values)) > MAX_VALUES_BYTES)
    return `Must have at most ${MAX_VALUES_BYTES} bytes of JSON.`;
  const { schema = { type: "object", maxProperties: 0 } } = elicited;
  const problems = violations(schema, values) ?? ["The schema of the question cannot be checked."];
  return problems.length === 0 ? null : problems.join("; ");
}

function whyOf(outcome: Denial, reason: string | undefined): string {
  switch (outcome) {
    case "denied": {
      const given = reason === undefined ? "." : `, with this reason: ${JSON.stringify(reason)}`;
      return `a person denied it${given}`;
    }
    case "expired":
      return "it was not approved in time.";
    case "superseded":
      return "a newer message came before anybody approved it.";
    default:
      return outcome satisfies never;
  }
}

function refused(why: string): DramatisError {
  return conflict(`The answer was not accepted for this operation: ${why}`);
}

/** Plans after a request of a called agent, or after its answer. */
export function planAgentAsked(
  { active }: Pick<ConversationState, "active">,
  { turn: n, item, attempt, ask, outcome }: AgentAsked,
): AgentDecision[] {
  const turn = active.get(n);
  if (turn === undefined) return [];
  const operation = openCalls(turn).find((call) => call.item === item);
  if (operation?.status !== "dispatched" || operation.attempt !== attempt) return [];
  const { asks = [], answered = [] } = operation.agent ?? {};
  if (answered.includes(ask.operationId)) return [];
  if (outcome !== undefined) return [{ type: "NOTE_ANSWER", turn: n, item, ask, outcome }];
  const isKnown = asks.some(({ operationId }) => operationId === ask.operationId);
  if (isKnown || asks.length >= MAX_ASKS || asksIn(active) >= MAX_CONVERSATION_ASKS) return [];
  const blocking = blockingOperations(turn);
  const left = blocking.map((one) => (one.item === item ? withAsk(one, ask) : one));
  return [{ type: "NOTE_ASK", turn: n, item, ask }, ...announceWait(n, blocking, left)];
}

function asksIn(active: ConversationState["active"]): number {
  const calls = [...active.values()].flatMap(openCalls);
  return calls.reduce((sum, { agent }) => sum + (agent?.asks?.length ?? 0), 0);
}
