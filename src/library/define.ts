/**
 * Builders of libraries in code. They check everything when the module loads, so a mistake stops the deployment, not a
 * conversation.
 *
 * LIB-1  A tool's `execute` gets only input that its zod schema accepted.
 * LIB-2  A tool that declares no effect is `once`: if its outcome is unknown, it never runs again.
 */
import { z } from "zod";
import type { ModelProfile } from "../model/profile.ts";
import type { ApprovalNeed } from "../protocol/approval.ts";
import type {
  AgentTarget,
  Persona,
  ToolDefinition,
  ToolEffect,
  ToolTarget,
} from "../protocol/definitions.ts";
import { defined } from "../shared/defined.ts";
import { DramatisError } from "../shared/errors.ts";
import { type Mapping, mappingIssues } from "../shared/expressions/mapping.ts";
import { definitionIdSchema } from "../shared/id-schemas.ts";
import type { DefinitionReference } from "../shared/identifiers.ts";
import { utf8Length } from "../shared/utf8.ts";
import { inputIssues, issuesText, jsonPointer, validate } from "../shared/validation.ts";
import { agentDefaults, agentTarget, agentTargetSchema, RESERVED, reservedMember } from "./agent-tool.ts";
import { checkLibrary, contentsSchema } from "./check-library.ts";
import { MAX_DEFINITION_BYTES } from "./definition.ts";
import { inputSchemaOf } from "./json-schema-of.ts";
import { referenceSchema } from "./reference.ts";
import {
  DEFAULT_TOOL_TIMEOUT_MS,
  modelProfileSchema,
  personaSchema,
  retrySchema,
  timeoutProblem,
  toolDefinitionSchema,
} from "./schemas.ts";
import { isTask, joined, type LibraryAction, type Prompt, type Task, type Tool } from "./tasks/built.ts";
import { attemptsOf } from "./tasks/task-schema.ts";
import type { Defined, ToolContext } from "./tool.ts";
import { ToolError } from "./tool-error.ts";
import { completeRetry, readTimeout, type ToolRetry, targetFields, withoutTimeout } from "./tool-forms.ts";
import { embeddedIn, type Workflow } from "./workflows/define-workflow.ts";

export type { Tool } from "./tasks/built.ts";
export type { Defined, ToolContext } from "./tool.ts";

/** The argument of `defineTool`. */
export interface ToolOptions<Input extends z.ZodType> {
  /** Name for the model: 1 to 64 letters, digits, `_` and `-`. */
  name: string;
  /** The name when absent (TOOLID-1). */
  id?: string;
  /** Explains to the model when to use the tool. */
  description: string;
  /** A zod object. The model also reads descriptions that you add to fields with `.describe()`. */
  input: Input;
  /** Effect of running the tool twice; `once` when absent. */
  effect?: ToolEffect;
  /** The hosts that the tool's code reaches, as `host` or `host:port`; `[]` for none. Absent: any host, so that a sub-agent needs `network: "any"` to have it. */
  hosts?: string[];
  /** Runs calls in the background: the model goes on at once, and gets the result later in the same turn. `false` when absent. */
  async?: boolean;
  /** `always`: no call runs before a person has approved it, with the input that they were shown. `never` when absent. */
  approval?: ApprovalNeed;
  /** Timeout of one attempt, in milliseconds: 1 to 900 000; 60 000 when absent. */
  timeoutMs?: number;
  /** Attempts of a call that fails for a reason that may pass; one when absent. Not for `once` tools. */
  retry?: ToolRetry;
  /** Returns the result for the model, any JSON. Throw `ToolError` to report a failure to the model. */
  execute(input: z.output<Input>, context: ToolContext): unknown;
}

/** The argument of `defineTool` for a tool that another agent answers. */
export interface AgentToolOptions
  extends Omit<ToolOptions<z.ZodType>, "input" | "execute" | "timeoutMs" | "hosts"> {
  /** The agent, the modes in which it may be called, and the mode of calls for which the model chooses none. */
  target: AgentTarget;
  /** A zod object: what the agent is told. `z.object({ message: z.string() })` when absent, of a sub-agent `goal`. */
  input?: z.ZodType;
  /** Time limit of the whole call, in milliseconds: 30 days at most; ten minutes when absent, five of a sub-agent. */
  timeoutMs?: number;
}

/** The argument of `defineTool` for a tool that a task runs. Absent members have the values of the task. */
export interface TaskToolOptions extends Omit<ToolOptions<z.ZodType>, "input" | "execute" | "hosts"> {
  /** The task: itself, or a reference to one, with or without a version. */
  target: { task: Task | DefinitionReference };
  /** A zod object: what the model gives. The task's own input when absent; required where the task is a reference. */
  input?: z.ZodType;
  /** The members of the task's input, as expressions over `input`; the model's input when absent. */
  inputMapping?: Mapping;
}

/** The fields of all kinds of tools. `toolDefinitionSchema` checks their values. */
const commonOptions = Object.fromEntries(
  ["name", "id", "description", "effect", "timeoutMs", "retry", "async", "approval", "hosts"].map((name) => [
    name,
    z.unknown().optional(),
  ]),
);
const zodSchema = z.custom(
  (value) => typeof value === "object" && value !== null && "_zod" in value,
  "Must be a schema of zod 4. Wrap the fields in z.object({…}).",
);

/** The fields of `ToolOptions`. */
const optionsSchema = z.strictObject({
  ...commonOptions,
  input: zodSchema,
  execute: z.custom(
    (value) => typeof value === "function",
    "Must be a function, which runs the tool. A tool that an agent answers has `target: {agent}` in its place.",
  ),
});

/** The fields of `AgentToolOptions`. */
const agentOptionsSchema = z.strictObject({
  ...commonOptions,
  input: zodSchema.optional(),
  target: agentTargetSchema,
});

/** The fields of `TaskToolOptions`. */
const taskOptionsSchema = z.strictObject({
  ...commonOptions,
  input: zodSchema.optional(),
  target: z.strictObject({
    task: z.union([z.custom<Task>(isTask), referenceSchema], {
      error: "Must be made with defineTask(…), or be a reference to a task.",
    }),
  }),
  inputMapping: z.unknown().optional(),
});

/** A library of definitions. */
export interface Library {
  readonly id: string;
  readonly personas: readonly Defined<Persona>[];
  readonly tools: readonly Tool[];
  readonly modelProfiles: readonly Defined<ModelProfile>[];
  /** Functions and lists of steps that hooks name, and tools by API. No model sees them. */
  readonly tasks?: readonly Task[];
  /** Actions that steps of tasks name. Those that a task was built with are added. */
  readonly actions?: readonly LibraryAction[];
  /** Texts for models. Those that an action was built with are added. */
  readonly prompts?: readonly Prompt[];
  /** Graphs of tasks, workflows and agents. The tasks and workflows in their nodes are added. */
  readonly workflows?: readonly Workflow[];
}

/**
 * Defines a persona. Throws `INVALID_INPUT`.
 * @example definePersona("guide", { identity: { systemPrompt: "You help travellers." }, tools: { toolIds: ["weather"] } });
 */
export function definePersona(id: string, persona: Persona): Defined<Persona> {
  return withId(checkedId("persona", id), validate(personaSchema, persona, "", `Persona "${id}"`));
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
 * Defines a tool that a task runs. Throws `INVALID_INPUT`.
 * @example defineTool({ name: "bill", description: "Bills an order.", target: { task: bill } });
 */
export function defineTool(options: TaskToolOptions): Tool;
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
  options: ToolOptions<Input> | AgentToolOptions | TaskToolOptions,
): Tool {
  const tool = typeof options?.name === "string" ? `Tool "${options.name}"` : "The tool";
  const [target] = targetFields(options);
  if (target === undefined) {
    const { execute, input } = validate(optionsSchema, options, "", tool) as ToolOptions<Input>;
    return { ...definedTool(options, tool, { input }), run: checkedRun(options.name, input, execute) };
  }
  if (target !== "target" || "execute" in options) {
    const message = `${tool} has \`${target}\`, but a tool in code has \`execute\` or \`target\`, and not both. Remove one, or post the tool by API.`;
    throw new DramatisError("INVALID_INPUT", message);
  }
  if (isTaskTarget(options)) return taskTool(options, tool);
  if (!isAgentTarget(options)) {
    const message = `${tool}: /target: Must be {agent: "…"}, with the id of an agent, or {task: …}, with a task.`;
    throw new DramatisError("INVALID_INPUT", message);
  }
  validate(agentOptionsSchema, options, "", tool);
  const { input } = options;
  return {
    ...definedTool(options, tool, { target: options.target, ...defined({ input }) }),
    run: () => Promise.reject(new ToolError(`"${options.name}" is answered by an agent and runs no code.`)),
  };
}

/** Returns a tool over a task. */
function taskTool(options: TaskToolOptions, tool: string): Tool {
  validate(taskOptionsSchema, options, "", tool);
  const { input, inputMapping, target } = options;
  const task = isTask(target.task) ? target.task : undefined;
  const reference = isTask(target.task) ? target.task.id : target.task;
  if (task === undefined && input === undefined)
    throw new DramatisError(
      "INVALID_INPUT",
      `${tool}: /input: Is required where \`target.task\` is a reference.`,
    );
  const issues = inputMapping === undefined ? [] : mappingIssues(inputMapping, ["input"], "/inputMapping");
  if (issues.length > 0)
    throw new DramatisError("INVALID_INPUT", `${tool}: ${issuesText(issues)}`, { errors: issues });
  const usual = task && {
    inputSchema: task.definition.inputSchema,
    timeoutMs: task.definition.timeoutMs,
    effect: task.effect,
    ...defined({ retry: attemptsOf(task.definition.retry) }),
  };
  return {
    ...definedTool(options, tool, {
      target: { task: reference },
      ...defined({ input, inputMapping, usual }),
    }),
    ...defined({ task }),
    run: () => Promise.reject(new ToolError(`"${options.name}" runs a task and no code of its own.`)),
  };
}

/** The defaults of a tool. */
type Usual = Pick<ToolDefinition, "inputSchema" | "timeoutMs"> &
  Partial<Pick<ToolDefinition, "effect" | "retry">>;

/** Returns the definition of a tool, checked. */
function definedTool(
  options: Omit<ToolOptions<z.ZodType>, "input" | "execute">,
  tool: string,
  {
    input,
    target,
    inputMapping,
    usual = agentTarget(target) && agentDefaults(agentTarget(target) as AgentTarget),
  }: { input?: z.ZodType; target?: ToolTarget; inputMapping?: Mapping; usual?: Usual },
): Defined<ToolDefinition> {
  const {
    name,
    description,
    id,
    effect = usual?.effect ?? "once",
    async: isAsync,
    approval,
    hosts,
  } = options;
  const refuse = (path: string[], message: string) => {
    throw new DramatisError("INVALID_INPUT", `${tool}: ${jsonPointer(path)}: ${message}`);
  };
  const timeoutMs = readTimeout(options, refuse);
  const attempts = validate(retrySchema, withoutTimeout(options.retry) ?? {}, "/retry", tool);
  const own = completeRetry(attempts, effect, refuse);
  const retry = options.retry === undefined && effect !== "once" ? (own ?? usual?.retry) : own;
  const definition = validate(
    toolDefinitionSchema,
    {
      name,
      description,
      inputSchema:
        input === undefined ? usual?.inputSchema : inputSchemaOf(`The input of tool "${name}"`, input),
      effect,
      timeoutMs: timeoutMs ?? usual?.timeoutMs ?? DEFAULT_TOOL_TIMEOUT_MS,
      ...defined({ retry, async: isAsync, approval, hosts, target, inputMapping }),
    },
    "",
    tool,
  );
  const problem = timeoutProblem(definition);
  if (problem !== null) refuse(["timeoutMs"], problem);
  const agent = agentTarget(target);
  const reserved = agent && reservedMember(agent, definition.inputSchema);
  if (reserved !== undefined) refuse(["input", reserved], RESERVED);
  return withId(checkedId("tool", id ?? name), definition);
}

function isTaskTarget(options: object): options is TaskToolOptions {
  return (
    "target" in options &&
    typeof options.target === "object" &&
    options.target !== null &&
    "task" in options.target
  );
}

function isAgentTarget(options: object): options is AgentToolOptions {
  return (
    "target" in options &&
    typeof options.target === "object" &&
    options.target !== null &&
    "agent" in options.target
  );
}

/** Returns the code of a tool behind a check of its input (LIB-1). */
function checkedRun<Input extends z.ZodType>(
  name: string,
  input: Input,
  execute: ToolOptions<Input>["execute"],
): Tool["run"] {
  return async (value, context) => {
    const parsed = await input.safeParseAsync(value);
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
  const { personas = [], tools = [], modelProfiles = [], actions = [], prompts = [] } = contents;
  const inNodes = (contents.workflows ?? []).map(embeddedIn);
  const workflows = [
    ...new Set([...(contents.workflows ?? []), ...inNodes.flatMap((each) => each.workflows)]),
  ];
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
  };
  checkLibrary(library);
  return library;
}

/** Checks the size of a definition. Throws `INVALID_INPUT`. */
export function withId<Definition extends object>(id: string, definition: Definition): Defined<Definition> {
  const bytes = utf8Length(JSON.stringify(definition));
  if (bytes > MAX_DEFINITION_BYTES) {
    throw new DramatisError(
      "INVALID_INPUT",
      `The definition of "${id}" has ${bytes} bytes as JSON. The maximum is ${MAX_DEFINITION_BYTES}.`,
    );
  }
  return { id, definition };
}

/** Throws `INVALID_INPUT` if the id, which authors without types may forget, is not valid. */
export function checkedId(kind: string, id: unknown): string {
  const shown = typeof id === "string" ? `"${id}" ` : "";
  return validate(definitionIdSchema, id, "", `The id ${shown}of a ${kind}`);
}
