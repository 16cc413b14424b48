/**
 * Any language model of the AI SDK: the request is the model's call options as JSON, the payloads of its reply are the
 * parts of its stream as JSON.
 *
 * AISDK-1  A call is taken from its final part, never from the pieces of its input, which a model may still repair. A
 *          call that the model's provider runs itself is none of ours.
 * AISDK-2  What a part carries for its provider (signatures, ids) goes back with it, to the model that gave it.
 * AISDK-3  Names and ids are letters, digits, `_` and `-` wherever they occur, which every provider behind takes.
 */

import type { ModelContext, ToolSpec } from "../../../model/context.ts";
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { systemMessages } from "../chat/messages.ts";
import { NAME_LENGTH } from "../common/names.ts";
import { ReplyStream } from "../common/reply-stream.ts";
import { continued, requireList, settings } from "../common/request.ts";
import { checkChoice, checkNames } from "../common/tools.ts";
import { toPrompt } from "./prompt.ts";
import { AiSdkReader } from "./reader.ts";

export const aiSdkFormat: FormatAdapter = {
  provider: "ai-sdk",
  buildRequest(profile, context) {
    checkNames("ai-sdk", context, NAME_LENGTH);
    checkChoice("ai-sdk", context);
    const { systemInstructions, messages } = context;
    return {
      prompt: [...systemMessages(systemInstructions), ...toPrompt(messages, profile)],
      ...toolsOf(context),
      ...outputOf(context),
      ...options(profile, context),
    };
  },
  extend: (profile, request, messages) =>
    continued(request, "prompt", toPrompt(messages, profile, requireList(request, "prompt"))),
  decoder: () => new ReplyStream("ai-sdk", new AiSdkReader()),
};

function toolsOf({ tools, toolChoice }: ModelContext): JsonObject {
  if (tools.length === 0) return {};
  const choice =
    typeof toolChoice === "string" ? { type: toolChoice } : { type: "tool", toolName: toolChoice.name };
  return { tools: tools.map(toTool), toolChoice: choice };
}

function toTool({ name, description, inputSchema }: ToolSpec): JsonObject {
  return { type: "function", name, description, inputSchema };
}

function outputOf({ output }: ModelContext): JsonObject {
  return output === undefined
    ? {}
    : { responseFormat: { type: "json", name: output.name, schema: output.schema } };
}

/** The gateway gives the signal; raw chunks would only be passed over. */
function options({ parameters }: ModelProfile, { tools, toolChoice, output }: ModelContext): JsonObject {
  const reserved = ["prompt", "tools", "abortSignal", "includeRawChunks"];
  if (tools.length === 0 || toolChoice !== "auto") reserved.push("toolChoice");
  if (output !== undefined) reserved.push("responseFormat");
  return settings(parameters, reserved);
}
