/**
 * Checks of the workflows that authors post.
 *
 * AUTHOR-6  Every task and workflow that a posted workflow names exists when it is added, and what is known of their schemas is checked. A
 *           workflow that contains itself, through whatever others, is refused.
 */
import type { WorkflowDefinition } from "../protocol/workflow-definition.ts";
import { DramatisError, type InputIssue } from "../shared/errors.ts";
import { issuesText } from "../shared/validation.ts";
import type { LibraryPorts } from "./authoring.ts";
import { type DefinitionKey, formatReference, parseReference } from "./reference.ts";
import { checkWorkflow } from "./workflows/check-workflow.ts";
import type { KnownSchemas } from "./workflows/soundness/schemas.ts";

/** Levels of sub-workflows below a workflow. */
const MAX_SUB_WORKFLOWS = 10;

/** Returns the workflow. Throws `INVALID_INPUT` with the places of its problems. */
export async function checkedWorkflow(
  { registry }: LibraryPorts,
  key: DefinitionKey,
  definition: WorkflowDefinition,
): Promise<WorkflowDefinition> {
  const known = new Map<string, KnownSchemas>();
  const errors: InputIssue[] = [];
  for (const [index, { task, workflow }] of definition.nodes.entries()) {
    const at = `/nodes/${index}/${task === undefined ? "workflow" : "task"}`;
    try {
      if (task !== undefined) {
        const { definition: found, outputSchema = null } = await registry.runnable(
          parseReference(task, key.library),
        );
        known.set(`task ${task}`, { input: found.inputSchema, output: outputSchema });
      }
      if (workflow !== undefined) {
        const found = await registry.workflow(parseReference(workflow, key.library));
        await refuseLoop(registry, key, found, [formatReference(key)]);
        const { inputSchema, outputSchema = null } = found.definition;
        known.set(`workflow ${workflow}`, { input: inputSchema, output: outputSchema });
      }
    } catch (error) {
      if (!isWrong(error)) throw error;
      errors.push({ path: at, message: error.message });
    }
  }
  if (errors.length === 0)
    errors.push(...checkWorkflow(definition, (kind, reference) => known.get(`${kind} ${reference}`) ?? null));
  if (errors.length === 0) return definition;
  throw new DramatisError("INVALID_INPUT", `The workflow is not valid: ${issuesText(errors)}`, {
    errors: errors.slice(0, 20),
  });
}

type FoundWorkflow = { library: string; id: string; definition: WorkflowDefinition };

/** Throws `INVALID_INPUT` where a workflow contains the one that is added, or nests too deep. */
async function refuseLoop(
  registry: LibraryPorts["registry"],
  added: DefinitionKey,
  { library, id, definition }: FoundWorkflow,
  above: readonly string[],
): Promise<void> {
  const path = [...above, formatReference({ library, id })];
  if (library === added.library && id === added.id)
    throw new DramatisError("INVALID_INPUT", `A workflow contains itself: ${path.join(" > ")}.`);
  if (path.length > MAX_SUB_WORKFLOWS)
    throw new DramatisError(
      "INVALID_INPUT",
      `Workflows may nest ${MAX_SUB_WORKFLOWS} levels deep: ${path.join(" > ")}.`,
    );
  for (const { workflow } of definition.nodes) {
    if (workflow === undefined) continue;
    await refuseLoop(registry, added, await registry.workflow(parseReference(workflow, library)), path);
  }
}

function isWrong(error: unknown): error is DramatisError {
  return error instanceof DramatisError && (error.code === "NOT_FOUND" || error.code === "INVALID_INPUT");
}
