/**
 * Checks the tasks and workflows that run as hooks or consolidations of personas. Pure.
 *
 * HOOKFIT-1  The input schema of the task or workflow accepts the input of the hook. It requires no other members, expects the same types, and
 *            rejects no member.
 * HOOKFIT-2  The workflow's output is the result of the hook. A context hook maps the members of the provider's request. An extraction or a
 *            consolidation maps `operations`, a list.
 */
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import { invalid } from "../../shared/errors.ts";
import type { JsonObject } from "../../shared/json.ts";
import { mismatch, refusedMembers } from "../definitions/schema-paths.ts";
import { type HookUse, hookInputSchema } from "./hook-inputs.ts";

const OBJECT = { type: "object" };
const OPERATIONS = {
  ...OBJECT,
  properties: { operations: { type: ["array", "null"] } },
  required: ["operations"],
};

const RETURNED: Record<HookUse, JsonObject> = {
  contextAssembly: OBJECT,
  memoryExtraction: OPERATIONS,
  consolidation: OPERATIONS,
};

type Schemas = Pick<WorkflowDefinition, "inputSchema" | "outputSchema" | "outputMapping">;

/** Throws `INVALID_INPUT` for a task that does not accept the input of this hook. */
export function checkHookTask(
  name: HookUse,
  task: string,
  { inputSchema }: Pick<Schemas, "inputSchema">,
): void {
  const problem = inputProblem(name, inputSchema);
  if (problem === null) return;
  throw invalid(`The task "${task}" cannot be \`${name}\`: ${problem}`);
}

/**
 * Throws `INVALID_INPUT` for a workflow that cannot be this hook.
 * @example checkHookFit("contextAssembly", "my/assemble", workflow.definition);
 */
export function checkHookFit(name: HookUse, workflow: string, definition: Schemas): void {
  const problem = inputProblem(name, definition.inputSchema) ?? outputProblem(name, definition);
  if (problem === null) return;
  throw invalid(`The workflow "${workflow}" cannot be \`${name}\`: ${problem}`);
}

function inputProblem(name: HookUse, inputSchema: JsonObject): string | null {
  const given = hookInputSchema(name);
  const problem = mismatch(given, inputSchema);
  if (problem !== null) return `the input of the hook ${problem} by \`inputSchema\`. Change the schema.`;
  const refused = refusedMembers(given, inputSchema);
  if (refused.length === 0) return null;
  return `\`inputSchema\` rejects members of the hook's input: ${refused.join(", ")}. Remove \`additionalProperties: false\`, in TypeScript with z.looseObject({…}).`;
}

function outputProblem(name: HookUse, { outputSchema, outputMapping = {} }: Schemas): string | null {
  if (
    Object.keys(outputMapping).length === 0 ||
    (name !== "contextAssembly" && !("operations" in outputMapping))
  )
    return name !== "contextAssembly"
      ? "it has no `operations` in `outputMapping`. Map the list of memory operations there."
      : "its `outputMapping` is empty. Map the members of the provider's request there.";
  const problem = outputSchema === undefined ? null : mismatch(outputSchema, RETURNED[name]);
  return problem === null ? null : `its output by \`outputSchema\` ${problem}. Change the schema.`;
}
