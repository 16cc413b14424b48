/**
 * Anthropic's Messages API.
 *
 * ANTHROPIC-1  Turns alternate, begin with a user's and end with one, unless calls wait for their results; blank texts
 *              are left out. A request that is extended keeps its turns as they are, and gets the new ones behind them.
 * ANTHROPIC-2  All results of one reply stand first in the user's turn right behind it, and ids of calls are unique over
 *              the request, whatever ids the calls came with.
 * ANTHROPIC-3  A reply of the same model goes back in its own blocks, in order and unchanged.
 * ANTHROPIC-4  Cache breakpoints stand behind the tools, the instructions and the last stable message, and never move
 *              while a request is extended.
 */

import type { ModelContext, ToolSpec } from "../../../model/context.ts";
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { unsupported } from "../common/native.ts";
import { ReplyStream } from "../common/reply-stream.ts";
import { continued, requireList, settings } from "../common/request.ts";
import { checkChoice, checkNames, ownTools } from "../common/tools.ts";
import { alternating, answerable, type Exchange, instructed, NO_MESSAGE } from "../common/turns.ts";
import { NAME_LENGTH, toMessages } from "./messages.ts";
import { AnthropicReader } from "./reader.ts";
import { enforceable } from "./schema.ts";

/** What the request says itself, or joins with what the profile says. */
const RESERVED = ["model", "messages", "system", "tools", "tool_choice", "output_config"];

/** Every request must have a limit; this one leaves room for long answers. */
const MAX_TOKENS = 16_384;
/** What must remain for the answer beside the profile's budget for thinking. */
const ANSWER_TOKENS = 4_096;

const CACHED: JsonObject = { cache_control: { type: "ephemeral" } };
/** Blocks behind which a cache breakpoint may stand. */
const CACHEABLE = new Set<Json | undefined>(["text", "image", "document", "tool_use", "tool_result"]);

const OPENING: JsonObject = { type: "text", text: NO_MESSAGE };

export const anthropicFormat: FormatAdapter = {
  provider: "anthropic",
  buildRequest(profile, context) {
    const { instructions, messages, leading } = instructed("anthropic", context);
    const turns = toMessages(profile, messages);
    if (context.cache !== undefined)
      breakBehind(turns.slice(0, Math.max(0, context.cache.stableMessages - leading)));
    const asked = answerable(alternating(turns, OPENING), OPENING, messages.at(-1));
    return {
      model: profile.modelId,
      ...limit(profile),
      ...system(instructions, context),
      messages: asked.map(toMessage),
      ...tools(profile, context),
      ...output(profile, context),
      ...streaming(profile),
      ...settings(profile.parameters, [...RESERVED, "max_tokens", "stream"]),
    };
  },
  extend(profile, request, messages) {
    const sent = requireList(request, "messages");
    const turns = alternating(toMessages(profile, messages, sent), OPENING, roleOf(sent.at(-1)));
    return continued(request, "messages", turns.map(toMessage));
  },
  decoder: () => new ReplyStream("anthropic", new AnthropicReader()),
};

function toMessage({ role, blocks }: Exchange): JsonObject {
  return { role, content: blocks };
}

function roleOf(message: Json | undefined): Exchange["role"] | undefined {
  if (!isJsonObject(message)) return undefined;
  return message.role === "user" ? "user" : "assistant";
}

/** Marks the last block of the turns that can be marked. */
function breakBehind(turns: readonly Exchange[]): void {
  for (const { blocks } of turns.toReversed()) {
    const at = blocks.findLastIndex(({ type }) => CACHEABLE.has(type));
    const block = blocks[at];
    if (block === undefined) continue;
    blocks[at] = { ...block, ...CACHED };
    return;
  }
}

function limit({ parameters = {} }: ModelProfile): JsonObject {
  if (parameters.max_tokens !== undefined) return settings({ max_tokens: parameters.max_tokens }, []);
  const budget = isJsonObject(parameters.thinking) ? parameters.thinking.budget_tokens : undefined;
  const thinking = typeof budget === "number" ? budget : 0;
  return { max_tokens: Math.max(MAX_TOKENS, thinking + ANSWER_TOKENS) };
}

function streaming({ parameters = {} }: ModelProfile): JsonObject {
  return settings({ stream: parameters.stream === undefined ? true : parameters.stream }, []);
}

function system(instructions: string, { cache }: ModelContext): JsonObject {
  if (instructions === "") return {};
  return { system: cache === undefined ? instructions : [{ type: "text", text: instructions, ...CACHED }] };
}

function tools(profile: ModelProfile, context: ModelContext): JsonObject {
  const own = ownTools(profile);
  checkNames("anthropic", context, NAME_LENGTH);
  checkChoice("anthropic", context, own);
  const offered = [...context.tools.map(toTool), ...own];
  if (offered.length === 0) return {};
  if (context.cache !== undefined) markLast(offered);
  return { tools: offered, ...choice(profile, context) };
}

/** A tool that the model must search for first is not part of what is cached. */
function markLast(offered: Json[]): void {
  const at = offered.findLastIndex((tool) => isJsonObject(tool) && tool.defer_loading !== true);
  const tool = offered[at];
  if (isJsonObject(tool)) offered[at] = { ...tool, ...CACHED };
}

function toTool({ name, description, inputSchema }: ToolSpec): JsonObject {
  const alternative = ["anyOf", "oneOf", "allOf"].find((keyword) => inputSchema[keyword] !== undefined);
  if (alternative !== undefined) {
    throw unsupported("anthropic", `"${alternative}" at the top of the schema of the tool "${name}"`);
  }
  return {
    name,
    ...(description === "" ? {} : { description }),
    input_schema: inputSchema.type === undefined ? { type: "object", ...inputSchema } : inputSchema,
  };
}

/** The context's choice. The profile's counts where the context leaves the model free; its ban of parallel calls always. */
function choice({ parameters = {} }: ModelProfile, { toolChoice }: ModelContext): JsonObject {
  const given = isJsonObject(parameters.tool_choice) ? parameters.tool_choice : {};
  if (toolChoice === "auto")
    return parameters.tool_choice === null ? {} : { tool_choice: { type: "auto", ...given } };
  if (toolChoice === "none") return { tool_choice: { type: "none" } };
  if (isJsonObject(parameters.thinking) && parameters.thinking.type !== "disabled") {
    throw unsupported("anthropic", "the order to call a tool from a model that thinks");
  }
  const one = given.disable_parallel_tool_use;
  const alone = one === undefined ? {} : { disable_parallel_tool_use: one };
  return toolChoice === "required"
    ? { tool_choice: { type: "any", ...alone } }
    : { tool_choice: { type: "tool", name: toolChoice.name, ...alone } };
}

function output({ parameters = {} }: ModelProfile, { output: asked }: ModelContext): JsonObject {
  const given = isJsonObject(parameters.output_config) ? parameters.output_config : {};
  const format =
    asked === undefined ? {} : { format: { type: "json_schema", schema: enforceable(asked.schema) } };
  const config = { ...given, ...format };
  return Object.keys(config).length === 0 ? {} : { output_config: config };
}
