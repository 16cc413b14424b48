/**
 * OpenAI's Responses API.
 *
 * RESPONSES-1  Nothing depends on what the provider stores: every request carries the whole conversation and asks that
 *              it be not stored, unless the profile asks for it.
 * RESPONSES-2  A reply goes back to its model item by item, as it was given: reasoning, built-in tools, phases and ids.
 *              A reply that the API would refuse in that form (reasoning without its encrypted content, a built-in
 *              tool's call that nobody answered) goes back as texts and calls alone.
 * RESPONSES-3  Who speaks stands before the text, as in `Ann: Hello`, because messages have no names.
 */

import type { ModelContext, ToolSpec } from "../../../model/context.ts";
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { cacheKey } from "../chat/openai.ts";
import { fitsStrict, withoutLookaround } from "../chat/strict-schema.ts";
import { NAME_LENGTH } from "../common/names.ts";
import { ReplyStream } from "../common/reply-stream.ts";
import { continued, requireList, settings } from "../common/request.ts";
import { checkChoice, checkNames, ownTools } from "../common/tools.ts";
import { toItems } from "./items.ts";
import { ResponsesReader } from "./reader.ts";

const TOOL_PARAMETERS = ["tool_choice", "parallel_tool_calls"];
const ENCRYPTED_REASONING = "reasoning.encrypted_content";
/** Models that do not reason; some of them refuse to be asked for their reasoning. */
const NOT_REASONING = /^(?:ft:)?(?:gpt-3|gpt-4|chatgpt-|gpt-5[\w.]*-chat)/;

export const openaiResponsesFormat: FormatAdapter = {
  provider: "openai-responses",
  buildRequest(profile, context) {
    const builtIn = ownTools(profile);
    checkNames("openai-responses", context, NAME_LENGTH);
    checkChoice("openai-responses", context, builtIn);
    const { systemInstructions, messages } = context;
    return {
      model: profile.modelId,
      ...(systemInstructions.length === 0 ? {} : { instructions: systemInstructions.join("\n\n") }),
      input: toItems(messages, profile),
      ...toolsOf(context, builtIn),
      ...options(profile, context, builtIn),
    };
  },
  extend: (profile, request, messages) =>
    continued(request, "input", toItems(messages, profile, requireList(request, "input"))),
  decoder: () => new ReplyStream("openai-responses", new ResponsesReader()),
};

function toolsOf({ tools, toolChoice }: ModelContext, builtIn: readonly Json[]): JsonObject {
  if (tools.length + builtIn.length === 0) return {};
  const choice = typeof toolChoice === "string" ? toolChoice : { type: "function", name: toolChoice.name };
  return { tools: [...tools.map(toTool), ...builtIn], tool_choice: choice };
}

function toTool({ name, description, inputSchema }: ToolSpec): JsonObject {
  const parameters = withoutLookaround(inputSchema);
  return { type: "function", name, description, parameters, strict: fitsStrict(parameters) };
}

function options(profile: ModelProfile, context: ModelContext, builtIn: readonly Json[]): JsonObject {
  const { tools, toolChoice, output, cache } = context;
  const reserved = ["model", "input", "instructions", "tools", "include", "text"];
  if (tools.length + builtIn.length === 0) reserved.push(...TOOL_PARAMETERS);
  if (toolChoice !== "auto") reserved.push("tool_choice");
  return {
    stream: true,
    ...(profile.parameters?.store === null ? {} : { store: false }),
    ...includeOf(profile),
    ...textOf(profile, output),
    ...cacheKey(profile, cache),
    ...settings(profile.parameters, reserved),
  };
}

/** What the profile wants to have included, and the reasoning in a form that can be given back. */
function includeOf({ modelId, parameters }: ModelProfile): JsonObject {
  const asked = parameters?.include;
  if (asked === null) return {};
  const given = Array.isArray(asked) ? asked : [];
  const needsReasoning =
    parameters?.store !== true && parameters?.store !== null && !NOT_REASONING.test(modelId);
  const added = needsReasoning && !given.includes(ENCRYPTED_REASONING) ? [ENCRYPTED_REASONING] : [];
  const include = [...given, ...added];
  return include.length === 0 ? {} : { include };
}

/** The profile's `text` (its verbosity), with the format of a structured reply. */
function textOf({ parameters }: ModelProfile, output: ModelContext["output"]): JsonObject {
  const { text } = settings(parameters, []);
  if (output === undefined) return text === undefined ? {} : { text };
  const schema = withoutLookaround(output.schema);
  const format = { type: "json_schema", name: output.name, schema, strict: fitsStrict(schema) };
  return {
    text: { ...(isJsonObject(text) ? text : {}), format },
  };
}
