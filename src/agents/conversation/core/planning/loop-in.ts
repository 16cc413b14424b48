/**
 * Agents that other agents bring into the conversation. Pure.
 *
 * LOOPIN-1  A call in the mode `loop_in` adds the agent to the participants, as a user would. It has its result at once, also if the tool
 *           is `async`. In the same commit a turn of the agent starts: its message is the message of the call, its caller the agent that
 *           called. All readers see both, and the agent stays until it is removed.
 * LOOPIN-2  An unknown agent is `NOT_FOUND`. An agent of other projects is `PERMISSION_DENIED`, like the caller itself and any agent in a
 *           conversation that a call opened. Beyond the bound of TALK-2 the call fails.
 * LOOPIN-3  The agent joins once and one turn starts, also after crashes and after repeated answers with its versions.
 * LOOPIN-4  If the caller's turn has a budget, the new turn gets half of the rest. The caller keeps the other half.
 */
import { agentCall, agentTarget } from "../../../../library/tools/agent-tool.ts";
import type { ToolErrorCode, ToolResult } from "../../../../protocol/executor-api.ts";
import { turnId } from "../../../../protocol/ids.ts";
import type { Handoff } from "../../../../protocol/participants.ts";
import { defined } from "../../../../shared/defined.ts";
import { DramatisError, type ErrorData } from "../../../../shared/errors.ts";
import { callMessageOf } from "../call-envelopes.ts";
import type { Join } from "../change-signals.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { Operation } from "../operation.ts";
import type { AgentInvited } from "../signals.ts";
import { type ConversationState, chainOf, takesPart } from "../state.ts";
import { taintOfCall } from "../taints.ts";
import { operationTraceparent } from "../trace.ts";
import type { Turn } from "../turn.ts";
import { joiningOperations } from "../turn-operations.ts";
import { planJoin } from "./participants.ts";
import { nextAttemptAt, resume } from "./results.ts";
import { failure } from "./tool-call.ts";
import { type Call, startTurns, turnBudgetLeft, without } from "./turn-taking.ts";

/** Plans after the versions of an agent that is to join have come, or the reason why they have not. */
export function planInvited(
  state: ConversationState,
  { turn: n, item, attempt, outcome }: AgentInvited,
  input: PlanInput,
): AgentDecision[] {
  const turn = state.active.get(n);
  const operation = turn && joiningOperations(turn).find((one) => one.item === item);
  if (turn === undefined || operation?.attempt !== attempt) return [];
  if (!("error" in outcome)) return join(state, turn, operation, outcome, input);
  const { error } = outcome;
  const notBefore = error.retriable
    ? nextAttemptAt(chainOf(state.record, turn.agentId), operation, input.now)
    : undefined;
  if (notBefore !== undefined) return [{ type: "RETRY_TASK", turn: n, item, error, notBefore }];
  return resume(state, turn, [{ item, result: refused(operation, error) }]);
}

function join(
  state: ConversationState,
  turn: Turn,
  operation: Operation,
  invitation: Extract<AgentInvited["outcome"], { error?: never }>,
  input: PlanInput,
): AgentDecision[] {
  const { record } = state;
  const { item, toolCallId } = operation;
  const agentId = operation.agent?.id ?? "";
  const participant = { type: "agent", id: agentId } as const;
  const caller = { type: "agent", agentId: turn.agentId, turnId: turnId(turn) } as const;
  const fail = (result: ToolResult) => resume(state, turn, [{ item, result }]);
  const handoff = handoffOf(record, turn, operation);
  const content = callMessageOf(record, turn, operation);
  const traceparent = operationTraceparent(turn, item);
  try {
    const { joined, joins, starts } = bringIn(
      state,
      turn,
      { type: "conversation.participant.add", caller, participant, ...invitation, handoff },
      { agentId, content, traceparent, inputTaint: taintOfCall(turn, operation.reply) },
      input,
    );
    return [
      ...joins,
      ...resume(joined, turn, [
        { item, result: { tool_call_id: toolCallId, success: true, result: { joined: agentId } } },
      ]),
      ...starts,
    ];
  } catch (error) {
    if (error instanceof DramatisError) return fail(refused(operation, error));
    throw error;
  }
}

/**
 * Adds an agent, and starts its turn, in the exchange of `turn` and with half of the rest of its budget. Throws the errors of `planJoin`,
 * and `TOO_MANY_TURNS` if the turn may not start. `joined` is the state with the agent.
 */
export function bringIn(
  state: ConversationState,
  turn: Turn,
  join: Join,
  call: Omit<Call, "budget">,
  input: PlanInput,
): { joined: ConversationState; joins: AgentDecision[]; starts: AgentDecision[] } {
  const { record } = state;
  const { participant, agent } = join;
  const joins = planJoin(state, join, input);
  const isNew = !record.agents.some(({ id }) => id === participant.id);
  const joined: ConversationState = {
    ...state,
    record: {
      ...record,
      participants: takesPart(record, participant)
        ? record.participants
        : [...record.participants, participant],
      agents: isNew && agent !== undefined ? [...record.agents, agent] : record.agents,
    },
  };
  const budget = turnBudgetLeft(state, turn, 2);
  const { before, after } = startTurns(joined, turn, [{ ...call, ...defined({ budget }) }], {
    ...input,
    isCallerOver: false,
  });
  const [refusal] = before;
  if (refusal?.type === "LEAVE_UNASKED")
    throw new DramatisError("TOO_MANY_TURNS", BEYOND[refusal.reason], { retriable: false });
  const lowered: AgentDecision[] =
    turn.budget === undefined || budget === undefined
      ? []
      : [{ type: "LOWER_BUDGET", turn: turn.n, budget: without(turn.budget, budget) }];
  return { joined, joins: [...joins, ...lowered], starts: after };
}

/** Returns the past that the agent of a call is shown. */
function handoffOf(
  record: ConversationState["record"],
  { agentId }: Turn,
  { name, input }: Operation,
): Handoff {
  const tool = chainOf(record, agentId).tools.find(({ definition }) => definition.name === name);
  const target = agentTarget(tool?.definition.target);
  return (target && agentCall(target, input).handoff) ?? "recent";
}

/** The errors of tools for errors of a join or an opening. */
export const TOOL_CODES: Readonly<Record<string, ToolErrorCode>> = {
  NOT_FOUND: "NOT_FOUND",
  FORBIDDEN: "PERMISSION_DENIED",
  INVALID_INPUT: "INVALID_INPUT",
};

function refused(
  { toolCallId }: Operation,
  { code, message, retriable }: Pick<ErrorData, "code" | "message" | "retriable">,
): ToolResult {
  const advice = code === "TOO_MANY_TURNS" ? " Answer yourself." : "";
  return failure(toolCallId, TOOL_CODES[code] ?? "EXECUTION_FAILED", `${message}${advice}`, retriable);
}

const BEYOND = {
  bound: "The limit of agent turns for this user message is reached, so the agent did not join.",
  busy: "Too many turns are active, so the agent did not join.",
  budget: "The budget is in dollars, and a model of this agent has no price, so it did not join.",
} as const;
