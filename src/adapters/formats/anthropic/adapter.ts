/**
 * Anthropic's Messages API.
 *
 * ANTHROPIC-1  Turns alternate. The first and the last turn are the user's, unless calls wait for their results. Blank
 *              texts are left out. A request that is extended keeps its turns as they are; new turns come behind them.
 * ANTHROPIC-2  All results of one reply are first in the user's turn directly after it. Ids of calls are unique in the
 *              request, regardless of their original ids.
 * ANTHROPIC-3  A reply is sent back to its model in its own blocks, in order and unchanged.
 * ANTHROPIC-4  Cache breakpoints are behind the tools, the instructions and the last stable message. They stay where
 *              they are while a request is extended.
 * ANTHROPIC-8  A request that ends with a reply, which the model continues, ends with no blank: the API refuses it.
 */
import type { ModelContext, ToolSpec } from "../../../model/context.ts";
import type { FormatAdapter, ModelFormatAdapter } from "../../../model/format-adapter.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { NO_MESSAGE } from "../common/blank.ts";
import { filled, membersOf, objects } from "../common/json.ts";
import { modelFormatAdapter } from "../common/model-messages.ts";
import { SentCalls } from "../common/names.ts";
import {
  checkChoice,
  checkNames,
  ownTools,
  requireList,
  settings,
  unsupported,
  withChoice,
} from "../common/request.ts";
import { firstTurns, instructed, laterTurns, type SpeakerTurn, type TurnFormat } from "../common/turns.ts";
import { wellFormedFormat } from "../common/well-formed.ts";
import { enforceable } from "./anthropic-schema.ts";
import { AnthropicDecoder } from "./decoder.ts";
import { ANTHROPIC_CALLS, ANTHROPIC_NAME_LENGTH, anthropicTurns } from "./messages.ts";

/** Keys that the request sets itself, or joins with the profile's. */
const RESERVED = ["model", "messages", "system", "tools", "tool_choice", "output_config"];

/** The API requires a limit. This limit leaves room for long answers. */
const MAX_TOKENS = 16_384;
/** Tokens for the answer, in addition to the profile's budget for thinking. */
const ANSWER_TOKENS = 4_096;

const CACHED: JsonObject = { cache_control: { type: "ephemeral" } };
/** Blocks that may have a cache breakpoint. */
const CACHEABLE = new Set<Json | undefined>(["text", "image", "document", "tool_use", "tool_result"]);

const TURNS: TurnFormat = {
  key: "messages",
  opening: { type: "text", text: NO_MESSAGE },
  toMessages: ({ role, blocks }) => [{ role, content: blocks }],
};

export const anthropicFormat: FormatAdapter = wellFormedFormat({
  provider: "anthropic",
  buildRequest(profile, context) {
    const { parameters = {} } = profile;
    const { instructions, messages, leading } = instructed("anthropic", context);
    const calls = new SentCalls(ANTHROPIC_CALLS);
    const turns = anthropicTurns(profile, messages, calls);
    const stable = context.cache === undefined ? 0 : context.cache.stableMessages - leading;
    if (stable > 0) markLastBlock(turns.slice(0, stable));
    return calls.carriedBy({
      model: profile.modelId,
      ...system(instructions, context),
      messages: firstTurns(TURNS, turns, messages.at(-1)),
      ...tools(profile, context),
      ...output(parameters, context),
      ...settings({ max_tokens: defaultLimit(parameters), stream: true, ...parameters }, RESERVED),
    });
  },
  extend(profile, request, messages) {
    const calls = new SentCalls(ANTHROPIC_CALLS, request);
    const extended = laterTurns(TURNS, request, anthropicTurns(profile, messages, calls));
    return calls.carriedBy({ ...extended, messages: withoutLastBlank(requireList(extended, "messages")) });
  },
  choose(request, toolChoice) {
    const { disable_parallel_tool_use } = membersOf(request.tool_choice);
    const parameters = { ...request, tool_choice: filled({ disable_parallel_tool_use }) };
    return withChoice("anthropic", request, toolChoice, {
      names: objects(request.tools).map(({ name }) => name),
      members: choice({ parameters }, { toolChoice }),
    });
  },
  decoder: () => new AnthropicDecoder("anthropic"),
});

/** Messages for the Messages API, and the instructions as `system`, if there are any. */
export const anthropicAdapter: ModelFormatAdapter<{ system?: string; messages: JsonObject[] }> =
  modelFormatAdapter(anthropicFormat, ["system", "messages"]);

/** Cuts the blanks at the end of a reply that ends a request (ANTHROPIC-8). */
function withoutLastBlank(messages: readonly Json[]): Json[] {
  const last = messages.at(-1);
  const earlier = messages.slice(0, -1);
  if (!isJsonObject(last) || last.role !== "assistant") return [...messages];
  const { content } = last;
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : objects(content);
  const block = blocks.at(-1);
  if (block?.type !== "text" || typeof block.text !== "string") return [...messages];
  const text = block.text.trimEnd();
  if (text === block.text) return [...messages];
  const rest = blocks.slice(0, -1);
  if (text !== "")
    return [
      ...earlier,
      { ...last, content: typeof content === "string" ? text : [...rest, { ...block, text }] },
    ];
  return rest.length === 0 ? earlier : withoutLastBlank([...earlier, { ...last, content: rest }]);
}

function markLastBlock(turns: readonly SpeakerTurn[]): void {
  for (const { blocks } of turns.toReversed()) {
    const at = blocks.findLastIndex(({ type }) => CACHEABLE.has(type));
    const block = blocks[at];
    if (block === undefined) continue;
    blocks[at] = { ...block, ...CACHED };
    return;
  }
}

function defaultLimit({ thinking }: JsonObject): number {
  const budget = membersOf(thinking).budget_tokens;
  return Math.max(MAX_TOKENS, (typeof budget === "number" ? budget : 0) + ANSWER_TOKENS);
}

function system(instructions: string, { cache }: ModelContext): JsonObject {
  if (instructions === "") return {};
  return { system: cache === undefined ? instructions : [{ type: "text", text: instructions, ...CACHED }] };
}

function tools(profile: ModelProfile, context: ModelContext): JsonObject {
  const own = ownTools(profile);
  checkNames("anthropic", context, ANTHROPIC_NAME_LENGTH);
  checkChoice("anthropic", context, own);
  const offered = [...context.tools.map(toTool), ...own];
  if (offered.length === 0) return {};
  if (context.cache !== undefined) markLastTool(offered);
  return { tools: offered, ...choice(profile, context) };
}

/** A tool with deferred loading is not part of the cached prompt. */
function markLastTool(offered: Json[]): void {
  const at = offered.findLastIndex((tool) => isJsonObject(tool) && tool.defer_loading !== true);
  const tool = offered[at];
  if (isJsonObject(tool)) offered[at] = { ...tool, ...CACHED };
}

function toTool({ name, description, inputSchema }: ToolSpec): JsonObject {
  const alternative = ["anyOf", "oneOf", "allOf"].find((keyword) => inputSchema[keyword] !== undefined);
  if (alternative !== undefined)
    throw unsupported("anthropic", `"${alternative}" at the top of the schema of the tool "${name}"`);
  return {
    name,
    ...filled({ description }),
    input_schema: inputSchema.type === undefined ? { type: "object", ...inputSchema } : inputSchema,
  };
}

/** The profile's choice applies if the context has no choice. Its ban of parallel calls always applies. */
function choice(
  { parameters = {} }: Pick<ModelProfile, "parameters">,
  { toolChoice }: Pick<ModelContext, "toolChoice">,
): JsonObject {
  const given = membersOf(parameters.tool_choice);
  if (toolChoice === "auto")
    return parameters.tool_choice === null ? {} : { tool_choice: { type: "auto", ...given } };
  if (toolChoice === "none") return { tool_choice: { type: "none" } };
  if (isJsonObject(parameters.thinking) && parameters.thinking.type !== "disabled") {
    throw unsupported(
      "anthropic",
      "a forced tool call with `thinking`: disable `thinking`, or let the model choose",
    );
  }
  const { disable_parallel_tool_use } = given;
  const forced = toolChoice === "required" ? { type: "any" } : { type: "tool", name: toolChoice.name };
  return { tool_choice: { ...forced, ...defined({ disable_parallel_tool_use }) } };
}

function output({ output_config: given }: JsonObject, { output: asked }: ModelContext): JsonObject {
  const format = asked && { type: "json_schema", schema: enforceable(asked.schema) };
  return filled({ output_config: { ...membersOf(given), ...defined({ format }) } });
}
