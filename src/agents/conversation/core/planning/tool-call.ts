/**
 * Checks a tool call before anything runs: the tool exists, its arguments fit its schema, and the gate allows the call. A
 * call that fails a check gets its result at once and never runs.
 */

import type { RequestedToolCall } from "../../../../model/reply.ts";
import type { Gate } from "../../../../policy/gate.ts";
import type { ToolDefinition } from "../../../../protocol/definitions.ts";
import type { ToolErrorCode, ToolResult } from "../../../../protocol/executor-api.ts";
import { defined } from "../../../../shared/defined.ts";
import { isJsonObject } from "../../../../shared/json.ts";
import type { PlanInput } from "../decisions.ts";
import { CLIENT_TOOL_TIMEOUT_MS } from "../limits.ts";
import type { Operation } from "../operation.ts";
import { type ConversationIdentity, chainOf, type Turn } from "../state.ts";
import { violations } from "./schema-check.ts";

export function checkToolCall(
  record: ConversationIdentity,
  { agentId, tools = [] }: Pick<Turn, "agentId" | "tools">,
  call: RequestedToolCall,
  { now, gate, clientToolTimeoutMs: timeoutMs = CLIENT_TOOL_TIMEOUT_MS }: PlanInput,
): Omit<Operation, "item" | "reply"> {
  const { id: toolCallId, name, invalidArguments } = call;
  const { tenant, projectId, id: conversationId } = record;
  const pinned = chainOf(record, agentId).tools.find(({ definition }) => definition.name === name);
  const brought = pinned === undefined ? tools.find((tool) => tool.name === name) : undefined;
  // The effect of a client's tool is unknown, so it counts as `once`.
  const definition: ToolDefinition | undefined =
    brought === undefined ? pinned?.definition : { ...brought, effect: "once", timeoutMs };
  const input = isJsonObject(call.arguments) ? call.arguments : {};
  const operation = {
    toolCallId,
    name,
    tool:
      pinned === undefined ? null : { library: pinned.library ?? "", id: pinned.id, version: pinned.version },
    effect: definition?.effect ?? "pure",
    target: "code",
    mode: "sync",
    status: "pending",
    attempt: 1,
    timeoutMs: definition?.timeoutMs ?? 0,
    input,
    ...defined({ invalidArguments }),
  } as const;
  const refuse = (code: ToolErrorCode, message: string) => ({
    ...operation,
    status: "failed" as const,
    result: failure(toolCallId, code, message),
  });
  if (definition === undefined) return refuse("NOT_FOUND", `There is no tool named "${name}".`);
  if (invalidArguments !== undefined) return refuse("INVALID_INPUT", "The arguments are not a JSON object.");
  // Where the schema cannot be checked, the tool's own check remains.
  const problems = violations(definition.inputSchema, input) ?? [];
  if (problems.length > 0) return refuse("INVALID_INPUT", problems.join("; "));
  if (!isAllowed(() => gate(definition, input, { tenant, projectId, agentId, conversationId }))) {
    return refuse("PERMISSION_DENIED", `The tool "${name}" is not allowed here.`);
  }
  // Only a call that passed every check is the client's.
  return brought === undefined
    ? operation
    : { ...operation, target: "client", deadline: now + operation.timeoutMs };
}

/** A gate that throws denies the call. */
function isAllowed(verdict: () => ReturnType<Gate>): boolean {
  try {
    return verdict() === "allow";
  } catch (error) {
    console.error("The gate failed; the call is denied:", error);
    return false;
  }
}

/** Returns a tool result that reports a failure. */
export function failure(
  toolCallId: string,
  code: ToolErrorCode,
  message: string,
  retriable = false,
): ToolResult {
  return { tool_call_id: toolCallId, success: false, error: { code, message, retriable } };
}
