/** Maps errors of the platform to codes of tool errors. */
import type { ToolErrorCode } from "../../protocol/executor-api.ts";

export function toolErrorCode({ code }: { code: string }): ToolErrorCode {
  switch (code) {
    case "NOT_FOUND":
    case "INVALID_INPUT":
    case "PERMISSION_DENIED":
    case "BUDGET_EXCEEDED":
    case "INTERNAL_ERROR":
      return code;
    case "INVALID_JSON":
    case "TOO_LARGE":
      return "INVALID_INPUT";
    case "UNAUTHENTICATED":
    case "FORBIDDEN":
      return "PERMISSION_DENIED";
    default:
      return "EXECUTION_FAILED";
  }
}
