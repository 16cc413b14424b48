/** The codes of tool errors for errors of the platform. */
import type { ToolErrorCode } from "../../protocol/executor-api.ts";
import type { DramatisError } from "../../shared/errors.ts";

/** Returns the code that a tool's result has for an error of the platform. */
export function toolErrorCode({ code }: DramatisError): ToolErrorCode {
  switch (code) {
    case "NOT_FOUND":
    case "INVALID_INPUT":
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
