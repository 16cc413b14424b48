/**
 * The builder of agents: a persona with its tools, its model and its colleagues as values.
 *
 * AGENTCODE-1  An agent brings its definitions along: tools, tasks, workflows, model profiles and other agents.
 * AGENTCODE-2  `memory: "user"` gives the agent memory in this scope, and learns from each completed turn. A persona's memory settings decide alone.
 */
import { z } from "zod";
import type { ModelProfile } from "../../model/profile.ts";
import type { Persona } from "../../protocol/definitions.ts";
import { MEMORY_SCOPES, type MemoryScope } from "../../protocol/memory.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import { agentIdSchema, definitionIdSchema } from "../../shared/id-schemas.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { validate } from "../../shared/validation.ts";
import {
  type AgentInCode,
  isAgent,
  isTask,
  isWorkflow,
  type Task,
  type Tool,
  type Workflow,
} from "../tasks/built.ts";
import type { Defined } from "../tools/tool.ts";
import { defineModelProfile } from "./define.ts";
import { type PersonaOptions, personaOf } from "./define-persona.ts";

export type { AgentInCode } from "../tasks/built.ts";

/** The argument of `defineAgent`. */
export interface AgentOptions
  extends Pick<Persona, "name" | "description" | "titles" | "budget" | "examples" | "knowledge" | "skills"> {
  /** 1 to 64 lower-case letters, digits and hyphens. */
  id: string;
  /** Tells the model its role, its task and its manner. */
  instructions: string;
  /** `provider/model`, such as `openai/gpt-4.1-mini`, or a model profile. Default: chosen by the environment. */
  model?: string | ModelProfile | Defined<ModelProfile>;
  /** Tools, tasks and workflows in code, and references to tools of libraries. A task or a workflow needs a description. */
  tools?: readonly (Tool | Task | Workflow | DefinitionReference)[];
  /**
   * Agents that this agent may ask, in code or by id. A function may name agents that are defined later, and the id of an agent works
   * everywhere. Other agents reach them with the tool `ask_<id>`.
   */
  agents?: readonly (AgentInCode | string)[] | (() => readonly (AgentInCode | string)[]);
  /** The owner of the agent's memories, or the memory settings of a persona. Default: no memory (AGENTCODE-2). */
  memory?: MemoryScope | PersonaOptions["memory"];
  /** The projects of the agent, with their repositories. Default: `["default"]`. */
  projectIds?: string[];
}

/** Advice on a definition that another module has not defined yet. */
export const UNDEFINED =
  "Is undefined. Do two modules import each other? Move the definition into a module of its own.";

/** Returns the error for an entry of a list. */
const unless = (advice: string, missing = UNDEFINED) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? missing : advice),
});

const isObject = (value: unknown) => typeof value === "object" && value !== null;

/** Checks the members that `definePersona` does not check. */
const optionsSchema = z.strictObject({
  id: agentIdSchema,
  instructions: z.string("Must be a text that tells the model its role.").min(1),
  ...Object.fromEntries(
    ["name", "description", "titles", "budget", "examples", "knowledge", "skills"].map((name) => [
      name,
      z.unknown().optional(),
    ]),
  ),
  memory: z
    .custom((value) => typeof value !== "string" || MEMORY_SCOPES.some((scope) => scope === value), {
      error: `Must be "agent", "user" or "conversation", or the memory settings of a persona.`,
    })
    .optional(),
  projectIds: z.array(definitionIdSchema).min(1).optional(),
  model: z
    .custom((value) => isObject(value) || (typeof value === "string" && /^[^/]+\/./.test(value)), {
      error: 'Must be "provider/model", such as "openai/gpt-4.1-mini", or a model profile.',
    })
    .optional(),
  tools: z
    .array(
      z.union(
        [z.string(), z.custom(isObject)],
        unless(
          "Must be made with defineTool(…), defineTask(…) or defineWorkflow(…), or be a reference to a tool.",
        ),
      ),
      "Must be an array.",
    )
    .optional(),
  agents: z
    .union(
      [
        z.array(
          z.union(
            [agentIdSchema, z.custom(isAgent)],
            unless(
              "Must be made with defineAgent(…), or be the id of an agent.",
              "Is undefined. Do two modules import each other? A function helps: `agents: () => […]`.",
            ),
          ),
        ),
        z.custom((value) => typeof value === "function"),
      ],
      {
        error: "Must be an array of agents, made with defineAgent(…), or a function that returns the array.",
      },
    )
    .optional(),
});

/**
 * Defines an agent. Throws `INVALID_INPUT`.
 * @example const guide = defineAgent({ id: "guide", instructions: "You help travellers.", tools: [weather] });
 */
export function defineAgent(options: AgentOptions): AgentInCode {
  const what = typeof options?.id === "string" ? `Agent "${options.id}"` : "The agent";
  validate(optionsSchema, options, "", what);
  const { id, instructions, model, tools = [], agents = [], memory, projectIds, ...others } = options;
  for (const [index, tool] of tools.entries()) {
    if (!(isTask(tool) || isWorkflow(tool)) || tool.definition.description !== undefined) continue;
    const message = `${what}: /tools/${index}: The ${tool.made} "${tool.id}" needs a \`description\`, because the model reads it.`;
    throw invalid(message);
  }
  const profile = profileOf(id, model);
  const given = {
    ...others,
    identity: { systemPrompt: instructions, ...defined({ modelProfileId: profile?.id }) },
    ...defined({ memory: typeof memory === "string" ? { scope: memory, extract: true } : memory }),
  };
  const persona = personaOf(id, given, what);
  return {
    ...persona,
    made: "agent",
    tools: [...tools],
    colleagues: typeof agents === "function" ? agents : () => agents,
    ...defined({ modelProfile: profile, projectIds }),
  };
}

/** Returns the profile of an agent; `undefined` for the default model. The id of its own profile is the agent's id. */
function profileOf(id: string, model: AgentOptions["model"]): Defined<ModelProfile> | undefined {
  if (model === undefined) return undefined;
  if (typeof model === "object") return "definition" in model ? model : defineModelProfile(id, model);
  const [provider = "", ...modelId] = model.split("/");
  // SAFETY: `defineModelProfile` refuses unknown providers.
  return defineModelProfile(id, {
    provider: provider as ModelProfile["provider"],
    modelId: modelId.join("/"),
  });
}
