import type { ToolErrorCode } from "../../protocol/executor-api.ts";

/**
 * Reports a failure to the model. Throw it in a tool's `execute`. The model receives the code and the message, so the message should explain
 * the fix.
 * @example throw new ToolError("No such city. Give its English name.", { code: "NOT_FOUND" });
 */
export class ToolError extends Error {
  override readonly name = "ToolError";
  /** `EXECUTION_FAILED` when absent. */
  readonly code: ToolErrorCode;
  /** `true` if the same call may succeed later; `false` when absent. */
  readonly retriable: boolean;
  /** The id of the rule that denied the call. With the code `PERMISSION_DENIED`, the journal of the conversation has it as `policy.denied`. */
  readonly rule: string | undefined;

  constructor(
    message: string,
    options: { code?: ToolErrorCode; retriable?: boolean; rule?: string | undefined; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code ?? "EXECUTION_FAILED";
    this.retriable = options.retriable ?? false;
    this.rule = options.rule;
  }
}
