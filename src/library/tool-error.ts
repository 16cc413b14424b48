/** How a tool says what went wrong. */
import type { ToolErrorCode } from "../protocol/executor-api.ts";

/**
 * Thrown by a tool's `execute`: the model is told code and message, so the message says what it should do differently.
 * @example throw new ToolError("No such city. Give its English name.", { code: "NOT_FOUND" });
 */
export class ToolError extends Error {
  override readonly name = "ToolError";
  /** `EXECUTION_FAILED` when absent. */
  readonly code: ToolErrorCode;
  /** Whether the same call may succeed later; `false` when absent. */
  readonly retriable: boolean;

  constructor(message: string, options: { code?: ToolErrorCode; retriable?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code ?? "EXECUTION_FAILED";
    this.retriable = options.retriable ?? false;
  }
}
