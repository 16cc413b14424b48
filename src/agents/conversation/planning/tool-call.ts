/**
 * Checks one tool call before anything runs: known, well-formed, valid against its schema, allowed by the gate. A call
 * that fails a check gets its result at once, and its target is never invoked.
 */
import { type Schema, Validator } from "@cfworker/json-schema";
import type { RequestedToolCall } from "../../../adapters/types.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { isJsonObject } from "../../../shared/json.ts";
import type { ToolErrorCode, ToolResult } from "../../executor/types.ts";
import type { ConversationRecord, Operation } from "../state.ts";
import type { Gate } from "./gate.ts";

export function checkToolCall(
  record: ConversationRecord,
  call: RequestedToolCall,
  index: number,
  limit: number,
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
  if (index >= limit) return refuse("INVALID_INPUT", `A reply may call at most ${limit} tools.`);
  if (call.invalidArguments !== undefined) {
    return refuse("INVALID_INPUT", "The arguments are not a JSON object.");
  }
  const problems = violations(pinned.definition.inputSchema, input);
  if (problems.length > 0) return refuse("INVALID_INPUT", problems.join("; "));
  const { tenant, projectId, agentId, id: conversationId } = record;
  if (gate(pinned.definition, input, { tenant, projectId, agentId, conversationId }) === "deny") {
    return refuse("PERMISSION_DENIED", `The tool "${call.name}" is not allowed here.`);
  }
  return operation;
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

/** At most this many violations are told to the model. */
const MAX_VIOLATIONS = 5;

function violations(schema: JsonObject, input: JsonObject): string[] {
  const { valid, errors } = validatorOf(schema).validate(input);
  if (valid) return [];
  const leaves = errors.filter((error) => error.keyword !== "properties" && error.keyword !== "items");
  return (leaves.length > 0 ? leaves : errors)
    .slice(0, MAX_VIOLATIONS)
    .map((error) => `${error.instanceLocation.replace(/^#/, "") || "/"}: ${error.error}`);
}

/** Schemas are pinned, so one validator each serves for as long as the record is in memory. */
const validators = new WeakMap<JsonObject, Validator>();

function validatorOf(schema: JsonObject): Validator {
  const known = validators.get(schema);
  if (known !== undefined) return known;
  // The library marks the schema it is given, and ours is not to be changed.
  // SAFETY: a definition's inputSchema was generated or checked as JSON Schema when it was published.
  const validator = new Validator(structuredClone(schema) as Schema, "2020-12", false);
  validators.set(schema, validator);
  return validator;
}
