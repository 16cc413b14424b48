/**
 * Builders of libraries in code. They check everything when the module loads, so a mistake stops the deployment, not a
 * conversation.
 *
 * LIB-1  A tool's `execute` gets only input that its zod schema accepted.
 * LIB-2  A tool that declares no effect is `once`: if its outcome is unknown, it never runs again.
 */
import { z } from "zod";
import type { ModelProfile } from "../../model/profile.ts";
import type { AgentTarget, Skill } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import { inputIssues, issuesText, plainly, validate } from "../../shared/validation.ts";
import { modelProfileSchema } from "../personas/persona-schema.ts";
import {
  type AgentInCode,
  type DefinedPersona,
  isAgent,
  joined,
  type LibraryAction,
  type Prompt,
  type Task,
  type Tool,
  type Workflow,
} from "../tasks/built.ts";
import { agentTargetSchema } from "../tools/agent-tool.ts";
import type { Defined } from "../tools/tool.ts";
import {
  checkedId,
  commonOptions,
  definedTool,
  type ToolOptions,
  withId,
  zodSchema,
} from "../tools/tool-definition.ts";
import { ToolError } from "../tools/tool-error.ts";
import { targetFields } from "../tools/tool-forms.ts";
import {
  type RemoteToolOptions,
  remoteTool,
  type TaskToolOptions,
  taskTool,
  type WorkflowToolOptions,
  workflowTool,
} from "./bound-tool.ts";
import { checkLibrary, contentsSchema } from "./check-library.ts";
import { embeddedIn } from "./define-workflow.ts";

export type { Tool } from "../tasks/built.ts";
export type { Defined, ToolContext } from "../tools/tool.ts";
export type { ToolOptions } from "../tools/tool-definition.ts";
export { definePersona, type PersonaOptions } from "./define-persona.ts";

/** The argument of `defineTool` for a tool that another agent answers. */
export interface AgentToolOptions
  extends Omit<ToolOptions<z.ZodType>, "input" | "execute" | "timeoutMs" | "hosts"> {
  /** The agent, in code or by id, the allowed modes, and the default mode. */
  target: Omit<AgentTarget, "agent"> & { agent: AgentInCode | string };
  /** The agent's input, a zod object. Default: `z.object({ message: z.string() })`, with `goal` instead of `message` for a sub-agent. */
  input?: z.ZodType;
  /** Time limit of the whole call, in milliseconds. Default: ten minutes, or five minutes for a sub-agent. Maximum: 30 days. */
  timeoutMs?: number;
}

const optionsSchema = z.strictObject({
  ...commonOptions,
  input: zodSchema,
  execute: z.custom(
    (value) => typeof value === "function",
    "Must be a function that runs the tool. For a tool that an agent answers, give `target: {agent}` instead.",
  ),
});

const agentOptionsSchema = z.strictObject({
  ...commonOptions,
  input: zodSchema.optional(),
  target: agentTargetSchema,
});

/** A library of definitions. */
export interface Library {
  readonly id: string;
  readonly personas: readonly DefinedPersona[];
  readonly tools: readonly Tool[];
  readonly modelProfiles: readonly Defined<ModelProfile>[];
  /** Tasks for hooks, tools and workflows. Models do not see them. */
  readonly tasks?: readonly Task[];
  /** Actions that steps refer to. `defineLibrary` adds the actions inside its tasks. */
  readonly actions?: readonly LibraryAction[];
  /** Texts for models. `defineLibrary` adds the prompts inside its actions. */
  readonly prompts?: readonly Prompt[];
  /** Graphs of tasks, workflows and agents. `defineLibrary` adds the workflows inside its tools, hooks and nodes, and the tasks of their nodes. */
  readonly workflows?: readonly Workflow[];
  /** Instructions for certain tasks, made with `defineSkill`. Personas name them by their names. */
  readonly skills?: readonly Skill[];
}

/**
 * Defines a model profile. Throws `INVALID_INPUT`.
 * @example defineModelProfile("fast", { provider: "openai", modelId: "gpt-4.1-mini", parameters: { temperature: 0 } });
 */
export function defineModelProfile(id: string, profile: ModelProfile): Defined<ModelProfile> {
  return withId(
    checkedId("model profile", id),
    validate(modelProfileSchema, profile, "", `Model profile "${id}"`),
  );
}

/**
 * Defines a tool. Throws `INVALID_INPUT`.
 * @example
 * const greet = defineTool({
 *   name: "greet",
 *   description: "Greets somebody by name.",
 *   input: z.object({ name: z.string() }),
 *   effect: "pure",
 *   execute: ({ name }) => `Hello, ${name}!`,
 * });
 */
export function defineTool<Input extends z.ZodType>(options: ToolOptions<Input>): Tool;
/**
 * Defines a tool that runs a task. Throws `INVALID_INPUT`.
 * @example defineTool({ name: "bill", description: "Bills an order.", target: { task: bill } });
 */
export function defineTool(options: TaskToolOptions): Tool;
/**
 * Defines a tool that runs a workflow. Throws `INVALID_INPUT`.
 * @example defineTool({ name: "review", description: "Reviews documents.", target: { workflow: review } });
 */
export function defineTool(options: WorkflowToolOptions): Tool;
/**
 * Defines a tool that an agent of another server answers, over A2A. Throws `INVALID_INPUT`.
 * @example
 * const askLawyer = defineTool({
 *   name: "ask_lawyer",
 *   description: "Asks the lawyer of another company.",
 *   target: { a2a: "https://law.example.com/a2a/lawyer" },
 * });
 */
export function defineTool(options: RemoteToolOptions): Tool;
/**
 * Defines a tool that another agent answers. Throws `INVALID_INPUT`.
 * @example
 * const askDeveloper = defineTool({
 *   name: "ask_developer",
 *   description: "Has the developer write code. Say exactly what you need.",
 *   target: { agent: "developer" },
 * });
 */
export function defineTool(options: AgentToolOptions): Tool;
export function defineTool<Input extends z.ZodType>(
  options: ToolOptions<Input> | AgentToolOptions | TaskToolOptions | WorkflowToolOptions | RemoteToolOptions,
): Tool {
  const tool = typeof options?.name === "string" ? `Tool "${options.name}"` : "The tool";
  const [target] = targetFields(options);
  if (target === undefined) return codeTool(options as ToolOptions<Input>, tool);
  if (target !== "target" || "execute" in options) {
    const message = `${tool} has \`${target}\`, but a tool in code has either \`execute\` or \`target\`. Remove one, or post the tool by API.`;
    throw invalid(message);
  }
  if (isBound(options, "task")) return taskTool(options, tool);
  if (isBound(options, "workflow")) return workflowTool(options, tool);
  if (isBound(options, "a2a")) return remoteTool(options, tool);
  if (!isBound(options, "agent")) {
    const message = `${tool}: /target: Must be {agent}, {task}, {workflow} or {a2a}. \`agent\` is the id of an agent, \`task\` a task, \`workflow\` a workflow, \`a2a\` the address of an agent of another server.`;
    throw invalid(message);
  }
  const { agent } = options.target;
  const byId = { ...options.target, agent: isAgent(agent) ? agent.id : agent };
  validate(agentOptionsSchema, { ...options, target: byId }, "", tool);
  const { input } = options;
  return {
    ...definedTool(options, tool, { target: byId, ...defined({ input }) }),
    ...(isAgent(agent) ? { agent } : {}),
    run: () => Promise.reject(new ToolError(`"${options.name}" is answered by an agent and runs no code.`)),
  };
}

/** Defines a tool with code. `what` names it in errors, as its author knows it. */
export function codeTool<Input extends z.ZodType>(options: ToolOptions<Input>, what: string): Tool {
  const { execute, input } = validate(optionsSchema, options, "", what) as ToolOptions<Input>;
  return { ...definedTool(options, what, { input }), run: checkedRun(options.name, input, execute) };
}

interface BoundOptions {
  task: TaskToolOptions;
  workflow: WorkflowToolOptions;
  agent: AgentToolOptions;
  a2a: RemoteToolOptions;
}

/** Reports whether the target of a tool has a member. The builder of such a tool checks the rest. */
function isBound<Kind extends keyof BoundOptions>(
  options: object,
  kind: Kind,
): options is BoundOptions[Kind] {
  return (
    "target" in options &&
    typeof options.target === "object" &&
    options.target !== null &&
    kind in options.target
  );
}

/** Wraps the code of a tool with a check of its input (LIB-1). */
function checkedRun<Input extends z.ZodType>(
  name: string,
  input: Input,
  execute: ToolOptions<Input>["execute"],
): Tool["run"] {
  return async (value, context) => {
    const parsed = await input.safeParseAsync(value, { error: plainly });
    if (parsed.success) return execute(parsed.data, context);
    const issues = issuesText(inputIssues(parsed.error));
    throw new ToolError(`The input does not match the schema of "${name}": ${issues}`, {
      code: "INVALID_INPUT",
    });
  };
}

/**
 * Defines a library. A reference without a library, as in `toolIds: ["greet"]`, means a definition of the same library.
 * Throws `INVALID_INPUT` for duplicate ids and for references to definitions that the library does not have.
 * @example defineLibrary("my", { personas: [guide], tools: [weather] });
 */
export function defineLibrary(id: string, contents: Partial<Omit<Library, "id">>): Library {
  const checked = checkedId("library", id);
  validate(contentsSchema, contents, "", `Library "${id}"`);
  const { personas = [], tools = [], modelProfiles = [], actions = [], prompts = [], skills = [] } = contents;
  const named = [
    ...(contents.workflows ?? []),
    ...tools.flatMap(({ workflow }) => workflow ?? []),
    ...personas.flatMap((persona) => persona.workflows ?? []),
  ];
  const inNodes = named.map(embeddedIn);
  const workflows = [...new Set([...named, ...inNodes.flatMap((each) => each.workflows)])];
  const ofTools = tools.flatMap(({ task }) => task ?? []);
  const tasks = [
    ...new Set([...(contents.tasks ?? []), ...ofTools, ...inNodes.flatMap((each) => each.tasks)]),
  ];
  const embedded = joined([...tasks, ...actions].map((built) => built.embedded));
  const library = {
    id: checked,
    personas,
    tools,
    tasks,
    workflows,
    modelProfiles: [...new Set([...modelProfiles, ...embedded.modelProfiles])],
    actions: [...new Set([...actions, ...embedded.actions])],
    prompts: [...new Set([...prompts, ...embedded.prompts])],
    skills: [...new Set(skills)],
  };
  checkLibrary(library);
  return library;
}
