/**
 * Guards of calls of other agents. Pure.
 *
 * SPAWN-4  A conversation has at most `quota` sub-agents of one template at a time, three unless the template says otherwise.
 * DELEGATE-2  The depth of calls is limited, and so are the number and total length of a conversation's open calls. An agent cannot call
 *             itself or an agent that waits for its answer. A rejected call fails with an error and is not sent.
 * CALLTREE-1  A conversation has a share of the calls that its tree may have open at a time. The conversation at the top has all of them.
 *             Half of a share, rounded up, is for the conversation's own calls. Each call gets an equal part of the rest, and one part is
 *             kept for later calls. A call keeps its part until it ends. So a tree never has more calls open than it may.
 */
import type { PinnedHook } from "../../../../protocol/definitions.ts";
import type { ToolErrorCode, ToolResult } from "../../../../protocol/executor-api.ts";
import { SUB_AGENT_QUOTA } from "../../../../protocol/sub-agent.ts";
import { userOf, workflowOf } from "../called-workflow.ts";
import { lengthOf } from "../content-size.ts";
import { MAX_CALL_DEPTH, MAX_CALLS_LENGTH, MAX_OPEN_CALLS, MAX_TREE_CALLS } from "../conversation-limits.ts";
import type { CallLimits } from "../decisions.ts";
import type { Operation } from "../operation.ts";
import { type ConversationIdentity, type ConversationState, chainOf } from "../state.ts";
import { templateOf } from "../sub-agents.ts";
import type { Turn } from "../turn.ts";
import { openCalls } from "../turn-operations.ts";
import { failure } from "./tool-call.ts";

export const USUAL_LIMITS: CallLimits = {
  depth: MAX_CALL_DEPTH,
  open: MAX_OPEN_CALLS,
  tree: MAX_TREE_CALLS,
};

/**
 * Returns the chain of callers that ends with a turn's agent, the first agent first. It includes agents that wait for the run that started
 * the turn.
 */
export function pathTo(
  { call }: Pick<ConversationIdentity, "call">,
  { agentId, invited }: Pick<Turn, "agentId" | "invited">,
): string[] {
  return [...(invited?.path ?? call?.path ?? []), agentId];
}

/** Returns the result of a call that may start no run of a workflow; `null` for all others. */
export function runRefusal(
  record: ConversationIdentity,
  turn: Pick<Turn, "n" | "agentId" | "caller" | "exchange" | "invited">,
  operation: Omit<Operation, "item" | "reply">,
  limits: CallLimits = USUAL_LIMITS,
): ToolResult | null {
  const { tool, result, toolCallId } = operation;
  // A model made the reply, not a hook.
  const workflow = workflowOf(chainOf(record, turn.agentId), { tool, reply: 0 });
  if (workflow === undefined || result !== undefined) return null;
  const problem = runProblem(record, turn, limits);
  if (problem === null) return null;
  return failure(toolCallId, "PERMISSION_DENIED", `${problem} Answer without this call.`);
}

/** Returns the result of a hook that may start no run of its workflow; `null` for all others. */
export function hookRunRefusal(
  record: ConversationIdentity,
  turn: Pick<Turn, "n" | "agentId" | "caller" | "exchange">,
  { workflow }: Pick<PinnedHook, "workflow">,
): ToolResult | null {
  const problem = workflow === undefined ? null : runProblem(record, turn);
  return problem === null ? null : failure("", "PERMISSION_DENIED", problem);
}

/** Describes why a turn may start no run of a workflow; `null` if it may. */
function runProblem(
  record: ConversationIdentity,
  turn: Pick<Turn, "n" | "agentId" | "caller" | "exchange">,
  { depth }: CallLimits = USUAL_LIMITS,
): string | null {
  if (userOf(record, turn) === undefined) return "The run would belong to nobody: no user takes part here.";
  if (pathTo(record, turn).length > depth)
    return `At most ${depth} calls of agents may be below each other, and the run of a workflow below them.`;
  return null;
}

/** Returns the result of a call that is not allowed; `null` if it is. `open` are the calls that are open. */
export function callRefusal(
  record: ConversationIdentity,
  turn: Pick<Turn, "agentId" | "invited">,
  { toolCallId, name, agent, input }: Pick<Operation, "toolCallId" | "name" | "agent" | "input">,
  open: readonly Pick<Operation, "input" | "agent">[],
  limits: CallLimits = USUAL_LIMITS,
): ToolResult | null {
  if (agent === undefined) return null;
  const { agentId } = turn;
  const path = pathTo(record, turn);
  const refuse = (code: ToolErrorCode, message: string, retriable = false) =>
    failure(toolCallId, code, message, retriable);
  if (agent.mode === "loop_in" && record.call !== undefined)
    return refuse(
      "PERMISSION_DENIED",
      "Nobody can join here: another agent called you, and you work alone. Call the agent instead, or answer without it.",
    );
  if (agent.mode === "loop_in" && agent.id !== agentId) return null;
  if (path.includes(agent.id)) {
    const who = agent.id === agentId ? "itself" : "an agent that waits for its answer";
    return refuse(
      "PERMISSION_DENIED",
      `An agent cannot call ${who}: "${agent.id}". Answer without this call.`,
    );
  }
  if (path.length > limits.depth)
    return refuse(
      "PERMISSION_DENIED",
      `At most ${limits.depth} calls of agents may be below each other, and this is one more. Answer without this call.`,
    );
  const { own: most } = callsAllowed(record, limits);
  if (most === 0)
    return refuse(
      "EXECUTION_FAILED",
      `At most ${limits.tree} calls of agents may be open at a time for one conversation of a user, and none of them is left for you. Answer without this call.`,
    );
  if (open.length >= most)
    return refuse(
      "EXECUTION_FAILED",
      `At most ${most} calls of agents may be open at a time. Call again when some of them have ended.`,
      true,
    );
  const { name: template, quota = SUB_AGENT_QUOTA } = templateOf(record, agentId, name) ?? {};
  const spawned = open.filter((call) => template !== undefined && call.agent?.template === template);
  if (spawned.length >= quota)
    return refuse(
      "EXECUTION_FAILED",
      `At most ${quota} sub-agents of "${template}" may work at a time. Spawn another when one has ended.`,
      true,
    );
  const length = open.reduce((sum, call) => sum + lengthOf(call.input), lengthOf(input));
  if (length > MAX_CALLS_LENGTH)
    return refuse(
      "EXECUTION_FAILED",
      `The messages of all open calls of agents may have ${MAX_CALLS_LENGTH} characters together. Say less, or call again when some have ended.`,
      true,
    );
  return null;
}

/** Returns the maximum open calls of a conversation, and the share that it may pass to its calls. */
export function callsAllowed(
  { call }: Pick<ConversationIdentity, "call">,
  { open, tree }: Pick<CallLimits, "open" | "tree">,
): { own: number; below: number } {
  const part = Math.min(call?.calls ?? tree, tree);
  const own = Math.min(open, Math.ceil(part / 2));
  return { own, below: part - own };
}

/** Returns the part of each of several calls that begin. */
export function partOfCall({ record, active }: ConversationState, limits: CallLimits, begin: number): number {
  const passedOn = [...active.values()]
    .flatMap(openCalls)
    .reduce((sum, { status, agent }) => sum + (status === "dispatched" ? (agent?.calls ?? 0) : 0), 0);
  const left = Math.max(0, callsAllowed(record, limits).below - passedOn);
  return Math.floor(left / (begin + 1));
}
