/**
 * Runs a pinned task of steps, and validates its input and its result.
 *
 * TASKRUN-1  A task receives only input that its schema accepts, with the schema's defaults filled in. Its result must fit its schema, too.
 */
import type { ToolContext } from "../../../library/define/define.ts";
import { ToolError } from "../../../library/tools/tool-error.ts";
import type { PinnedTask } from "../../../protocol/task-definition.ts";
import type { Json } from "../../../shared/json.ts";
import { withDefaults } from "../../../shared/json-schema/defaults.ts";
import { checkBudget, violations } from "../../../shared/json-schema/violations.ts";
import type { ActionPorts } from "./run-action.ts";
import { runSteps } from "./run-steps.ts";
import type { TaskRecord } from "./task-record.ts";

/** Returns the result of a task. Throws `ToolError`. */
export async function runTask(
  task: PinnedTask,
  given: Json,
  { context, ports, record }: { context: ToolContext; ports: ActionPorts; record: TaskRecord },
): Promise<Json> {
  const { id, inputSchema, outputSchema } = task;
  const meter = checkBudget();
  const input = withDefaults(inputSchema, given);
  const problems = violations(inputSchema, input, meter);
  if (problems === null || problems.length > 0) {
    const why = problems?.join("; ") ?? "its schema cannot be checked";
    throw new ToolError(`The input does not match the schema of the task "${id}": ${why}`, {
      code: "INVALID_INPUT",
    });
  }
  const result = await runSteps(task, input, { context, ports, meter, record });
  if (outputSchema === undefined) return result;
  const misfits = violations(outputSchema, result);
  if (misfits !== null && misfits.length === 0) return result;
  const why = misfits?.join("; ") ?? "its schema cannot be checked";
  throw new ToolError(`The output does not match the schema of the task "${id}": ${why}`);
}
