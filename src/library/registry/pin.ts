/**
 * Pins a workflow: replaces the references of its nodes with content.
 *
 * FLOWPIN-1  A pinned workflow is complete and holds only data. Later versions of its tasks, their references and its
 *            sub-workflows do not affect it. A function stays a name: its deployed code runs. An agent stays a name:
 *            its current definition answers.
 * FLOWPIN-2  A reference without a version means the latest version when the run begins. A bare id means a definition
 *            in the library of the referring workflow.
 * FLOWPIN-3  An error about a part begins with the workflow and the node that name it.
 * FLOWPIN-4  A node never runs a task that needs an approval of each call, because a run has no person to approve it.
 * FLOWPIN-5  A pinned workflow has at most 1 MiB as JSON. Its size is computed before serialization. A workflow that
 *            is too large is refused before all of its tasks are read.
 */
import type { ModelProfile } from "../../model/profile.ts";
import { needsApproval } from "../../protocol/approval.ts";
import type { PinnedNodeTask, PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import { defined } from "../../shared/defined.ts";
import { type DramatisError, invalid } from "../../shared/errors.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { utf8Length } from "../../shared/utf8.ts";
import { placed } from "../definitions/placed.ts";
import { formatReference, type LibraryReference, parseReference } from "../definitions/reference.ts";
import { withModels } from "../tasks/pin.ts";
import { agentTarget, taskTarget } from "../tools/agent-tool.ts";
import { a2aTarget } from "../tools/remote-agent.ts";
import { workflowTarget } from "../tools/workflow-tool.ts";
import { Nesting, type Part, partsOf, readAll } from "../workflows/nesting.ts";
import { MAX_PINNED_WORKFLOW_BYTES } from "../workflows/workflow-limits.ts";
import type { Registry, Resolved } from "./registry.ts";

const TASKS_AT_A_TIME = 8;

export interface PinOptions {
  /** The model for `llm` actions without their own model. */
  defaultProfile: ModelProfile;
  /** Adds settings of the deployment to each profile. */
  complete?(profile: ModelProfile): ModelProfile;
}

/** A value, and its size as JSON in bytes. */
interface Sized<Value> {
  value: Value;
  bytes: number;
}

type Found = Resolved<WorkflowDefinition>;

/**
 * Resolves a workflow, and the tasks and sub-workflows of its nodes. Throws `NOT_FOUND` for a definition that does not exist, and
 * `INVALID_INPUT` for a workflow that cannot run: it nests wrongly, needs an approval, or is too large.
 * @example await pinWorkflow(registry, "office/review@2", { defaultProfile });
 */
export async function pinWorkflow(
  registry: Registry,
  reference: DefinitionReference,
  options: PinOptions,
): Promise<PinnedWorkflow> {
  return pinFound(registry, await registry.workflow(parseReference(reference)), options);
}

/**
 * Pins a tool as a workflow of one node, for calls outside of conversations. Its output is `{result}`. Throws as `pinWorkflow`, and
 * `INVALID_INPUT` for a tool that needs an approval or that an agent answers.
 */
export async function pinTool(
  registry: Registry,
  reference: DefinitionReference,
  options: PinOptions,
): Promise<PinnedWorkflow> {
  const { library, id, version, hash, definition: tool } = await registry.tool(parseReference(reference));
  const { target, inputSchema, inputMapping, name, description } = tool;
  const flow = workflowTarget(target)?.workflow;
  const task = taskTarget(target)?.task ?? { library, id };
  const runs = flow === undefined ? { task: named(task, library) } : { workflow: named(flow, library) };
  if (needsApproval(tool.approval) || (agentTarget(target) ?? a2aTarget(target)) !== undefined)
    throw invalid(
      `The tool "${library}/${id}" needs an approval, or an agent answers it. Call it in a conversation.`,
    );
  const node = {
    ref: "tool",
    ...runs,
    outputMapping: { "state.result": "result" },
    ...defined({ inputMapping }),
  };
  const definition: WorkflowDefinition = {
    ...{ name, description, inputSchema, initialNode: "tool", nodes: [node], transitions: [] },
    contextSchema: { type: "object", properties: { result: {} } },
    outputMapping: { result: "state.result" },
  };
  return pinFound(registry, { library, id, version, hash, definition }, options);
}

async function pinFound(registry: Registry, root: Found, options: PinOptions): Promise<PinnedWorkflow> {
  const nesting = new Nesting<Found>();
  await readAll(nesting.below(root), (below) => registry.workflow(below));
  const tasks = await pinTasks(registry, root, [...nesting.found.values()], options);
  return new Assembly(nesting.found, tasks).of(root).value;
}

/** Pins the tasks of a workflow and of those below it, by reference. */
async function pinTasks(
  registry: Registry,
  root: Found,
  below: readonly Found[],
  options: PinOptions,
): Promise<Map<string, Sized<PinnedNodeTask>>> {
  const parts = new Map<string, Part>();
  for (const part of [root, ...below].flatMap(partsOf)) {
    const name = formatReference(part.reference);
    if (part.kind === "task" && !parts.has(name)) parts.set(name, part);
  }
  const entries = [...parts];
  const tasks = new Map<string, Sized<PinnedNodeTask>>();
  for (let first = 0; first < entries.length; first += TASKS_AT_A_TIME) {
    await Promise.all(
      entries.slice(first, first + TASKS_AT_A_TIME).map(async ([name, { reference, place }]) => {
        const task = await placed(place, () => pinNodeTask(registry, reference, options));
        tasks.set(name, { value: task, bytes: sizeOf(task) });
      }),
    );
    const bytes = [...tasks.values()].reduce((sum, task) => sum + task.bytes, 0);
    if (bytes > MAX_PINNED_WORKFLOW_BYTES) throw tooLargeWorkflow(root, bytes);
  }
  return tasks;
}

async function pinNodeTask(
  registry: Registry,
  reference: LibraryReference,
  { defaultProfile, complete = (profile) => profile }: PinOptions,
): Promise<PinnedNodeTask> {
  const { library, id, definition, task } = await registry.nodeTask(reference);
  const { effect, timeoutMs, retry, approval } = definition;
  if (needsApproval(approval))
    throw invalid(
      `"${library}/${id}" needs a person's approval of each call, which a run cannot get. Name another task, or remove \`approval\` from the deployed tool.`,
    );
  const steps = task && withModels(task, defaultProfile, complete);
  return { library, id, effect, timeoutMs, ...defined({ retry, task: steps }) };
}

/** Puts pinned workflows together, each once. */
class Assembly {
  readonly #made = new Map<string, Sized<PinnedWorkflow>>();

  constructor(
    /** By reference. */
    private readonly workflows: ReadonlyMap<string, Found>,
    /** By reference. */
    private readonly tasks: ReadonlyMap<string, Sized<PinnedNodeTask>>,
  ) {}

  /** Throws `INVALID_INPUT` for a workflow that is too large. */
  of(found: Found): Sized<PinnedWorkflow> {
    const { library, id, version, hash } = found;
    const name = `${formatReference({ library, id, version })} ${hash}`;
    const made = this.#made.get(name) ?? this.#assembled(found);
    this.#made.set(name, made);
    return made;
  }

  #assembled(found: Found): Sized<PinnedWorkflow> {
    const { library, id, version, hash, definition } = found;
    const tasks = new Map<string, Sized<PinnedNodeTask>>();
    const workflows = new Map<string, Sized<PinnedWorkflow>>();
    for (const { ref, task, workflow } of definition.nodes) {
      const pinned = task === undefined ? undefined : this.tasks.get(named(task, library));
      const inner = workflow === undefined ? undefined : this.workflows.get(named(workflow, library));
      if (pinned !== undefined) tasks.set(ref, pinned);
      if (inner !== undefined) workflows.set(ref, this.of(inner));
    }
    const own = { library, id, version, hash, definition };
    // The total size is the size with `0` for each part, plus the sizes of the parts.
    const placeholders = {
      ...own,
      tasks: byRef(tasks, () => 0),
      workflows: byRef(workflows, () => 0),
    };
    const bytes = [...tasks.values(), ...workflows.values()].reduce(
      (sum, part) => sum + part.bytes - 1,
      sizeOf(placeholders),
    );
    if (bytes > MAX_PINNED_WORKFLOW_BYTES) throw tooLargeWorkflow(found, bytes);
    const value = {
      ...own,
      tasks: byRef(tasks, (task) => task.value),
      workflows: byRef(workflows, (workflow) => workflow.value),
    };
    return { value, bytes };
  }
}

function named(reference: DefinitionReference, home: string): string {
  return formatReference(parseReference(reference, home));
}

function byRef<Part, Value>(
  parts: ReadonlyMap<string, Part>,
  take: (part: Part) => Value,
): Record<string, Value> {
  return Object.fromEntries([...parts].map(([ref, part]) => [ref, take(part)]));
}

function sizeOf(value: object): number {
  return utf8Length(JSON.stringify(value));
}

function tooLargeWorkflow({ library, id }: Found, bytes: number): DramatisError {
  return invalid(
    `Workflow "${library}/${id}": Has ${bytes} bytes or more as JSON with the tasks and workflows that its nodes run, each once for each node. The maximum is ${MAX_PINNED_WORKFLOW_BYTES}. Let fewer nodes run large tasks and workflows, or shorten their prompts and schemas.`,
  );
}
