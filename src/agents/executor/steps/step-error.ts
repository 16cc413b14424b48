/** The errors of steps. */
import { ToolError } from "../../../library/tools/tool-error.ts";
import type { PinnedStep } from "../../../protocol/task-definition.ts";
import { DramatisError, toErrorData } from "../../../shared/errors.ts";
import { ExpressionError } from "../../../shared/expressions/values.ts";
import { Spent } from "../../../shared/json-schema/meter.ts";

/** The failure of a step, which names it. */
export class StepError extends ToolError {
  constructor(
    message: string,
    options: ConstructorParameters<typeof ToolError>[1],
    /** Another attempt may succeed: its code broke, or it said so. */
    readonly mayPass: boolean,
  ) {
    super(message, options);
  }
}

/** Returns the error of a step, with its name. */
export function stepError({ ref, onFailure }: PinnedStep, thrown: unknown): StepError {
  const { code, message, retriable, mayPass } = describe(thrown);
  const again = onFailure === "retry";
  const options = { code, retriable: retriable || again, cause: thrown };
  return new StepError(`Step "${ref}": ${message}`, options, mayPass || again);
}

/** Describes what an action, or an expression of its step, threw. */
export function describe(
  thrown: unknown,
): Pick<ToolError, "code" | "message" | "retriable"> & { mayPass: boolean } {
  if (thrown instanceof ToolError) {
    const { code, message, retriable } = thrown;
    return { code, message, retriable, mayPass: retriable };
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
