/**
 * Checks of the workflows that authors post.
 *
 * AUTHOR-6  Every task and workflow that a posted workflow names exists when it is added. Their known schemas are
 *           checked.
 */
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import { type InputIssue, invalid } from "../../shared/errors.ts";
import { issuesText } from "../../shared/validation.ts";
import { isWrongReference } from "../definitions/placed.ts";
import { type DefinitionKey, formatReference, parseReference } from "../definitions/reference.ts";
import type { Registry } from "../registry/registry.ts";
import { Nesting, type Part, readAll } from "../workflows/nesting.ts";
import { checkWorkflow } from "../workflows/soundness/check-workflow.ts";
import type { KnownSchemas } from "../workflows/soundness/schemas.ts";
import { MAX_WORKFLOW_ISSUES } from "../workflows/workflow-limits.ts";
import type { LibraryPorts } from "./authoring.ts";

/** Returns the workflow. Throws `INVALID_INPUT` with the places of its problems. */
export async function checkedWorkflow(
  { registry }: LibraryPorts,
  key: DefinitionKey,
  definition: WorkflowDefinition,
): Promise<WorkflowDefinition> {
  const parts = new PostedParts(registry, key);
  const known = new Map<string, KnownSchemas>();
  const errors: InputIssue[] = [];
  for (const [index, { task, workflow }] of definition.nodes.entries()) {
    const kind = task === undefined ? "workflow" : "task";
    const given = task ?? workflow;
    const name = `${kind} ${given}`;
    if (given === undefined || known.has(name)) continue;
    try {
      known.set(name, await parts.schemas({ kind, reference: parseReference(given, key.library) }));
    } catch (error) {
      if (!isWrongReference(error)) throw error;
      errors.push({ path: `/nodes/${index}/${kind}`, message: error.message });
      if (errors.length === MAX_WORKFLOW_ISSUES || parts.areTooMany) break;
    }
  }
  if (errors.length === 0)
    errors.push(...checkWorkflow(definition, (kind, reference) => known.get(`${kind} ${reference}`) ?? null));
  if (errors.length === 0) return definition;
  throw invalid(`The workflow is not valid: ${issuesText(errors)}`, { errors });
}

/** The tasks and workflows that a posted workflow names. */
class PostedParts {
  readonly #nesting = new Nesting();

  constructor(
    private readonly registry: Registry,
    private readonly posted: DefinitionKey,
  ) {}

  get areTooMany(): boolean {
    return this.#nesting.isFull;
  }

  /** Finds a part, and checks all below it. Throws `NOT_FOUND`, and `INVALID_INPUT`. */
  async schemas(part: Part): Promise<KnownSchemas> {
    const { inputSchema, outputSchema = null } = await this.#find(part);
    return { input: inputSchema, output: outputSchema };
  }

  async #find(part: Part): Promise<Pick<WorkflowDefinition, "inputSchema" | "outputSchema">> {
    const { kind, reference } = part;
    if (kind === "task") {
      this.#nesting.count(part);
      return this.registry.schemas(reference);
    }
    await readAll(this.#nesting.enter(part, [formatReference(this.posted)]), (below) =>
      this.registry.workflow(below),
    );
    return (await this.registry.workflow(reference)).definition;
  }
}
