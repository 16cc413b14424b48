/**
 * Builders of workflows. They check everything when the module loads.
 *
 * FLOWBUILD-1  An invalid or unsound workflow in code stops the deployment. The error names each place and explains the fix.
 * FLOWBUILD-2  A task, a workflow or an agent inside a node becomes a reference by id: a task and a workflow within the library of the workflow.
 */
import type { z } from "zod";
import type { AgentMode } from "../../protocol/definitions.ts";
import type {
  SynchronizationStrategy,
  WorkflowSynchronization,
  WorkflowTimeout,
  WorkflowTransition,
} from "../../protocol/workflow-definition.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import type { Mapping } from "../../shared/expressions/mapping.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { utf8Length } from "../../shared/utf8.ts";
import { issuesText, validate } from "../../shared/validation.ts";
import { MAX_DEFINITION_BYTES } from "../definitions/definition.ts";
import { dataSchemaOf, isZodSchema, objectSchema } from "../definitions/json-schema-of.ts";
import {
  type AgentInCode,
  type EmbeddedInWorkflow as Embedded,
  isAgent,
  isTask,
  isWorkflow,
  madeAs,
  type Task,
  type Workflow,
} from "../tasks/built.ts";
import { checkWorkflow } from "../workflows/soundness/check-workflow.ts";
import type { Lookup } from "../workflows/soundness/schemas.ts";
import { workflowSchema } from "../workflows/workflow-schema.ts";
import type { Exact, InputOf, WritesOf } from "./typed-mappings.ts";

export type { EmbeddedInWorkflow as Embedded, Workflow } from "../tasks/built.ts";

/** The second argument of `node`. It names a task, a workflow or an agent. If it names no work, tokens pass through the node. */
export interface NodeOptions<
  Input extends Mapping = Mapping,
  Writes extends Mapping = Mapping,
  Taken = unknown,
  Result = unknown,
> {
  name?: string;
  /** A task in code, or a reference to a task. */
  task?: Task<Taken, Result> | DefinitionReference;
  /** The sub-workflow: a workflow in code, or a reference to a workflow. */
  workflow?: Workflow<Taken, Result> | DefinitionReference;
  /** An agent in code, or the id of an agent. */
  agent?: AgentInCode | string;
  /** The mode of the call; `delegate` when absent. */
  mode?: AgentMode;
  /** Time limit of a called agent, in milliseconds. Default: 24 hours. Maximum: 30 days. The wait for a person does not count. */
  timeoutMs?: number;
  /** Expressions over `input`, `state` and `output` for the input of the node. Default: the run's input. */
  inputMapping?: Input;
  /**
   * Writes of the node, by path. The expressions may also use `result`.
   * @example { "state.order": "result", "output.total": "result.total" }
   */
  outputMapping?: Writes;
  resourceBindings?: Readonly<Record<string, string>>;
}

/** A node of a workflow in code. */
export interface NodeInCode<
  Input extends Mapping = Mapping,
  Writes extends Mapping = Mapping,
  Taken = unknown,
  Result = unknown,
> extends NodeOptions<Input, Writes, Taken, Result> {
  readonly ref: string;
}

type CheckedNodes<Nodes extends readonly NodeInCode[], Input, State> = {
  [Index in keyof Nodes]: Nodes[Index] extends NodeInCode<
    infer Mapped,
    infer Writes,
    infer Taken,
    infer Result
  >
    ? NodeInCode<
        InputOf<Mapped, Taken, { input: Input; state: State }>,
        WritesOf<Writes, State, { input: Input; state: State; result: Result }>,
        Taken,
        Result
      >
    : Nodes[Index];
};

/** The argument of `transition`. */
export interface TransitionOptions
  extends Omit<WorkflowTransition, "ref" | "priority" | "synchronization">,
    Partial<Pick<WorkflowTransition, "ref" | "priority">> {
  /** Joins the branches of a group. */
  synchronization?: Omit<WorkflowSynchronization, "strategy" | "onTimeout"> & {
    /** `m_of_n:2` means `{mOfN: 2}`. */
    strategy: SynchronizationStrategy | `m_of_n:${number}`;
    /** `fail` when absent. */
    onTimeout?: WorkflowSynchronization["onTimeout"];
  };
}

/** A transition of a workflow in code. */
export type TransitionInCode = Readonly<TransitionOptions>;

/** The second argument of `defineWorkflow`. */
export interface WorkflowOptions<
  Input extends z.ZodType = z.ZodType,
  Output extends z.ZodType = z.ZodType,
  Context extends z.ZodType = z.ZodType,
  Nodes extends readonly NodeInCode[] = readonly NodeInCode[],
  Results extends Mapping = Mapping,
> {
  name?: string;
  description?: string;
  /** A zod object: the input of a run. */
  input: Input;
  /** The schema of a run's output; any JSON when absent. */
  output?: Output;
  /** The schema of `state`, a zod object. Without it, `state` is read-only. */
  context?: Context;
  /** The members of a run's output: expressions over `input`, `state` and `output`. `{}` when absent. */
  outputMapping?: InputOf<Results, z.input<Output>, { input: z.output<Input>; state: z.output<Context> }>;
  /** The `ref` of the node that runs first. */
  initialNode: string;
  nodes: Exact<Nodes, CheckedNodes<Nodes, z.output<Input>, z.output<Context>>>;
  transitions?: readonly TransitionInCode[];
  /** Time limit of a run, in milliseconds; unlimited when absent. */
  timeoutMs?: number;
  /** The reaction to a timeout; `human_gate` when absent. */
  onTimeout?: WorkflowTimeout;
}

/**
 * Returns a node of a workflow. `defineWorkflow` checks it.
 * @example node("load", { task: loadOrder, inputMapping: { id: "input.orderId" }, outputMapping: { "state.order": "result" } });
 */
export function node<
  const Input extends Mapping,
  const Writes extends Mapping,
  Taken = unknown,
  Result = unknown,
>(
  ref: string,
  options: NodeOptions<
    InputOf<Input, Taken, Record<never, never>>,
    WritesOf<Writes, unknown, { result: Result }>,
    Taken,
    Result
  > = {},
): NodeInCode<Input, Writes, Taken, Result> {
  // SAFETY: the checked mappings are the given mappings.
  return { ref, ...options } as NodeInCode<Input, Writes, Taken, Result>;
}

/**
 * Returns a transition of a workflow. `defineWorkflow` checks it.
 * @example transition({ from: "load", to: "approve", condition: "state.order.total > 100" });
 */
export function transition(options: TransitionOptions): TransitionInCode {
  return { ...options };
}

/**
 * Defines a workflow. Throws `INVALID_INPUT` unless it is valid and sound.
 * @example
 * const greeting = defineWorkflow("greeting", {
 *   input: z.object({ name: z.string() }),
 *   initialNode: "greet",
 *   nodes: [node("greet", { task: "demo/greet", outputMapping: { "output.text": "result" } })],
 *   outputMapping: { text: "output.text" },
 * });
 */
export function defineWorkflow<
  Input extends z.ZodType,
  const Nodes extends readonly NodeInCode[],
  Output extends z.ZodType = z.ZodType,
  Context extends z.ZodType = z.ZodType,
  const Results extends Mapping = Mapping,
>(
  id: string,
  options: WorkflowOptions<Input, Output, Context, Nodes, Results>,
): Workflow<z.input<Input>, z.output<Output>> {
  validate(definitionIdSchema, id, "", "The id of a workflow");
  const what = `Workflow "${id}"`;
  const { input, output, context, nodes, ...fields } = { ...options };
  const schemas = {
    inputSchema: inputOf(what, input),
    outputSchema: schemaOf(`The output of ${what}`, output),
    contextSchema: schemaOf(`The context of ${what}`, context),
  };
  const given = {
    ...fields,
    ...defined(schemas),
    nodes: Array.isArray(nodes) ? nodes.map(withoutCode) : nodes,
  };
  const definition = validate(workflowSchema, given, "", what);
  const bytes = utf8Length(JSON.stringify(definition));
  if (bytes > MAX_DEFINITION_BYTES)
    throw invalid(
      `${what} has ${bytes} bytes as JSON. The maximum is ${MAX_DEFINITION_BYTES}. Move parts into sub-workflows.`,
    );
  const embedded = embeddedOf(nodes);
  const errors = checkWorkflow(definition, lookupIn(embedded));
  if (errors.length > 0) throw invalid(`${what} is not valid: ${issuesText(errors)}`, { errors });
  return { id, definition, made: "workflow", embedded };
}

export function embeddedIn({ embedded }: Workflow): Embedded {
  const inner = embedded.workflows.map(embeddedIn);
  return {
    agents: [...new Set([...embedded.agents, ...inner.flatMap(({ agents }) => agents)])],
    tasks: [...new Set([...embedded.tasks, ...inner.flatMap(({ tasks }) => tasks)])],
    workflows: [...new Set([...embedded.workflows, ...inner.flatMap(({ workflows }) => workflows)])],
  };
}

function inputOf(what: string, input: z.ZodType | undefined) {
  const schema = schemaOf(`The input of ${what}`, input);
  return schema && objectSchema(what, schema);
}

function schemaOf(what: string, schema: z.ZodType | undefined) {
  if (schema === undefined) return undefined;
  if (isZodSchema(schema)) return dataSchemaOf(what, schema);
  throw invalid(`${what} must be a schema of zod 4. Wrap the fields in z.object({…}).`);
}

function withoutCode(given: NodeInCode): object {
  if (typeof given !== "object" || given === null) return given;
  checkPlaces(given);
  const { task, workflow, agent, ...others } = given;
  return {
    ...others,
    ...defined({
      agent: isAgent(agent) ? agent.id : agent,
      task: isTask(task) ? task.id : task,
      workflow: isWorkflow(workflow) ? workflow.id : workflow,
    }),
  };
}

function embeddedOf(nodes: readonly NodeInCode[]): Embedded {
  return {
    agents: [...new Set(nodes.flatMap(({ agent }) => (isAgent(agent) ? [agent] : [])))],
    tasks: [...new Set(nodes.flatMap(({ task }) => (isTask(task) ? [task] : [])))],
    workflows: [...new Set(nodes.flatMap(({ workflow }) => (isWorkflow(workflow) ? [workflow] : [])))],
  };
}

/** Throws `INVALID_INPUT` if `task`, `workflow` or `agent` has a definition of another kind. */
function checkPlaces({ ref, task, workflow, agent }: NodeInCode): void {
  for (const [member, value] of Object.entries({ task, workflow, agent })) {
    const made = madeAs(value);
    if (made === undefined || made === member) continue;
    const fix = made === "action" ? "A node runs tasks. Put the action into a task." : `Write \`${made}\`.`;
    throw invalid(
      `Node "${ref}" has ${made.startsWith("a") ? "an" : "a"} ${made} as its \`${member}\`. ${fix}`,
    );
  }
}

function lookupIn({ tasks, workflows }: Embedded): Lookup {
  return (kind, reference) => {
    if (kind === "task") {
      const task = tasks.find(({ id }) => id === reference);
      if (task === undefined) return null;
      const { inputSchema, outputSchema = null } = task.definition;
      return { input: inputSchema, output: outputSchema };
    }
    const workflow = workflows.find(({ id }) => id === reference);
    if (workflow === undefined) return null;
    const { inputSchema, outputSchema = null } = workflow.definition;
    return { input: inputSchema, output: outputSchema };
  };
}
