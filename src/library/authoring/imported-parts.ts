/**
 * The checks of the tasks and workflows that an imported conversation has pinned. Each is taken apart into what an author would post, and put
 * together again.
 */
import type { ModelProfile } from "../../model/profile.ts";
import type { Pin, ToolEffect } from "../../protocol/definition-parts.ts";
import type { ActionDefinition, PinnedTask, PromptDefinition } from "../../protocol/task-definition.ts";
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import { defined } from "../../shared/defined.ts";
import { hasCode, type InputIssue, invalid, notFound } from "../../shared/errors.ts";
import { canonicalJson, type Json } from "../../shared/json.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { issueAt, issuesText, validate } from "../../shared/validation.ts";
import type { LibraryReference } from "../definitions/reference.ts";
import { modelProfileSchema } from "../personas/persona-schema.ts";
import { pinTask, type TaskParts } from "../tasks/pin.ts";
import { promptSchema } from "../tasks/prompt.ts";
import { taskSchema } from "../tasks/task-schema.ts";
import { checkWorkflow } from "../workflows/soundness/check-workflow.ts";
import { MAX_LEVELS } from "../workflows/workflow-limits.ts";
import { workflowSchema } from "../workflows/workflow-schema.ts";
import { codeActionSchema, pinnedTaskSchema, pinnedWorkflowSchema } from "./imported-schemas.ts";

/** The first words of messages about the pinned versions of a file. */
export const CHAIN = "The set of versions of an agent";

/** The library of the parts of a task that is taken apart. No task is stored with it. */
const PARTS = "parts";

/**
 * Returns a pinned task as it would be pinned now, and the effect of running it twice. `path` is its JSON pointer in the file. Throws
 * `INVALID_INPUT` with the places of its problems.
 */
export async function checkedPinnedTask(
  given: unknown,
  path: string,
): Promise<{ task: PinnedTask; effect: ToolEffect }> {
  const { inputSchema, outputSchema, steps, authored, ...pin } = validate(
    pinnedTaskSchema,
    given,
    path,
    CHAIN,
  );
  const parts = new Parts();
  const posted = steps.map((step, index) => ({
    ...step,
    action: parts.apart(step.action, index, `${path}/steps/${index}/action`),
  }));
  const definition = validate(taskSchema, defined({ inputSchema, outputSchema, steps: posted }), path, CHAIN);
  // SAFETY: the file is JSON. Compute the hash, because the file's hash can belong to another task.
  const hash = await sha256Hex(canonicalJson(given as Json));
  const source = { ...pin, library: PARTS, hash, definition: { ...definition, timeoutMs: 1 } };
  const { task, effect } = await below(path, () => pinTask(parts, source));
  const { library: _, ...pinned } = { ...task, ...pin };
  return {
    task: { ...pinned, ...defined({ library: pin.library, authored }) },
    effect,
  };
}

/** The parts of one task, by the steps that have them. */
class Parts implements TaskParts {
  readonly #actions = new Map<string, Pin & { library: string; definition: ActionDefinition }>();
  readonly #prompts = new Map<string, PromptDefinition>();
  readonly #profiles = new Map<string, ModelProfile>();

  /** Returns an action with references instead of its parts. */
  apart(action: { kind: string; [member: string]: unknown }, index: number, path: string): object {
    const id = `step-${index}`;
    const reference = { library: PARTS, id };
    if (action.kind === "code") {
      const { library, id: name, ...code } = validate(codeActionSchema, action, path, CHAIN);
      const definition = { ...code, inputSchema: { type: "object" } };
      this.#actions.set(id, { library, id: name, version: 0, hash: "", definition });
      return reference;
    }
    const { kind, prompt, profile } = action;
    const references: Record<string, LibraryReference> = {};
    if (kind === "llm" && prompt !== undefined) {
      this.#prompts.set(id, validate(promptSchema, prompt, `${path}/prompt`, CHAIN));
      references.prompt = reference;
    }
    if ((kind === "llm" || kind === "llm.embed") && profile !== undefined) {
      this.#profiles.set(id, validate(modelProfileSchema, profile, `${path}/profile`, CHAIN));
      references.profile = reference;
    }
    return { ...action, ...references };
  }

  async action({ id }: LibraryReference) {
    return found(this.#actions.get(id));
  }

  async prompt({ id }: LibraryReference) {
    return { ...PART, definition: found(this.#prompts.get(id)) };
  }

  async modelProfile({ id }: LibraryReference) {
    return { ...PART, definition: found(this.#profiles.get(id)) };
  }
}

const PART = { library: PARTS, id: "part", version: 0, hash: "" };

function found<Part>(part: Part | undefined): Part {
  if (part !== undefined) return part;
  throw notFound("The file has no such part.");
}

/**
 * Returns a pinned workflow with a checked definition, without parts that no node runs. The content of its tasks and
 * workflows is not checked. `path` is its JSON pointer in the file, and `level` counts the workflows above it. Throws
 * `INVALID_INPUT`.
 */
export function checkedPinnedWorkflow(given: unknown, path: string, level: number) {
  const { tasks, workflows, definition: posted, ...pin } = validate(pinnedWorkflowSchema, given, path, CHAIN);
  const definition = validate(workflowSchema, posted, `${path}/definition`, CHAIN);
  refuse(checkWorkflow(definition), `${path}/definition`);
  const own = {
    tasks: partsOf(definition, "task", tasks),
    workflows: partsOf(definition, "workflow", workflows),
  };
  refuse([...own.tasks.missing, ...own.workflows.missing], path);
  if (own.workflows.parts.length > 0 && level + 1 >= MAX_LEVELS)
    refuse([{ path: "/workflows", message: `Workflows nest ${MAX_LEVELS} levels deep at most.` }], path);
  return { ...pin, definition, tasks: own.tasks.parts, workflows: own.workflows.parts };
}

/** Returns the parts that the nodes of a workflow run, by their `ref`, and the missing parts. */
function partsOf<Part>(
  { nodes }: WorkflowDefinition,
  kind: "task" | "workflow",
  parts: Readonly<Record<string, Part>>,
) {
  const named = nodes.filter((node) => node[kind] !== undefined).map(({ ref }) => ref);
  const missing = named
    .filter((ref) => !Object.hasOwn(parts, ref))
    .map((ref) => ({ path: `/${kind}s`, message: `Must have the ${kind} of the node "${ref}".` }));
  return { missing, parts: Object.entries(parts).filter(([ref]) => named.includes(ref)) };
}

/** Runs a check, and prefixes the places of its errors with `path`. */
export async function below<Value>(path: string, check: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await check();
  } catch (error) {
    if (!hasCode(error, "INVALID_INPUT")) throw error;
    refuse(error.options.errors ?? [{ path: "", message: error.message }], path);
    throw error;
  }
}

/** Throws `INVALID_INPUT` for issues, if there are some. Their places continue `path`. */
function refuse(issues: readonly InputIssue[], path: string): void {
  if (issues.length === 0) return;
  const errors = issues.map((issue) => issueAt(`${path}${issue.path}`, issue.message));
  throw invalid(`${CHAIN} is not valid: ${issuesText(errors)}`, { errors });
}
