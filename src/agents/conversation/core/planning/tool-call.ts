/**
 * Checks one tool call before anything runs: known, well-formed, valid against its schema, allowed by the gate. A call
 * that fails a check gets its result at once, and its target is never invoked.
 */

import type { RequestedToolCall } from "../../../../model/reply.ts";
import type { Gate } from "../../../../policy/gate.ts";
import type { ToolErrorCode, ToolResult } from "../../../../protocol/executor-api.ts";
import { defined } from "../../../../shared/defined.ts";
import { isJsonObject } from "../../../../shared/json.ts";
import { CLIENT_TOOL_TIMEOUT_MS } from "../limits.ts";
import type { ConversationIdentity, Operation, Turn } from "../state.ts";
import { clientToolDefinition } from "./client-tools.ts";
import type { PlanInput } from "./plan-input.ts";
import { violations } from "./schema-check.ts";

export function checkToolCall(
  record: ConversationIdentity,
  { tools = [] }: Pick<Turn, "tools">,
  call: RequestedToolCall,
  { gate, clientToolTimeoutMs = CLIENT_TOOL_TIMEOUT_MS }: Pick<PlanInput, "gate" | "clientToolTimeoutMs">,
): Omit<Operation, "item" | "reply"> {
  const pinned = record.chain.tools.find((tool) => tool.definition.name === call.name);
  const brought = pinned === undefined ? tools.find(({ name }) => name === call.name) : undefined;
  const definition =
    brought === undefined ? pinned?.definition : clientToolDefinition(brought, clientToolTimeoutMs);
  const input = isJsonObject(call.arguments) ? call.arguments : {};
  const operation = {
    toolCallId: call.id,
    name: call.name,
    tool:
      pinned === undefined ? null : { library: pinned.library ?? "", id: pinned.id, version: pinned.version },
    effect: definition?.effect ?? "pure",
    timeoutMs: definition?.timeoutMs ?? 0,
    input,
    ...defined({ invalidArguments: call.invalidArguments }),
  } as const;
  const refuse = (code: ToolErrorCode, message: string) => ({
    ...operation,
    result: failure(call.id, code, message),
  });
  if (definition === undefined) return refuse("NOT_FOUND", `There is no tool named "${call.name}".`);
  if (call.invalidArguments !== undefined) {
    return refuse("INVALID_INPUT", "The arguments are not a JSON object.");
  }
  // A schema that cannot be checked finds nothing: the tool's own check remains.
  const problems = violations(definition.inputSchema, input) ?? [];
  if (problems.length > 0) return refuse("INVALID_INPUT", problems.join("; "));
  const { tenant, projectId, agentId, id: conversationId } = record;
  if (!isAllowed(() => gate(definition, input, { tenant, projectId, agentId, conversationId }))) {
    return refuse("PERMISSION_DENIED", `The tool "${call.name}" is not allowed here.`);
  }
  // Only what a client is really asked to run is the client's.
  return brought === undefined ? operation : { ...operation, client: true };
}

/** A gate that fails lets nothing through. */
function isAllowed(ask: () => ReturnType<Gate>): boolean {
  try {
    return ask() === "allow";
  } catch (error) {
    console.error("The gate failed; the call is denied:", error);
    return false;
  }
}

/** A tool result that reports a failure. */
export function failure(
  toolCallId: string,
  code: ToolErrorCode,
  message: string,
  retriable = false,
): ToolResult {
  return { tool_call_id: toolCallId, success: false, error: { code, message, retriable } };
}
