/**
 * Calls as a person sees them before approval. Pure.
 *
 * APPROVE-8  A request for approval shows the input after the mapping of the tool, and the task or workflow that the tool targets. If the
 *            tool maps its input, the model's input is shown too. The approved call runs with this pinned input and target.
 * WHO-5  The rule of a call is pinned with its tool. The conversation that has the call enforces it, so it holds for each entry point above.
 */
import { parseReference } from "../../../library/definitions/reference.ts";
import { agentCall, agentTarget, taskTarget } from "../../../library/tools/agent-tool.ts";
import { workflowTarget } from "../../../library/tools/workflow-tool.ts";
import { type AnsweredBy, ruleOf } from "../../../protocol/approval.ts";
import type { ToolDefinition, VersionChain } from "../../../protocol/definitions.ts";
import { viewOfElicited } from "../../../protocol/elicitation.ts";
import { defined } from "../../../shared/defined.ts";
import { mapped } from "../../../shared/expressions/mapping.ts";
import type { JsonObject } from "../../../shared/json.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";
import { checkBudget } from "../../../shared/json-schema/violations.ts";
import { userOf } from "./called-workflow.ts";
import type { Operation } from "./operation.ts";
import { type ConversationIdentity, chainOf } from "./state.ts";
import type { Turn } from "./turn.ts";

export interface ShownCall {
  /** The input that the target gets. */
  input: JsonObject;
  /** The model's own input; absent if the tool does not map it. */
  modelInput?: JsonObject;
  /** The task or the workflow that runs, as `library/id`; absent if the tool has no target. */
  target?: string;
}

/** The calls of tools with a mapping, which views show again and again. The tool of an operation is pinned. */
const mappedCalls = new WeakMap<Operation, ShownCall>();

/** Returns the target of a call (APPROVE-8). Planning mapped the input before, so it can be mapped. */
export function shownCall(chain: Pick<VersionChain, "tools">, operation: Operation): ShownCall {
  const known = mappedCalls.get(operation);
  if (known !== undefined) return known;
  const { input } = operation;
  const definition = pinnedTool(chain, operation);
  const target = targetOf(definition, operation.tool?.library);
  if (definition?.inputMapping === undefined) return { input, ...target };
  const shown = { input: targetInput(definition, input, checkBudget()), modelInput: input, ...target };
  mappedCalls.set(operation, shown);
  return shown;
}

/** Returns the input that the target of a tool gets (INMAP-1). Throws `ExpressionError`, and `Spent` beyond the budget. */
export function targetInput(
  { inputMapping, target }: Pick<ToolDefinition, "inputMapping" | "target">,
  given: JsonObject,
  budget: Meter,
): JsonObject {
  const agent = agentTarget(target);
  const input = agent === undefined ? given : agentCall(agent, given).input;
  return inputMapping === undefined ? input : mapped(inputMapping, { input }, budget);
}

/** Returns the rule of the tool of an operation, with the requester, and the rule of the policy that asked. Each is absent without a rule (WHO-5). */
export function answeredBy(
  record: Pick<ConversationIdentity, "agents" | "call">,
  turn: Pick<Turn, "n" | "agentId" | "caller" | "exchange">,
  operation: Pick<Operation, "tool" | "policy" | "elicited">,
): AnsweredBy {
  const rule = ruleOf(pinnedTool(chainOf(record, turn.agentId), operation)?.approval);
  const answerers = {
    ...(rule !== undefined && { rule, ...defined({ requester: userOf(record, turn) }) }),
    ...defined({ elicitation: operation.elicited && viewOfElicited(operation.elicited) }),
  };
  if (operation.policy?.decision !== "ask") return answerers;
  const { decision: _, ...policy } = operation.policy;
  return { ...answerers, policy };
}

/** Returns the task or workflow target of a tool, as a member; `{}` for other tools. */
function targetOf(
  definition: ToolDefinition | undefined,
  home: string | undefined,
): Pick<ShownCall, "target"> {
  const reference = taskTarget(definition?.target)?.task ?? workflowTarget(definition?.target)?.workflow;
  if (reference === undefined) return {};
  const { library, id } = parseReference(reference, home);
  return { target: `${library}/${id}` };
}

/** Returns the pinned definition of an operation's tool, if any. */
function pinnedTool(
  { tools }: Pick<VersionChain, "tools">,
  { tool }: Pick<Operation, "tool">,
): ToolDefinition | undefined {
  const pinned = tools.find(
    ({ library, id, version }) => library === tool?.library && id === tool?.id && version === tool?.version,
  );
  return pinned?.definition;
}
