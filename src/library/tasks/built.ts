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
import type { Defined, Run } from "../tools/tool.ts";

/** A persona. */
export interface DefinedPersona extends Defined<Persona> {
  /** The workflows that stand in its hooks; absent where there are none. `defineLibrary` adds them. */
  readonly workflows?: readonly Workflow[];
}

/** A tool: the definition that the model sees, and its code. */
export interface Tool extends Defined<ToolDefinition> {
  /** The task that the tool runs; absent where it runs something else, or names a task by reference. */
  readonly task?: Task;
  /** The workflow that its calls run; absent where they run something else, or it names a workflow by reference. */
  readonly workflow?: Workflow;
  readonly run: Run;
}

/** A prompt of a library. */
export type Prompt = Defined<PromptDefinition>;

/** The definitions that a task or an action was built with. `defineLibrary` adds them. */
export interface Embedded {
  readonly actions: readonly LibraryAction[];
  readonly prompts: readonly Prompt[];
  readonly modelProfiles: readonly Defined<ModelProfile>[];
}

/** The mark of a builder, since tasks, actions and workflows may stand in each other's places in code without types. */
interface Made<What extends string> {
  readonly made: What;
}

/** A function that steps of tasks run. */
export interface CodeAction extends Defined<CodeActionDefinition>, Made<"action"> {
  readonly embedded: Embedded;
  /** Checks the input, runs the function, and checks the output. Throws `ToolError`. */
  readonly run: Run;
}

/** An action of a kind without code, under an id of a library. */
export interface NamedAction extends Defined<InlineAction>, Made<"action"> {
  readonly embedded: Embedded;
  readonly run?: never;
}

/** An action of a library, which steps name. */
export type LibraryAction = CodeAction | NamedAction;

/** A task: a function, or steps. No model sees it: hooks and tools name it. */
export interface Task extends Defined<TaskDefinition>, Made<"task"> {
  readonly embedded: Embedded;
  /** Effect of running it twice; `once` where an action is named by reference. */
  readonly effect: ToolEffect;
  /** The function of a task without steps. */
  readonly run?: Run;
}

/** The tasks and workflows that stand in a workflow's nodes. */
export interface EmbeddedInWorkflow {
  readonly tasks: readonly Task[];
  readonly workflows: readonly Workflow[];
}

/** A workflow in code. */
export interface Workflow extends Defined<WorkflowDefinition>, Made<"workflow"> {
  readonly embedded: EmbeddedInWorkflow;
}

/** Returns what a builder made a value as; `undefined` for references, data, and what is nothing of this project. */
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

/** Joins embedded definitions, each once. */
export function joined(parts: readonly Embedded[]): Embedded {
  return {
    actions: [...new Set(parts.flatMap(({ actions }) => actions))],
    prompts: [...new Set(parts.flatMap(({ prompts }) => prompts))],
    modelProfiles: [...new Set(parts.flatMap(({ modelProfiles }) => modelProfiles))],
  };
}
