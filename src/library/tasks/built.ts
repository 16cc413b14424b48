/** The results of `definePersona`, `defineTool`, `defineTask`, `defineAction`, `definePrompt` and `defineWorkflow`. */
import type { ModelProfile } from "../../model/profile.ts";
import type { ToolEffect } from "../../protocol/definition-parts.ts";
import type { Persona, ToolDefinition } from "../../protocol/definitions.ts";
import type {
  CodeActionDefinition,
  InlineAction,
  PromptDefinition,
  TaskDefinition,
} from "../../protocol/task-definition.ts";
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import type { Defined, Run } from "../tools/tool.ts";

export interface DefinedPersona extends Defined<Persona> {
  /** The workflows in its hooks; absent if no hook has a workflow in code. `defineLibrary` adds them. */
  readonly workflows?: readonly Workflow[];
}

/** An agent in code. `collectAgents` adds the tools that ask its colleagues. */
export interface AgentInCode extends DefinedPersona, Made<"agent"> {
  readonly tools: readonly (Tool | Task | Workflow | DefinitionReference)[];
  /** The agents that it may ask, in code or by id. */
  readonly colleagues: () => readonly (AgentInCode | string)[];
  /** Absent for the default model. */
  readonly modelProfile?: Defined<ModelProfile>;
  /** Absent for the default project. */
  readonly projectIds?: string[];
}

/** A tool: the definition that the model sees, and its code. */
export interface Tool extends Defined<ToolDefinition> {
  /** The task that the tool runs; absent for other tools and for a reference to a task. */
  readonly task?: Task;
  /** The workflow that the tool runs; absent for other tools and for a reference to a workflow. */
  readonly workflow?: Workflow;
  /** The agent that answers the tool; absent for other tools and for an agent by id. */
  readonly agent?: AgentInCode;
  readonly run: Run;
}

/** A prompt of a library. */
export type Prompt = Defined<PromptDefinition>;

/** The definitions inside a task or an action. `defineLibrary` adds them to the library. */
export interface Embedded {
  readonly actions: readonly LibraryAction[];
  readonly prompts: readonly Prompt[];
  readonly modelProfiles: readonly Defined<ModelProfile>[];
}

/** The kind of a built definition. Untyped code may confuse tasks, actions and workflows. */
interface Made<What extends string> {
  readonly made: What;
}

/** A function that steps of tasks run. */
export interface CodeAction extends Defined<CodeActionDefinition>, Made<"action"> {
  readonly embedded: Embedded;
  /** Checks the input, runs the function, and checks the output. Throws `ToolError`. */
  readonly run: Run;
}

/** An action without code, with an id in a library. */
export interface NamedAction extends Defined<InlineAction>, Made<"action"> {
  readonly embedded: Embedded;
  readonly run?: never;
}

/** An action of a library. Steps refer to it. */
export type LibraryAction = CodeAction | NamedAction;

/** The types of the input and the output of a task or a workflow. Only the compiler reads them; the member does not exist. */
interface Typed<Input, Result> {
  readonly types?: { readonly input: Input; readonly result: Result };
}

/** A task: a function, or steps. Hooks, tools and workflows run it. Models do not see it. */
export interface Task<Input = unknown, Result = unknown>
  extends Defined<TaskDefinition>,
    Made<"task">,
    Typed<Input, Result> {
  readonly embedded: Embedded;
  /** Effect of running it twice; `once` if a step refers to an action that the task does not contain. */
  readonly effect: ToolEffect;
  /** The function of a task without steps. */
  readonly run?: Run;
}

/** The tasks, workflows and agents in the nodes of a workflow. */
export interface EmbeddedInWorkflow {
  readonly agents: readonly AgentInCode[];
  readonly tasks: readonly Task[];
  readonly workflows: readonly Workflow[];
}

/** A workflow in code. */
export interface Workflow<Input = unknown, Result = unknown>
  extends Defined<WorkflowDefinition>,
    Made<"workflow">,
    Typed<Input, Result> {
  readonly embedded: EmbeddedInWorkflow;
}

/** Returns the kind of a built definition; `undefined` for other values. */
export function madeAs(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("definition" in value) || !("made" in value))
    return undefined;
  return typeof value.made === "string" ? value.made : undefined;
}

export function isTask(value: unknown): value is Task {
  return madeAs(value) === "task";
}

export function isLibraryAction(value: unknown): value is LibraryAction {
  return madeAs(value) === "action";
}

export function isWorkflow(value: unknown): value is Workflow {
  return madeAs(value) === "workflow";
}

export function isAgent(value: unknown): value is AgentInCode {
  return madeAs(value) === "agent";
}

/** Merges embedded definitions, without duplicates. */
export function joined(parts: readonly Embedded[]): Embedded {
  return {
    actions: [...new Set(parts.flatMap(({ actions }) => actions))],
    prompts: [...new Set(parts.flatMap(({ prompts }) => prompts))],
    modelProfiles: [...new Set(parts.flatMap(({ modelProfiles }) => modelProfiles))],
  };
}
