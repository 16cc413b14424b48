/**
 * Tools that other agents answer.
 *
 * AGENTTOOL-1  A tool with the target `{agent}` takes any input that its schema describes, a `message` if it has none. A sub-agent's is a
 *              `goal`. The model may choose the mode of a call by the member `invocationMode`, which the agent that is called does not get. So it is with
 *              `handoff`, where the target's handoff is `custom`.
 * AGENTTOOL-2  `modes` of the target lists the modes of its calls, of which the first is the usual one unless `mode` says otherwise. A call with
 *              another mode is `INVALID_INPUT` and calls nobody. Where there is one mode, the model is offered no choice.
 */
import { z } from "zod";
import type {
  AgentMode,
  AgentTarget,
  Pin,
  TaskTarget,
  ToolDefinition,
  ToolTarget,
  VersionChain,
} from "../../protocol/definitions.ts";
import { HANDOFFS, type Handoff, MAX_CUSTOM_HANDOFF } from "../../protocol/participants.ts";
import { subAgentTemplateSchema } from "../../protocol/sub-agent.ts";
import { agentIdSchema } from "../../shared/id-schemas.ts";
import { isJsonObject, type JsonObject } from "../../shared/json.ts";
import { cut } from "../../shared/text.ts";

/** Time limit of a call of an agent that declares none, in milliseconds. */
const DEFAULT_AGENT_TIMEOUT_MS = 600_000;

/** Time limit of a sub-agent whose template declares none, in milliseconds. */
const DEFAULT_SUB_AGENT_TIMEOUT_MS = 300_000;

/** Maximum time limit of a call of an agent, in milliseconds. */
export const MAX_AGENT_TIMEOUT_MS = 2_592_000_000;

/** The modes in which agents can be called. */
const AGENT_MODES = ["delegate", "loop_in"] as const satisfies readonly AgentMode[];

/** The member of a call's input by which the model chooses the mode. */
export const MODE_MEMBER = "invocationMode";
/** The member of a call's input in which the model writes what the agent is told of the past. */
const HANDOFF_MEMBER = "handoff";

/** The error of a tool whose own schema has that member. */
export const RESERVED =
  "Is reserved: the model chooses by it how the agent is called. Give the member another name.";

export const agentTargetSchema = z
  .strictObject({
    agent: agentIdSchema,
    mode: z.exactOptional(z.enum(AGENT_MODES)),
    modes: z.exactOptional(
      z
        .array(z.enum(AGENT_MODES))
        .min(1)
        .max(AGENT_MODES.length)
        .refine(isDistinct, "Must not repeat a mode."),
    ),
    handoff: z.exactOptional(z.enum([...HANDOFFS, "custom"])),
    template: z.exactOptional(subAgentTemplateSchema),
  })
  .refine(
    ({ mode, modes, handoff, template }) =>
      template === undefined || (mode !== "loop_in" && !modes?.includes("loop_in") && handoff === undefined),
    {
      error: "A sub-agent cannot join: it has no `handoff`, and no mode but `delegate`.",
    },
  )
  .refine(({ mode, modes }) => mode === undefined || modes === undefined || modes.includes(mode), {
    path: ["mode"],
    error: "Must be one of `modes`, or absent: then the first of them is the usual one.",
  })
  .refine(({ handoff, modes }) => handoff === undefined || modes === undefined || modes.includes("loop_in"), {
    path: ["handoff"],
    error: "Has no use, because `modes` lets no call join. Remove it, or add `loop_in` to `modes`.",
  }) satisfies z.ZodType<AgentTarget>;

/** The description of the member of such an input. */
export const MESSAGE_DESCRIPTION =
  "All that the agent needs to know. Unless it joins this conversation, it sees nothing else of it.";

/** The input of a tool that an agent answers, where its author gives no schema. */
const MESSAGE_SCHEMA: JsonObject = {
  type: "object",
  properties: {
    message: {
      type: "string",
      minLength: 1,
      description: MESSAGE_DESCRIPTION,
    },
  },
  required: ["message"],
  additionalProperties: false,
};

/** The input of a tool that a sub-agent answers, where its author gives no schema. */
const GOAL_SCHEMA: JsonObject = {
  type: "object",
  properties: {
    goal: {
      type: "string",
      minLength: 1,
      description: "All that the sub-agent needs to know. It sees nothing else.",
    },
  },
  required: ["goal"],
  additionalProperties: false,
};

/** Returns what a tool that an agent answers has where its author does not say: a sub-agent gets a goal, and less time. */
export function agentDefaults({ template }: AgentTarget): Pick<ToolDefinition, "inputSchema" | "timeoutMs"> {
  return template === undefined
    ? { inputSchema: MESSAGE_SCHEMA, timeoutMs: DEFAULT_AGENT_TIMEOUT_MS }
    : { inputSchema: GOAL_SCHEMA, timeoutMs: DEFAULT_SUB_AGENT_TIMEOUT_MS };
}

/** Returns the target of a tool that an agent answers; `undefined` for other tools. */
export function agentTarget(target: ToolTarget | undefined): AgentTarget | undefined {
  return target !== undefined && "agent" in target ? target : undefined;
}

/** Returns the task that a tool's calls run; `undefined` where they run the tool's own code, or an agent answers. */
export function taskTarget(target: ToolTarget | undefined): TaskTarget | undefined {
  return target !== undefined && "task" in target ? target : undefined;
}

/** Returns the modes in which a tool may call its agent, the usual one first (AGENTTOOL-2). */
function modesOf({ mode, modes, template }: AgentTarget): readonly AgentMode[] {
  if (template !== undefined) return ["delegate"];
  const allowed: readonly AgentMode[] = modes ?? AGENT_MODES;
  return mode === undefined ? allowed : [mode, ...allowed.filter((one) => one !== mode)];
}

/** Returns a member of a tool's own schema by which the model would choose how the agent is called; `undefined` where it has none. */
export function reservedMember(
  { handoff, template }: AgentTarget,
  { properties }: JsonObject,
): string | undefined {
  const reserved = [
    ...(template === undefined ? [MODE_MEMBER] : []),
    ...(handoff === "custom" ? [HANDOFF_MEMBER] : []),
  ];
  return reserved.find((name) => isJsonObject(properties) && Object.hasOwn(properties, name));
}

/** Returns the schema of a tool's input as the model gets it. */
export function modelInputSchema({
  target,
  inputSchema,
}: Pick<ToolDefinition, "target" | "inputSchema">): JsonObject {
  const agent = agentTarget(target);
  if (agent === undefined || agent.template !== undefined) return inputSchema;
  const properties = isJsonObject(inputSchema.properties) ? inputSchema.properties : {};
  const modes = modesOf(agent);
  const mode: JsonObject = {
    type: "string",
    enum: AGENT_MODES.filter((one) => modes.includes(one)),
    description:
      "delegate: the agent works alone and answers only you. loop_in: it joins this conversation and sees it. Leave it out for the usual way.",
  };
  const handoff: JsonObject = {
    type: "string",
    maxLength: MAX_CUSTOM_HANDOFF,
    description: "If it joins: what it must know of this conversation so far. It sees nothing else of that.",
  };
  const members = {
    ...(modes.length > 1 ? { [MODE_MEMBER]: mode } : {}),
    ...(agent.handoff === "custom" ? { [HANDOFF_MEMBER]: handoff } : {}),
  };
  return { ...inputSchema, properties: { ...properties, ...members } };
}

/** A call of an agent, as the model wrote it, taken apart. */
export interface AgentCall {
  mode: AgentMode;
  /** Without the choice of the mode, and without what the agent is told of the past. */
  input: JsonObject;
  /** The past that the agent is told of where it joins; `recent` when absent. */
  handoff?: Handoff;
}

/** Returns the mode of a call and its input. A mode that the tool does not allow stays in the input, and `modeProblem` refuses it. */
export function agentCall(target: AgentTarget, given: JsonObject): AgentCall {
  const { handoff, template } = target;
  if (template !== undefined) return { mode: "delegate", input: given };
  const modes = modesOf(target);
  const [usual = "delegate"] = modes;
  const told = handoff === "custom" ? withoutHandoff(given) : { input: given, ...(handoff && { handoff }) };
  const { [MODE_MEMBER]: chosen, ...rest } = told.input;
  const known = modes.find((one) => one === chosen);
  if (chosen === undefined || known === undefined) return { ...told, mode: usual };
  return { ...told, mode: known, input: rest };
}

/** Describes a choice of a mode that the tool does not allow; `null` where there is none. `passed` is the input without a mode that it allows. */
export function modeProblem(target: AgentTarget, passed: JsonObject): string | null {
  if (target.template !== undefined || !Object.hasOwn(passed, MODE_MEMBER)) return null;
  const allowed = modesOf(target);
  const modes = AGENT_MODES.filter((one) => allowed.includes(one))
    .map((mode) => JSON.stringify(mode))
    .join(" or ");
  return `/${MODE_MEMBER}: Must be ${modes}. Leave it out for the usual way.`;
}

function isDistinct(modes: readonly AgentMode[]): boolean {
  return new Set(modes).size === modes.length;
}

/** Takes a handoff out of the input of a call. One that is no text stays there, and the schema refuses it. */
function withoutHandoff(given: JsonObject): Required<Pick<AgentCall, "input" | "handoff">> {
  const { [HANDOFF_MEMBER]: text, ...input } = given;
  if (typeof text !== "string") return { input: given, handoff: "none" };
  const custom = cut(text, MAX_CUSTOM_HANDOFF).trim();
  return { input, handoff: custom === "" ? "none" : { custom } };
}

/** Returns the message of a call: its only text, or its input as JSON. */
export function callMessage(input: JsonObject): string {
  const [only, ...others] = Object.values(input);
  return typeof only === "string" && others.length === 0 ? only : JSON.stringify(input, null, 2);
}

/** The tool by which an agent that was called declines. The platform adds it to the agent's own. */
export const DECLINE: Pin & { definition: ToolDefinition } = {
  id: "decline",
  version: 0,
  hash: "",
  definition: {
    name: "decline",
    description:
      "Another agent called you, and only it gets your answer. Decline its request here, with the reason, if you cannot or must not do it.",
    inputSchema: {
      type: "object",
      properties: { reason: { type: "string", description: "Why, in a sentence." } },
      required: ["reason"],
      additionalProperties: false,
    },
    effect: "pure",
    timeoutMs: 1,
  },
};

/** Returns the versions of an agent for a call: with the tool `decline`, unless a tool of its own has that name. */
export function calledChain(chain: VersionChain): VersionChain {
  const isTaken = chain.tools.some(({ definition }) => definition.name === DECLINE.id);
  return isTaken ? chain : { ...chain, tools: [...chain.tools, DECLINE] };
}
