/**
 * Google's Gemini API: the body of `generateContent` and `streamGenerateContent`.
 *
 * GEMINI-1  Turns alternate, begin with a user's and end with one, unless calls wait for their results; blank texts are
 *           left out. A request that is extended keeps its contents as they are, and gets the new ones behind them.
 * GEMINI-2  All results of one reply stand first in the user's content right behind it, in the order of their calls and
 *           under their names, and ids of calls are unique over the request, whatever ids the calls came with.
 * GEMINI-3  A reply of the same model goes back in its own parts, each with its own signature.
 */

import type { ModelContext, ToolSpec } from "../../../model/context.ts";
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { unsupported } from "../common/native.ts";
import { ReplyStream } from "../common/reply-stream.ts";
import { continued, requireList, settings } from "../common/request.ts";
import { checkChoice, ownTools } from "../common/tools.ts";
import { alternating, answerable, type Exchange, instructed, NO_MESSAGE } from "../common/turns.ts";
import { generationOf, toContents, toName } from "./contents.ts";
import { GeminiReader } from "./reader.ts";

/** What the request says itself, or joins with what the profile says. */
const RESERVED = ["model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig"];

/** Parameters that stand beside `generationConfig`; every other one goes into it. */
const BESIDE = new Set([
  "safetySettings",
  "cachedContent",
  "labels",
  "serviceTier",
  "store",
  "modelArmorConfig",
]);

const OPENING: JsonObject = { text: NO_MESSAGE };

export const geminiFormat: FormatAdapter = {
  provider: "gemini",
  buildRequest(profile, context) {
    const { instructions, messages } = instructed("gemini", context);
    const turns = alternating(toContents(profile, messages), OPENING);
    const [beside, flat] = parameters(profile);
    const config = { ...flat, ...output(context) };
    return {
      contents: answerable(turns, OPENING, messages.at(-1)).map(toContent),
      ...(instructions === "" ? {} : { systemInstruction: { parts: [{ text: instructions }] } }),
      ...tools(profile, context),
      ...(Object.keys(config).length === 0 ? {} : { generationConfig: config }),
      ...beside,
    };
  },
  extend(profile, request, messages) {
    const sent = requireList(request, "contents");
    const turns = alternating(toContents(profile, messages, sent), OPENING, roleOf(sent.at(-1)));
    return continued(request, "contents", turns.map(toContent));
  },
  decoder: () => new ReplyStream("gemini", new GeminiReader()),
};

function toContent({ role, blocks }: Exchange): JsonObject {
  return { role: role === "user" ? "user" : "model", parts: blocks };
}

function roleOf(content: Json | undefined): Exchange["role"] | undefined {
  if (!isJsonObject(content)) return undefined;
  return content.role === "model" ? "assistant" : "user";
}

/** The profile's parameters: those beside the configuration, and the configuration, given as such or flat. */
function parameters(profile: ModelProfile): [beside: JsonObject, config: JsonObject] {
  const given = profile.parameters?.generationConfig;
  const flat = Object.entries(settings(profile.parameters, [...RESERVED, "stream"]));
  const config = flat.filter(([key]) => !BESIDE.has(key));
  return [
    Object.fromEntries(flat.filter(([key]) => BESIDE.has(key))),
    { ...(isJsonObject(given) ? settings(given, []) : {}), ...Object.fromEntries(config) },
  ];
}

function tools(profile: ModelProfile, context: ModelContext): JsonObject {
  checkChoice("gemini", context);
  const own = ownTools(profile);
  const given = profile.parameters ?? {};
  const declared = isAnsweredOnly(profile, context) ? [] : context.tools.map(toDeclaration);
  const { functionCallingConfig, ...others } = isJsonObject(given.toolConfig) ? given.toolConfig : {};
  const choice = declared.length === 0 ? undefined : (choose(context) ?? functionCallingConfig);
  const config = { ...others, ...defined({ functionCallingConfig: choice }) };
  const offered = [...(declared.length === 0 ? [] : [{ functionDeclarations: declared }]), ...own];
  return {
    ...(offered.length === 0 ? {} : { tools: offered }),
    ...(Object.keys(config).length === 0 ? {} : { toolConfig: config }),
  };
}

/**
 * Whether the tools are left out, because nothing may call them: models before the third generation take none beside a
 * structured reply. Throws `UNSUPPORTED` if one might be called.
 */
function isAnsweredOnly(
  { modelId }: ModelProfile,
  { tools: offered, toolChoice, output: asked }: ModelContext,
): boolean {
  const generation = generationOf(modelId);
  if (asked === undefined || offered.length === 0 || generation === 0 || generation >= 3) return false;
  if (toolChoice === "none") return true;
  throw unsupported("gemini", "a request for a structured reply that also offers tools, before Gemini 3");
}

/** The context's choice; `undefined` where it leaves the model free. */
function choose({ toolChoice }: ModelContext): JsonObject | undefined {
  if (toolChoice === "auto") return undefined;
  if (toolChoice === "none") return { mode: "NONE" };
  return toolChoice === "required"
    ? { mode: "ANY" }
    : { mode: "ANY", allowedFunctionNames: [toolChoice.name] };
}

function toDeclaration({ name, description, inputSchema }: ToolSpec): JsonObject {
  if (name === "" || name !== toName(name)) {
    const rule = 'begin with a letter or "_", and use up to 128 letters, digits, "_", ".", ":" and "-"';
    throw unsupported("gemini", `a tool named "${name}": ${rule}`);
  }
  return { name, ...(description === "" ? {} : { description }), parametersJsonSchema: inputSchema };
}

function output({ output: asked }: ModelContext): JsonObject {
  return asked === undefined
    ? {}
    : { responseMimeType: "application/json", responseJsonSchema: asked.schema };
}
