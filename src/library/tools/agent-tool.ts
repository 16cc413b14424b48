/**
 * Tools that other agents answer.
 *
 * AGENTTOOL-1  A tool with the target `{agent}` accepts the input of its schema. Without a schema, the input is a `message`, or a `goal` for a
 *              sub-agent. The model may choose the mode of a call with the member `invocationMode`, which is removed from the agent's input. The
 *              member `handoff` is removed too, if the target's handoff is `custom`.
 * AGENTTOOL-2  `modes` of the target lists the allowed modes. The default is `mode`, or else the first of `modes`. A call with another mode fails
 *              with `INVALID_INPUT` before the agent is called. If only one mode is allowed, the model sees no choice.
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

/** Default time limit of a call of an agent, in milliseconds. */
const DEFAULT_AGENT_TIMEOUT_MS = 600_000;

/** Default time limit of a sub-agent, in milliseconds. */
const DEFAULT_SUB_AGENT_TIMEOUT_MS = 300_000;

/** Maximum time limit of a call of an agent, in milliseconds. */
export const MAX_AGENT_TIMEOUT_MS = 2_592_000_000;

const AGENT_MODES = ["delegate", "loop_in"] as const satisfies readonly AgentMode[];

/** The member of a call's input that chooses the mode. */
export const MODE_MEMBER = "invocationMode";
/** The member of a call's input with the model's summary of the conversation. */
const HANDOFF_MEMBER = "handoff";

/** The error if a tool's own schema has such a member. */
export const RESERVED =
  "Is reserved: the model uses it to choose how the agent is called. Rename the member.";

export const agentTargetSchema = z
  .strictObject({
    agent: agentIdSchema,
    mode: z.enum(AGENT_MODES).exactOptional(),
    modes: z
      .array(z.enum(AGENT_MODES))
      .min(1)
      .max(AGENT_MODES.length)
      .refine(isDistinct, "Must not repeat a mode.")
      .exactOptional(),
    handoff: z.enum([...HANDOFFS, "custom"]).exactOptional(),
    template: subAgentTemplateSchema.exactOptional(),
    workspace: z.literal("shared").exactOptional(),
  })
  .refine(
    ({ mode, modes, handoff, template }) =>
      template === undefined || (mode !== "loop_in" && !modes?.includes("loop_in") && handoff === undefined),
    {
      error: "A sub-agent cannot join. Remove `handoff`, and allow only the mode `delegate`.",
    },
  )
  .refine(({ mode, modes }) => mode === undefined || modes === undefined || modes.includes(mode), {
    path: ["mode"],
    error: "Must be one of `modes`. If absent, the first mode is the default.",
  })
  .refine(({ handoff, modes }) => handoff === undefined || modes === undefined || modes.includes("loop_in"), {
    path: ["handoff"],
    error: "Has no effect, because `modes` does not allow `loop_in`. Remove it, or add `loop_in` to `modes`.",
  }) satisfies z.ZodType<AgentTarget>;

export const MESSAGE_DESCRIPTION =
  "All that the agent needs to know. Unless it joins this conversation, it sees nothing else of it.";

/** Default input of a tool that an agent answers. */
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

/** Default input of a tool that a sub-agent answers. */
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

/** Returns the defaults of a tool that an agent answers. A sub-agent has a goal and a shorter time limit. */
export function agentDefaults({ template }: AgentTarget): Pick<ToolDefinition, "inputSchema" | "timeoutMs"> {
  return template === undefined
    ? { inputSchema: MESSAGE_SCHEMA, timeoutMs: DEFAULT_AGENT_TIMEOUT_MS }
    : { inputSchema: GOAL_SCHEMA, timeoutMs: DEFAULT_SUB_AGENT_TIMEOUT_MS };
}

/** Returns the target of a tool that an agent answers; `undefined` for other tools. */
export function agentTarget(target: ToolTarget | undefined): AgentTarget | undefined {
  return target !== undefined && "agent" in target ? target : undefined;
}

/** Returns the task that a tool's calls run; `undefined` for other tools. */
export function taskTarget(target: ToolTarget | undefined): TaskTarget | undefined {
  return target !== undefined && "task" in target ? target : undefined;
}

/** Returns the allowed modes of a tool, starting with the default mode (AGENTTOOL-2). */
function modesOf({ mode, modes, template }: AgentTarget): readonly AgentMode[] {
  if (template !== undefined) return ["delegate"];
  const allowed: readonly AgentMode[] = modes ?? AGENT_MODES;
  return mode === undefined ? allowed : [mode, ...allowed.filter((one) => one !== mode)];
}

/** Returns a reserved member that a tool's own schema has; `undefined` if it has no such member. */
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

/** The parsed input of a call of an agent. */
export interface AgentCall {
  mode: AgentMode;
  /** The input without `invocationMode`, and without a custom `handoff`. */
  input: JsonObject;
  /** The part of the conversation that a joining agent sees; `recent` when absent. */
  handoff?: Handoff;
}

/** Parses the input of a call. A mode that the tool does not allow stays in the input, and `modeProblem` rejects it. */
export function agentCall(target: AgentTarget, given: JsonObject): AgentCall {
  const { handoff, template } = target;
  if (template !== undefined) return { mode: "delegate", input: given };
  const modes = modesOf(target);
  const [usual = "delegate"] = modes;
  const handed = handoff === "custom" ? withoutHandoff(given) : { input: given, ...(handoff && { handoff }) };
  const { [MODE_MEMBER]: chosen, ...rest } = handed.input;
  const known = modes.find((one) => one === chosen);
  if (chosen === undefined || known === undefined) return { ...handed, mode: usual };
  return { ...handed, mode: known, input: rest };
}

/** Describes a mode that the tool does not allow; `null` if the mode is allowed. `passed` is the input without an allowed mode. */
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

/** Removes the handoff from the input of a call. A handoff that is not a string stays in the input, and the schema rejects it. */
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

/** The tool that declines a call from another agent. The platform adds it to the tools of the called agent. */
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

/** Adds the tool `decline` to an agent for a call, unless another tool has this name. */
export function calledChain(chain: VersionChain): VersionChain {
  const isTaken = chain.tools.some(({ definition }) => definition.name === DECLINE.id);
  return isTaken ? chain : { ...chain, tools: [...chain.tools, DECLINE] };
}
