/**
 * Checks a tool call before anything runs: the tool exists, its arguments fit its schema, and the gate allows the call. A call that fails a
 * check gets its result at once and never runs.
 *
 * CHECK-1  Planning a reply again, as its commit does after its preview, asks the gate no second time. After a crash the gate is asked
 *          again.
 * TOOLCHOICE-2  A turn with the choice `none` runs no tool and asks for no approval. A call by the model gets `PERMISSION_DENIED`.
 * POLICY-4  A call that a rule denies never runs. Its error has the rule and its reason. A call that a rule asks for waits for a person, as
 *           a call of a tool with `approval`. Calls of client tools cannot wait, so they are denied. The journal has each decision of a rule.
 * POLICY-7  If a rule denies a call while it runs, as a workspace or a request does, the result names the rule, and the journal has the denial.
 * POLICY-5  A persona with `allowedActions` calls no other tool.
 * NAME-1  Only the exact name of a tool calls it. A call of another name gets an error that lists the names of the tools.
 * INMAP-1  A tool with an input mapping runs with the mapped input. Other tools run with the model's input, unchanged. A call whose input
 *          cannot be mapped gets `INVALID_INPUT` and never runs. The gate, the model and readers see the model's input. Calls that need an
 *          approval are the exception (APPROVE-8).
 */
import { READ_RESULT, readResultTool } from "../../../../attachments/large-result.ts";
import { agentCall, agentTarget, callMessage, modeProblem } from "../../../../library/tools/agent-tool.ts";
import { a2aTarget } from "../../../../library/tools/remote-agent.ts";
import { workflowTarget } from "../../../../library/tools/workflow-tool.ts";
import type { RequestedToolCall } from "../../../../model/reply.ts";
import { type Taint, taintMember } from "../../../../model/taint.ts";
import { type Gate, type Verdict, verdictOf } from "../../../../policy/gate.ts";
import { MAX_CALL_BYTES, MAX_CALL_LENGTH } from "../../../../protocol/agent-call.ts";
import { needsApproval } from "../../../../protocol/approval.ts";
import type { ToolDefinition, VersionChain } from "../../../../protocol/definitions.ts";
import type { ToolErrorCode, ToolResult } from "../../../../protocol/executor-api.ts";
import { matchesName } from "../../../../protocol/tool-patterns.ts";
import { defined } from "../../../../shared/defined.ts";
import { ExpressionError } from "../../../../shared/expressions/values.ts";
import { isJsonObject, type JsonObject } from "../../../../shared/json.ts";
import { objectFault } from "../../../../shared/json-fault.ts";
import { type Meter, Spent } from "../../../../shared/json-schema/meter.ts";
import { violations } from "../../../../shared/json-schema/violations.ts";
import { jurisdictionOf } from "../../../../shared/location.ts";
import { shorten } from "../../../../shared/text.ts";
import { utf8Length } from "../../../../shared/utf8.ts";
import {
  APPROVAL_TIMEOUT_MS,
  CLIENT_TOOL_TIMEOUT_MS,
  MAX_TIMEOUTS_IN_A_ROW,
} from "../conversation-limits.ts";
import type { PlanInput } from "../decisions.ts";
import { callDeadline, type Operation, type PolicyNote } from "../operation.ts";
import { targetInput } from "../shown-call.ts";
import { type ConversationIdentity, chainOf } from "../state.ts";
import type { Turn } from "../turn.ts";
import { isTimingOut } from "./repeats.ts";

const NO_CALLS = "The message allows no tool calls, so the tool did not run. Answer in text, without a tool.";
/** Tools that the error of an unknown name lists. */
const MAX_LISTED_TOOLS = 50;
/** Length of a name in such an error. */
const MAX_NAME_QUOTE = 100;

interface Checked {
  /** Absent if the call may run, or may ask a person. */
  refusal?: { code: ToolErrorCode; message: string };
  /** Absent if no rule decided. */
  policy?: PolicyNote;
}

/** The outcomes of checks (CHECK-1): a call belongs to one reply of one turn. */
const outcomes = new WeakMap<RequestedToolCall, Checked>();

/** The rule of personas with `allowedActions`. */
const ALLOWED_ACTIONS = "persona.allowed-actions";
/** The decision about a tool that times out again and again (REPEAT-5). */
const TIMES_OUT: Verdict = {
  decision: "deny",
  rule: "repeated-timeouts",
  reason: `Its last ${MAX_TIMEOUTS_IN_A_ROW} calls timed out. Go on without it, or tell the user.`,
};

/** `taint` has the untrusted origins in the request that led to the call. */
export function checkToolCall(
  record: ConversationIdentity,
  turn: Pick<Turn, "agentId" | "tools" | "toolChoice" | "output" | "foreground" | "operations">,
  call: RequestedToolCall,
  { toolCallId, taint }: { toolCallId: string; taint: Taint },
  {
    now,
    gate,
    clientToolTimeoutMs: timeoutMs = CLIENT_TOOL_TIMEOUT_MS,
    approvalTimeoutMs = APPROVAL_TIMEOUT_MS,
  }: PlanInput,
  budget: Meter,
): Omit<Operation, "item" | "reply"> {
  const { name, invalidArguments } = call;
  const { agentId, tools = [], toolChoice, output, foreground } = turn;
  const { tenant, projectId, id: conversationId } = record;
  const { tools: own, persona, withheld: withheldTools } = chainOf(record, agentId);
  const pinned = own.find(({ definition }) => definition.name === name);
  const brought = pinned === undefined ? tools.find((tool) => tool.name === name) : undefined;
  const isReading = pinned === undefined && brought === undefined && name === readResultTool.name;
  // The effect of a client's tool is unknown, so it counts as `once`.
  const definition: ToolDefinition | undefined =
    brought !== undefined
      ? { ...brought, effect: "once", timeoutMs }
      : isReading
        ? readResultTool
        : pinned?.definition;
  const input = isJsonObject(call.arguments) ? call.arguments : {};
  const target = agentTarget(definition?.target);
  const asked = target && agentCall(target, input);
  const passed = asked?.input ?? input;
  const operation = {
    toolCallId,
    name,
    tool: isReading
      ? READ_RESULT
      : pinned === undefined
        ? null
        : { library: pinned.library ?? "", id: pinned.id, version: pinned.version },
    effect: definition?.effect ?? "pure",
    target: "code",
    mode: "sync",
    status: "pending",
    attempt: 1,
    timeoutMs: definition?.timeoutMs ?? 0,
    input,
    ...defined({ invalidArguments }),
  } as const;
  const check = (): Checked => {
    if (toolChoice === "none") return refused("PERMISSION_DENIED", NO_CALLS);
    if (definition === undefined)
      return {
        refusal: missing(record, name, withheldTools, [...own.map((tool) => tool.definition), ...tools]),
      };
    if (invalidArguments !== undefined)
      return refused(
        "INVALID_INPUT",
        `The arguments ${objectFault(invalidArguments)}. Call the tool again with a JSON object.`,
      );
    const unknownMode = target === undefined ? null : modeProblem(target, passed);
    if (unknownMode !== null) return refused("INVALID_INPUT", unknownMode);
    // If the schema cannot be checked, only the tool checks its input.
    const problems = violations(definition.inputSchema, passed, budget) ?? [];
    if (problems.length > 0) return refused("INVALID_INPUT", problems.join("; "));
    const problem = mappingProblem(definition, passed, budget);
    if (problem !== null) return refused("INVALID_INPUT", problem);
    const { allowedActions } = persona.definition.tools?.constraints ?? {};
    const isForbidden = allowedActions !== undefined && !isReading && !matchesName(allowedActions, name);
    const ask = () =>
      gate(definition, input, { tenant, projectId, agentId, conversationId, toolCallId, taint });
    const verdict: Verdict = isForbidden
      ? { decision: "deny", rule: ALLOWED_ACTIONS }
      : isTimingOut(turn.operations, name)
        ? TIMES_OUT
        : decided(ask);
    return judged(name, brought !== undefined, { ...verdict, ...taintMember(taint) });
  };
  const checked = outcomes.get(call) ?? check();
  outcomes.set(call, checked);
  const { refusal, policy } = checked;
  const noted = { ...operation, ...defined({ policy }) };
  if (refusal !== undefined) {
    const { code, message } = refusal;
    return { ...noted, status: "failed", result: failure(toolCallId, code, message) };
  }
  // Only a call that passed every check is the client's, waits for a person, or runs in the background.
  if (brought !== undefined) return { ...noted, target: "client", deadline: now + operation.timeoutMs };
  const runs = workflowTarget(definition?.target) !== undefined;
  const isAsync = definition?.async === true && output === undefined && !foreground;
  const mode = isAsync ? ("async" as const) : ("sync" as const);
  const isRemote = a2aTarget(definition?.target) !== undefined;
  const called =
    target === undefined || asked === undefined
      ? {
          ...noted,
          mode,
          ...(runs && { target: "workflow" as const }),
          ...(isRemote && { remote: "sending" as const, deadline: callDeadline(operation, now) }),
        }
      : {
          ...noted,
          // Who joins has joined at once (LOOPIN-1).
          mode: asked.mode === "loop_in" ? ("sync" as const) : mode,
          target: "agent" as const,
          agent: {
            id: target.agent,
            mode: asked.mode,
            ...defined({
              template: target.template?.name,
              workspace: target.workspace,
              jurisdiction: jurisdictionOf(conversationId),
            }),
          },
          deadline: callDeadline(operation, now),
        };
  if (policy?.decision !== "ask" && !needsApproval(definition?.approval)) return called;
  return { ...called, status: "awaiting_approval", deadline: now + approvalTimeoutMs };
}

/** Refuses a tool that does not exist (NAME-1), or that a sub-agent must not use (SPAWN-1). */
function missing(
  { call }: ConversationIdentity,
  given: string,
  unusable: VersionChain["withheld"] = {},
  offered: readonly { name: string }[],
): NonNullable<Checked["refusal"]> {
  const name = JSON.stringify(shorten(given, MAX_NAME_QUOTE));
  const known = `${listed(offered)} Use one of these names exactly, or answer without a tool.`;
  const hint = offered.length === 0 ? "There are no tools. Answer without a tool." : known;
  const unusableNow = Object.hasOwn(unusable, given) ? unusable[given] : undefined;
  if (unusableNow !== undefined)
    return { code: "PERMISSION_DENIED", message: `The tool ${name} cannot be used. ${unusableNow}` };
  if (call?.bounds === undefined)
    return { code: "NOT_FOUND", message: `There is no tool named ${name}. ${hint}` };
  const { bounds, withheld = {} } = call;
  const reason = Object.hasOwn(withheld, given) ? withheld[given] : undefined;
  const message =
    reason === undefined
      ? `A sub-agent of "${bounds.name}" has no tool ${name}. ${hint}`
      : `A sub-agent of "${bounds.name}" cannot use the tool ${name}: ${reason}.`;
  return { code: "PERMISSION_DENIED", message };
}

/** Lists the first names of tools. */
function listed(offered: readonly { name: string }[]): string {
  const shown = offered.slice(0, MAX_LISTED_TOOLS).map(({ name }) => JSON.stringify(name));
  const more = offered.length - shown.length;
  return `The tools are ${shown.join(", ")}${more === 0 ? "" : ` and ${more} more`}.`;
}

/** Describes why an input cannot be passed on; `null` if it can. */
function mappingProblem(definition: ToolDefinition, input: JsonObject, budget: Meter): string | null {
  try {
    const mapped = targetInput(definition, input, budget);
    return agentTarget(definition.target) === undefined ? null : messageProblem(callMessage(mapped));
  } catch (error) {
    if (error instanceof Spent)
      return "The input is too large to be mapped together with the other checked values.";
    if (error instanceof ExpressionError) return `The input cannot be mapped: ${error.message}`;
    throw error;
  }
}

function messageProblem(message: string): string | null {
  if (message.trim() === "") return "The message to the agent is empty.";
  if (message.length > MAX_CALL_LENGTH)
    return `The message to the agent has ${message.length} characters; the limit is ${MAX_CALL_LENGTH}.`;
  const bytes = utf8Length(JSON.stringify(message));
  return bytes > MAX_CALL_BYTES
    ? `The message to the agent has ${bytes} bytes as JSON; the limit is ${MAX_CALL_BYTES}.`
    : null;
}

/** Returns a call that passed every check, and that no budget has room for (BUDGET-3). */
export function overBudget(operation: Omit<Operation, "item" | "reply">): Omit<Operation, "item" | "reply"> {
  const message = "The budget for tool calls is used up, so the call did not run. Answer without it.";
  return refusedCall(operation, failure(operation.toolCallId, "BUDGET_EXCEEDED", message));
}

/** Returns a call that passed every check of its own, with the result that keeps it from running. */
export function refusedCall(
  { deadline: _deadline, agent: _agent, remote: _remote, ...operation }: Omit<Operation, "item" | "reply">,
  result: ToolResult,
): Omit<Operation, "item" | "reply"> {
  return { ...operation, target: "code", mode: "sync", status: "failed", result };
}

function refused(code: ToolErrorCode, message: string): Checked {
  return { refusal: { code, message } };
}

/** Returns the answer of a gate. A gate that throws denies the call. */
function decided(answer: () => ReturnType<Gate>): Verdict {
  try {
    return verdictOf(answer());
  } catch (error) {
    console.error("The gate failed; the call is denied:", error);
    return { decision: "deny" };
  }
}

/** Returns the outcome of a decision about a call (POLICY-4). */
function judged(name: string, isClient: boolean, note: PolicyNote): Checked {
  const { decision, rule, reason } = note;
  const policy = defined({ policy: rule === undefined && decision === "allow" ? undefined : note });
  if (decision === "allow" || (decision === "ask" && !isClient)) return policy;
  const by = rule === undefined ? "" : ` by the rule "${rule}"`;
  const why = reason === undefined ? "" : ` ${reason}`;
  const message = `The tool "${name}" is not allowed here${by}.${why}`;
  return { ...refused("PERMISSION_DENIED", message), ...policy };
}

export function failure(
  toolCallId: string,
  code: ToolErrorCode,
  message: string,
  retriable = false,
): ToolResult {
  return { tool_call_id: toolCallId, success: false, error: { code, message, retriable } };
}
