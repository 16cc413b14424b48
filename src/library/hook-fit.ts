/**
 * Checks of the workflows that hooks of personas, and their consolidations, run. Pure.
 *
 * HOOKFIT-1  The input schema of such a workflow takes what the hook gives: it requires no other member, wants no other type of one, and
 *            refuses none.
 * HOOKFIT-2  The output of such a workflow is what the hook must return: a context hook maps the members of the provider's request, an
 *            extraction or a consolidation maps `operations`, a list.
 */
import type { HookName } from "../protocol/definitions.ts";
import type { WorkflowDefinition } from "../protocol/workflow-definition.ts";
import { DramatisError } from "../shared/errors.ts";
import { isJsonObject, type JsonObject } from "../shared/json.ts";
import { mismatch } from "./schema-paths.ts";

/** The uses of a task or a workflow by a persona's memory: its hooks, and the consolidation. */
export type HookUse = HookName | "consolidation";

const TEXT = { type: "string" };
const LIST = { type: "array" };
const OBJECT = { type: "object" };
const MESSAGE = { type: ["string", "array"] };

/** The members that a hook always gets, and those that it may get. */
const GIVEN: Record<HookUse, { always: JsonObject; sometimes: JsonObject }> = {
  contextAssembly: {
    always: {
      conversation_id: TEXT,
      turn_id: TEXT,
      user_message: MESSAGE,
      recent_turns: LIST,
      model_profile: OBJECT,
      tool_definitions: LIST,
      system_instructions: LIST,
      active_turns: LIST,
    },
    sometimes: { summary: TEXT, reply_to: OBJECT, output: OBJECT, tool_choice: {} },
  },
  memoryExtraction: {
    always: {
      conversation_id: TEXT,
      turn_id: TEXT,
      caller: OBJECT,
      user_message: MESSAGE,
      user_text: TEXT,
      agent_message: { type: ["string", "null"] },
      turn_transcript: LIST,
      completed_at: TEXT,
      said_at: TEXT,
    },
    sometimes: { time_zone: TEXT, memories: LIST },
  },
  consolidation: { always: { memories: LIST, subject: OBJECT, type: TEXT }, sometimes: {} },
};

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

/**
 * Throws `INVALID_INPUT` for a workflow that cannot be this hook.
 * @example checkHookFit("contextAssembly", "my/assemble", workflow.definition);
 */
export function checkHookFit(name: HookUse, workflow: string, definition: Schemas): void {
  const problem = inputProblem(name, definition) ?? outputProblem(name, definition);
  if (problem === null) return;
  throw new DramatisError("INVALID_INPUT", `The workflow "${workflow}" cannot be \`${name}\`: ${problem}`);
}

function inputProblem(name: HookUse, { inputSchema }: Schemas): string | null {
  const { always, sometimes } = GIVEN[name];
  const properties = { ...always, ...sometimes };
  const problem = mismatch({ ...OBJECT, properties, required: Object.keys(always) }, inputSchema);
  if (problem !== null) return `the input of the hook ${problem} by \`inputSchema\`. Change the schema.`;
  if (inputSchema.additionalProperties !== false) return null;
  const known = isJsonObject(inputSchema.properties) ? inputSchema.properties : {};
  const refused = Object.keys(properties).filter((member) => !Object.hasOwn(known, member));
  if (refused.length === 0) return null;
  return `\`inputSchema\` refuses what the hook gives: ${refused.join(", ")}. Remove \`additionalProperties: false\`, in TypeScript with z.looseObject({…}).`;
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
