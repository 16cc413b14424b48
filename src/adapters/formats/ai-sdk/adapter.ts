/**
 * Any language model of the AI SDK. The request is the model's call options as JSON. The payloads of its reply are the parts of its stream
 * as JSON.
 *
 * AISDK-1  A call is taken from its final part, because a model may still repair the pieces of its input. A call that the model's provider
 *          runs itself is not a call of ours.
 * AISDK-2  Provider metadata of a part (signatures, ids) is sent back with the part, only to the model that gave it.
 * AISDK-3  Names and ids consist of letters, digits, `_` and `-` everywhere, because every provider behind the SDK accepts these.
 * AISDK-4  Every provider behind the SDK accepts the prompt. It has at most one system message, at the start. Then turns of user and model
 *          alternate. They begin and end with a user's turn, unless calls wait for their results. All results of a reply are one message
 *          directly after it.
 */
import type { ModelContext, ToolSpec } from "../../../model/context.ts";
import type { FormatAdapter, ModelFormatAdapter } from "../../../model/format-adapter.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { objects } from "../common/json.ts";
import { modelFormatAdapter } from "../common/model-messages.ts";
import { SentCalls } from "../common/names.ts";
import { checkChoice, checkNames, settings, withChoice } from "../common/request.ts";
import { firstTurns, instructed, laterTurns } from "../common/turns.ts";
import { wellFormedFormat } from "../common/well-formed.ts";
import { AiSdkDecoder } from "./decoder.ts";
import { AI_SDK_CALLS, AI_SDK_TURNS, promptTurns } from "./messages.ts";

export const aiSdkFormat: FormatAdapter = wellFormedFormat({
  provider: "ai-sdk",
  buildRequest(profile, context) {
    checkNames("ai-sdk", context);
    checkChoice("ai-sdk", context);
    const { instructions, messages } = instructed("ai-sdk", context);
    const calls = new SentCalls(AI_SDK_CALLS);
    const turns = promptTurns(profile, messages, calls);
    return calls.carriedBy({
      prompt: [
        ...(instructions === "" ? [] : [{ role: "system", content: instructions }]),
        ...firstTurns(AI_SDK_TURNS, turns, messages.at(-1)),
      ],
      ...tools(context),
      ...output(context),
      ...options(profile, context),
    });
  },
  extend(profile, request, messages) {
    const calls = new SentCalls(AI_SDK_CALLS, request);
    return calls.carriedBy(laterTurns(AI_SDK_TURNS, request, promptTurns(profile, messages, calls)));
  },
  choose: (request, choice) =>
    withChoice("ai-sdk", request, choice, {
      names: objects(request.tools).map(({ name }) => name),
      members: { toolChoice: toChoice(choice) },
    }),
  decoder: () => new AiSdkDecoder("ai-sdk"),
});

/** The prompt of a language model of the AI SDK. The instructions are its first message. */
export const aiSdkAdapter: ModelFormatAdapter<{ prompt: JsonObject[] }> = modelFormatAdapter(aiSdkFormat, [
  "prompt",
]);

function tools({ tools: offered, toolChoice }: ModelContext): JsonObject {
  if (offered.length === 0) return {};
  return { tools: offered.map(toTool), toolChoice: toChoice(toolChoice) };
}

function toChoice(toolChoice: ModelContext["toolChoice"]): JsonObject {
  return typeof toolChoice === "string" ? { type: toolChoice } : { type: "tool", toolName: toolChoice.name };
}

function toTool({ name, description, inputSchema }: ToolSpec): JsonObject {
  return { type: "function", name, description, inputSchema };
}

function output({ output: asked }: ModelContext): JsonObject {
  return asked === undefined
    ? {}
    : { responseFormat: { type: "json", name: asked.name, schema: asked.schema } };
}

/** The gateway sets the signal; the decoder would ignore raw chunks. */
function options({ parameters }: ModelProfile, context: ModelContext): JsonObject {
  const reserved = ["prompt", "tools", "abortSignal", "includeRawChunks"];
  if (context.tools.length === 0 || context.toolChoice !== "auto") reserved.push("toolChoice");
  if (context.output !== undefined) reserved.push("responseFormat");
  return settings(parameters, reserved);
}
