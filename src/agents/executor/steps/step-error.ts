/** The errors of steps. */
import { ToolError } from "../../../library/tools/tool-error.ts";
import type { PinnedStep } from "../../../protocol/task-definition.ts";
import { DramatisError, toErrorData } from "../../../shared/errors.ts";
import { ExpressionError } from "../../../shared/expressions/values.ts";
import { Spent } from "../../../shared/json-schema/meter.ts";

export class StepError extends ToolError {
  constructor(
    message: string,
    options: ConstructorParameters<typeof ToolError>[1],
    /** A retry may succeed: its code threw an exception, or it marked the error as transient. */
    readonly mayPass: boolean,
  ) {
    super(message, options);
  }
}

export function stepError({ ref, onFailure }: PinnedStep, thrown: unknown): StepError {
  const { code, message, retriable, mayPass, rule } = describe(thrown);
  const again = onFailure === "retry";
  const options = { code, retriable: retriable || again, rule, cause: thrown };
  return new StepError(`Step "${ref}": ${message}`, options, mayPass || again);
}

export function describe(
  thrown: unknown,
): Pick<ToolError, "code" | "message" | "retriable"> & { mayPass: boolean; rule?: string | undefined } {
  if (thrown instanceof ToolError) {
    const { code, message, retriable, rule } = thrown;
    return { code, message, retriable, rule, mayPass: retriable };
  }
  if (thrown instanceof Spent) return invalid("The expressions and texts of the task took too many steps.");
  if (thrown instanceof ExpressionError) return invalid(thrown.message);
  if (thrown instanceof DramatisError) {
    const { message, retriable } = toErrorData(thrown);
    return { code: "EXECUTION_FAILED", message, retriable, mayPass: retriable };
  }
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return {
    code: "EXECUTION_FAILED",
    message: message || "It failed without a message.",
    retriable: false,
    mayPass: true,
  };
}

function invalid(message: string) {
  return { code: "INVALID_INPUT", message, retriable: false, mayPass: false } as const;
}
