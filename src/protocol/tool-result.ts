/** The result of a tool call. */
import type { Json } from "../shared/json.ts";

export const TOOL_ERROR_CODES = [
  "EXECUTION_FAILED",
  "TIMEOUT",
  "NOT_FOUND",
  "PERMISSION_DENIED",
  "INVALID_INPUT",
  "AGENT_DECLINED",
  "INTERNAL_ERROR",
] as const;

export type ToolErrorCode = (typeof TOOL_ERROR_CODES)[number];

/** What a tool answered, as the model is told. */
export interface ToolResult {
  tool_call_id: string;
  success: boolean;
  result?: Json;
  error?: { code: ToolErrorCode; message: string; retriable: boolean };
}
