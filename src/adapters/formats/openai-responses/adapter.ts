/**
 * OpenAI's Responses API.
 *
 * RESPONSES-1  Requests never depend on stored data of the provider. Every request carries the whole conversation, and turns storage off
 *              unless the profile turns it on.
 * RESPONSES-2  A reply is sent back to its model item by item, unchanged: reasoning, built-in tools, phases and ids. If the API would
 *              refuse that form (reasoning without its encrypted content, an unanswered call of a built-in tool), the reply is sent as
 *              texts and calls alone.
 * RESPONSES-3  The speaker's name comes before the text, as in `Ann: Hello`, because messages have no names.
 */
import type { ModelContext, ToolSpec } from "../../../model/context.ts";
import type { FormatAdapter, ModelFormatAdapter } from "../../../model/format-adapter.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { NO_MESSAGE, orOpening } from "../common/blank.ts";
import { filled, membersOf, objects } from "../common/json.ts";
import { modelFormatAdapter } from "../common/model-messages.ts";
import { SentCalls } from "../common/names.ts";
import {
  checkChoice,
  checkNames,
  continued,
  ownTools,
  requireList,
  settings,
  withChoice,
} from "../common/request.ts";
import { joinedInstructions } from "../common/turns.ts";
import { wellFormedFormat } from "../common/well-formed.ts";
import { cacheKey, TOOL_PARAMETERS } from "../openai/adapter.ts";
import { fitsStrict, withoutLookaround } from "../openai/openai-schema.ts";
import { ResponsesDecoder } from "./decoder.ts";
import { RESPONSES_CALLS, toItems } from "./messages.ts";
import { isStored } from "./native.ts";

const ENCRYPTED_REASONING = "reasoning.encrypted_content";
/** Models that do not reason; some of them refuse a request for their reasoning. */
const NOT_REASONING = /^(?:ft:)?(?:gpt-3|gpt-4|chatgpt-|gpt-5[\w.]*-chat)/;

export const openaiResponsesFormat: FormatAdapter = wellFormedFormat({
  provider: "openai-responses",
  buildRequest(profile, context) {
    const builtIn = ownTools(profile);
    checkNames("openai-responses", context);
    checkChoice("openai-responses", context, builtIn);
    const { systemInstructions, messages } = context;
    const calls = new SentCalls(RESPONSES_CALLS);
    return calls.carriedBy({
      model: profile.modelId,
      ...filled({ instructions: joinedInstructions(systemInstructions) }),
      input: orOpening(toItems(messages, profile, calls), { role: "user", content: NO_MESSAGE }),
      ...tools(context, builtIn),
      ...options(profile, context, builtIn),
    });
  },
  extend(profile, request, messages) {
    const calls = new SentCalls(RESPONSES_CALLS, request);
    const later = toItems(messages, profile, calls, requireList(request, "input"));
    return calls.carriedBy(continued(request, "input", later));
  },
  choose: (request, choice) =>
    withChoice("openai-responses", request, choice, {
      names: objects(request.tools).map(({ name, type }) => name ?? type),
      members: { tool_choice: toChoice(choice) },
    }),
  decoder: () => new ResponsesDecoder("openai-responses"),
});

/** Items for the Responses API, and the instructions, if there are any. */
export const openaiResponsesAdapter: ModelFormatAdapter<{ instructions?: string; input: JsonObject[] }> =
  modelFormatAdapter(openaiResponsesFormat, ["instructions", "input"]);

function tools({ tools: offered, toolChoice }: ModelContext, builtIn: readonly Json[]): JsonObject {
  if (offered.length + builtIn.length === 0) return {};
  return { tools: [...offered.map(toTool), ...builtIn], tool_choice: toChoice(toolChoice) };
}

function toChoice(toolChoice: ModelContext["toolChoice"]): Json {
  return typeof toolChoice === "string" ? toolChoice : { type: "function", name: toolChoice.name };
}

function toTool({ name, description, inputSchema }: ToolSpec): JsonObject {
  const parameters = withoutLookaround(inputSchema);
  return { type: "function", name, description, parameters, strict: fitsStrict(parameters) };
}

function options(profile: ModelProfile, context: ModelContext, builtIn: readonly Json[]): JsonObject {
  const reserved = ["model", "input", "instructions", "tools", "include", "text"];
  if (context.tools.length + builtIn.length === 0) reserved.push(...TOOL_PARAMETERS);
  if (context.toolChoice !== "auto") reserved.push("tool_choice");
  return {
    stream: true,
    ...include(profile),
    ...text(profile, context),
    ...settings({ store: false, ...cacheKey(profile, context), ...profile.parameters }, reserved),
  };
}

/** Adds the reasoning, in a form that can be sent back, to the profile's list. */
function include(profile: ModelProfile): JsonObject {
  const asked = profile.parameters?.include;
  if (asked === null) return {};
  const included = new Set(Array.isArray(asked) ? asked : []);
  if (!isStored(profile) && !NOT_REASONING.test(profile.modelId)) included.add(ENCRYPTED_REASONING);
  return filled({ include: [...included] });
}

/** Joins the profile's `text` (its verbosity) with the format of a structured reply. */
function text({ parameters }: ModelProfile, { output }: ModelContext): JsonObject {
  const { text: given } = settings(parameters, []);
  if (output === undefined) return given === undefined ? {} : { text: given };
  const schema = withoutLookaround(output.schema);
  const format = { type: "json_schema", name: output.name, schema, strict: fitsStrict(schema) };
  return { text: { ...membersOf(given), format } };
}
