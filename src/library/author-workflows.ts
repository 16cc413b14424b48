/**
 * Checks of the workflows that authors post.
 *
 * AUTHOR-6  Every task and workflow that a posted workflow names exists when it is added, and what is known of their schemas is checked. A
 *           workflow must not contain itself, directly or through others.
 */
import type { WorkflowDefinition } from "../protocol/workflow-definition.ts";
import { DramatisError, type InputIssue } from "../shared/errors.ts";
import { issuesText } from "../shared/validation.ts";
import type { LibraryPorts } from "./authoring.ts";
import { isWrongReference } from "./placed.ts";
import { type DefinitionKey, formatReference, type LibraryReference, parseReference } from "./reference.ts";
import { checkWorkflow } from "./workflows/check-workflow.ts";
import { MAX_WORKFLOW_ISSUES } from "./workflows/limits.ts";
import type { KnownSchemas } from "./workflows/soundness/schemas.ts";

/** Levels of sub-workflows below a workflow. */
const MAX_SUB_WORKFLOWS = 10;
/** Tasks that a posted workflow names, and workflows below it, together: each is read from the database. */
const MAX_LOOK_UPS = 200;

/** Returns the workflow. Throws `INVALID_INPUT` with the places of its problems. */
export async function checkedWorkflow(
  { registry }: LibraryPorts,
  key: DefinitionKey,
  definition: WorkflowDefinition,
): Promise<WorkflowDefinition> {
  const parts = new WorkflowParts(registry, key);
  const known = new Map<string, KnownSchemas>();
  const errors: InputIssue[] = [];
  for (const [index, { task, workflow }] of definition.nodes.entries()) {
    const kind = task === undefined ? "workflow" : "task";
    const given = task ?? workflow;
    const name = `${kind} ${given}`;
    if (given === undefined || known.has(name)) continue;
    try {
      known.set(name, await parts[kind](parseReference(given, key.library)));
    } catch (error) {
      if (!isWrongReference(error)) throw error;
      errors.push({ path: `/nodes/${index}/${kind}`, message: error.message });
      if (errors.length === MAX_WORKFLOW_ISSUES || error instanceof TooManyParts) break;
    }
  }
  if (errors.length === 0)
    errors.push(...checkWorkflow(definition, (kind, reference) => known.get(`${kind} ${reference}`) ?? null));
  if (errors.length === 0) return definition;
  throw new DramatisError("INVALID_INPUT", `The workflow is not valid: ${issuesText(errors)}`, { errors });
}

class TooManyParts extends DramatisError {
  constructor() {
    super(
      "INVALID_INPUT",
      `A posted workflow may name ${MAX_LOOK_UPS} tasks and workflows, those in its sub-workflows' workflow nodes included. Move parts into tasks of several steps.`,
    );
  }
}

/** Finds what a workflow names. Each method throws `NOT_FOUND`, and `INVALID_INPUT`. */
class WorkflowParts {
  readonly #references = new Set<string>();
  /** The longest way down from each workflow, by the reference that was read: reading one copies it. */
  readonly #chains = new Map<string, readonly string[]>();

  constructor(
    private readonly registry: LibraryPorts["registry"],
    private readonly added: DefinitionKey,
  ) {}

  async task(reference: LibraryReference): Promise<KnownSchemas> {
    this.#count("task", reference);
    const { inputSchema, outputSchema = null } = await this.registry.schemas(reference);
    return { input: inputSchema, output: outputSchema };
  }

  /** Refuses also a workflow that contains the one that is added, or nests too deep. */
  async workflow(reference: LibraryReference): Promise<KnownSchemas> {
    await this.#chain(reference, [formatReference(this.added)]);
    const { inputSchema, outputSchema = null } = (await this.registry.workflow(reference)).definition;
    return { input: inputSchema, output: outputSchema };
  }

  /** Returns the longest way down from a workflow, beginning with itself. Each workflow is walked once. */
  async #chain(reference: LibraryReference, above: readonly string[]): Promise<readonly string[]> {
    this.#count("workflow", reference);
    const { library } = reference;
    const name = formatReference({ library, id: reference.id });
    if (above.includes(name))
      throw invalid(
        `A workflow contains itself: ${[...above.slice(above.indexOf(name)), name].join(" > ")}.`,
      );
    refuseDepth([...above, name]);
    const read = formatReference(reference);
    const known = this.#chains.get(read);
    if (known !== undefined) {
      refuseDepth([...above, ...known]);
      return known;
    }
    const { definition } = await this.registry.workflow(reference);
    let longest: readonly string[] = [];
    for (const workflow of new Set(definition.nodes.map((node) => node.workflow))) {
      if (workflow === undefined) continue;
      const below = await this.#chain(parseReference(workflow, library), [...above, name]);
      if (below.length > longest.length) longest = below;
    }
    const chain = [name, ...longest];
    this.#chains.set(read, chain);
    return chain;
  }

  #count(kind: string, reference: LibraryReference): void {
    this.#references.add(`${kind} ${formatReference(reference)}`);
    if (this.#references.size > MAX_LOOK_UPS) throw new TooManyParts();
  }
}

function refuseDepth(path: readonly string[]): void {
  if (path.length > MAX_SUB_WORKFLOWS)
    throw invalid(`Workflows may nest ${MAX_SUB_WORKFLOWS} levels deep: ${path.join(" > ")}.`);
}

function invalid(message: string): DramatisError {
  return new DramatisError("INVALID_INPUT", message);
}
