/**
 * Checks one tool call before anything runs: known, well-formed, valid against its schema, allowed by the gate. A call
 * that fails a check gets its result at once, and its target is never invoked.
 */
import type { RequestedToolCall } from "../../../adapters/types.ts";
import { isJsonObject } from "../../../shared/json.ts";
import type { ToolErrorCode, ToolResult } from "../../executor/types.ts";
import type { ConversationRecord, Operation } from "../state.ts";
import type { Gate } from "./gate.ts";
import { violations } from "./schema-check.ts";

export function checkToolCall(
  record: ConversationRecord,
  call: RequestedToolCall,
  gate: Gate,
): Omit<Operation, "item" | "reply"> {
  const pinned = record.chain.tools.find((tool) => tool.definition.name === call.name);
  const input = isJsonObject(call.arguments) ? call.arguments : {};
  const operation = {
    toolCallId: call.id,
    name: call.name,
    tool:
      pinned === undefined ? null : { library: pinned.library ?? "", id: pinned.id, version: pinned.version },
    effect: pinned?.definition.effect ?? "pure",
    timeoutMs: pinned?.definition.timeoutMs ?? 0,
    input,
    ...(call.invalidArguments === undefined ? {} : { invalidArguments: call.invalidArguments }),
  } as const;
  const refuse = (code: ToolErrorCode, message: string) => ({
    ...operation,
    result: failure(call.id, code, message),
  });
  if (pinned === undefined) return refuse("NOT_FOUND", `There is no tool named "${call.name}".`);
  if (call.invalidArguments !== undefined) {
    return refuse("INVALID_INPUT", "The arguments are not a JSON object.");
  }
  // A schema that cannot be checked finds nothing: the tool's own check remains.
  const problems = violations(pinned.definition.inputSchema, input) ?? [];
  if (problems.length > 0) return refuse("INVALID_INPUT", problems.join("; "));
  const { tenant, projectId, agentId, id: conversationId } = record;
  if (!isAllowed(() => gate(pinned.definition, input, { tenant, projectId, agentId, conversationId }))) {
    return refuse("PERMISSION_DENIED", `The tool "${call.name}" is not allowed here.`);
  }
  return operation;
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
