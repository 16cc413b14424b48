/**
 * Google's Gemini API: the body of `generateContent` and `streamGenerateContent`.
 *
 * GEMINI-1  Turns alternate. The first and the last turn are the user's, unless calls wait for their results. Blank texts
 *           are left out. A request that is extended keeps its contents as they are; new contents come behind them.
 * GEMINI-2  All results of one reply are first in the user's content directly after it, in the order of their calls and
 *           under their names. Ids of calls are unique in the request, regardless of their original ids.
 * GEMINI-3  A reply is sent back to its model in its own parts, each with its own signature.
 */
import type { ModelContext, ToolSpec } from "../../../model/context.ts";
import type { FormatAdapter, ModelFormatAdapter } from "../../../model/format-adapter.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { NO_MESSAGE } from "../common/blank.ts";
import { filled, membersOf, objects } from "../common/json.ts";
import { modelFormatAdapter } from "../common/model-messages.ts";
import { SentCalls } from "../common/names.ts";
import { checkChoice, ownTools, settings, unsupported, withChoice } from "../common/request.ts";
import { firstTurns, instructed, laterTurns, type TurnFormat } from "../common/turns.ts";
import { wellFormedFormat } from "../common/well-formed.ts";
import { GeminiDecoder } from "./decoder.ts";
import { geminiSchema } from "./gemini-schema.ts";
import { GEMINI_CALLS, geminiTurns, generationOf, toName } from "./messages.ts";

/** Keys that the request sets itself, or joins with the profile's. */
const RESERVED = ["model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"];

/** Top-level parameters. All other parameters belong to `generationConfig`. */
const TOP_LEVEL = ["safetySettings", "cachedContent", "labels", "serviceTier", "store", "modelArmorConfig"];

const TURNS: TurnFormat = {
  key: "contents",
  opening: { text: NO_MESSAGE },
  toMessages: ({ role, blocks }) => [{ role: role === "user" ? "user" : "model", parts: blocks }],
};

export const geminiFormat: FormatAdapter = wellFormedFormat({
  provider: "gemini",
  buildRequest(profile, context) {
    const { parameters = {} } = profile;
    const { instructions, messages } = instructed("gemini", context);
    const calls = new SentCalls(GEMINI_CALLS);
    return calls.carriedBy({
      contents: firstTurns(TURNS, geminiTurns(profile, messages, calls), messages.at(-1)),
      ...(instructions === "" ? {} : { systemInstruction: { parts: [{ text: instructions }] } }),
      ...tools(profile, context),
      ...generationConfig(parameters, context),
      ...Object.fromEntries(
        Object.entries(settings(parameters, [])).filter(([key]) => TOP_LEVEL.includes(key)),
      ),
    });
  },
  extend(profile, request, messages) {
    const calls = new SentCalls(GEMINI_CALLS, request);
    return calls.carriedBy(laterTurns(TURNS, request, geminiTurns(profile, messages, calls)));
  },
  choose(request, toolChoice) {
    const { toolConfig, ...rest } = request;
    const { functionCallingConfig: _, ...others } = membersOf(toolConfig);
    const config = { ...others, ...defined({ functionCallingConfig: choose({ toolChoice }) }) };
    const names = objects(request.tools).flatMap((tool) =>
      objects(tool.functionDeclarations).map(({ name }) => name),
    );
    const base = names.length === 0 ? request : rest;
    return withChoice("gemini", base, toolChoice, { names, members: filled({ toolConfig: config }) });
  },
  decoder: () => new GeminiDecoder("gemini"),
});

/** Contents for `generateContent`, and the instructions, if there are any. */
export const geminiAdapter: ModelFormatAdapter<{ systemInstruction?: JsonObject; contents: JsonObject[] }> =
  modelFormatAdapter(geminiFormat, ["systemInstruction", "contents"]);

/** The profile gives the configuration as such, or its members among the parameters. The path decides on streaming. */
function generationConfig(parameters: JsonObject, { output }: ModelContext): JsonObject {
  return filled({
    generationConfig: {
      ...settings(membersOf(parameters.generationConfig), []),
      ...settings(parameters, [...RESERVED, ...TOP_LEVEL, "stream"]),
      ...(output && {
        responseMimeType: "application/json",
        responseJsonSchema: geminiSchema(output.schema),
      }),
    },
  });
}

function tools(profile: ModelProfile, context: ModelContext): JsonObject {
  checkChoice("gemini", context);
  const own = ownTools(profile);
  const declared = mustOmitTools(profile, context) ? [] : context.tools.map(toDeclaration);
  const { functionCallingConfig, ...others } = membersOf(profile.parameters?.toolConfig);
  const choice = declared.length === 0 ? undefined : (choose(context) ?? functionCallingConfig);
  return filled({
    tools: [...(declared.length === 0 ? [] : [{ functionDeclarations: declared }]), ...own],
    toolConfig: { ...others, ...defined({ functionCallingConfig: choice }) },
  });
}

/**
 * Reports whether the tools must be left out: models before the third generation do not support tools with a structured reply. Throws
 * `UNSUPPORTED` if the model might call a tool.
 */
function mustOmitTools(
  { modelId }: ModelProfile,
  { tools: offered, toolChoice, output }: ModelContext,
): boolean {
  const generation = generationOf(modelId);
  if (output === undefined || offered.length === 0 || generation === 0 || generation >= 3) return false;
  if (toolChoice === "none") return true;
  throw unsupported("gemini", "a request for a structured reply that also offers tools, before Gemini 3");
}

/** Returns the context's choice; `undefined` if it leaves the model free. */
function choose({ toolChoice }: Pick<ModelContext, "toolChoice">): JsonObject | undefined {
  if (typeof toolChoice === "object") return { mode: "ANY", allowedFunctionNames: [toolChoice.name] };
  if (toolChoice === "auto") return undefined;
  return { mode: toolChoice === "none" ? "NONE" : "ANY" };
}

function toDeclaration({ name, description, inputSchema }: ToolSpec): JsonObject {
  if (name === "" || name !== toName(name)) {
    const rule = 'begin with a letter or "_", and use up to 128 letters, digits, "_", ".", ":" and "-"';
    throw unsupported("gemini", `a tool named "${name}": ${rule}`);
  }
  return { name, ...filled({ description }), parametersJsonSchema: geminiSchema(inputSchema) };
}
