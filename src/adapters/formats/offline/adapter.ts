/**
 * The offline model: a deterministic model that follows the rules of `docs/offline-model.md`, needs no network and labels
 * its answers. It is reached like every other model, so that a first run and the tests take the real path.
 */
import type { ModelError } from "../../../model/error.ts";
import type { FormatAdapter, ModelFormatAdapter } from "../../../model/format-adapter.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { ReplyDecoder } from "../common/decoder.ts";
import { filled, jsonOf, objects } from "../common/json.ts";
import { modelFormatAdapter } from "../common/model-messages.ts";
import { continued, withChoice } from "../common/request.ts";
import { wellFormedFormat } from "../common/well-formed.ts";
import { chunkSchema } from "./wire.ts";

export const offlineFormat: FormatAdapter = wellFormedFormat({
  provider: "offline",
  buildRequest: (profile, { systemInstructions, messages, tools, toolChoice, output }) => ({
    ...profile.parameters,
    model: profile.modelId,
    messages: [...systemInstructions.map((text) => ({ role: "system", text })), ...messages.map(toMessage)],
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
    toolChoice,
    ...(output && { output: { ...output } }),
  }),
  extend: (_profile, request, messages) => continued(request, "messages", messages.map(toMessage)),
  choose: (request, toolChoice) =>
    withChoice("offline", request, toolChoice, {
      names: objects(request.tools).map(({ name }) => name),
      members: { toolChoice },
    }),
  decoder: () => new OfflineDecoder("offline"),
});

export const offlineAdapter: ModelFormatAdapter<{ messages: JsonObject[] }> = modelFormatAdapter(
  offlineFormat,
  ["messages"],
);

function toMessage({
  role,
  content,
  name,
  toolCallId,
  toolCalls = [],
  metadata,
}: ContextMessage): JsonObject {
  const calls = toolCalls.map((call) => ({ id: call.id, name: call.name, input: jsonOf(call.arguments) }));
  return {
    role,
    text: content,
    ...defined({ name }),
    ...filled({ calls }),
    ...defined({ callId: toolCallId }),
    ...(metadata?.isSuccess === false ? { failed: true } : {}),
  };
}

class OfflineDecoder extends ReplyDecoder {
  protected finish: FinishReason | undefined;

  protected read(payload: JsonObject): ModelDelta[] | ModelError | undefined {
    const { data } = chunkSchema.safeParse(payload);
    if (data === undefined) return undefined;
    const { id, text, call, done, usage, error } = data;
    if (error !== undefined) return this.error("validation", error);
    this.messageId ||= id;
    this.finish = done;
    this.isOver = done !== undefined;
    if (text !== undefined) return [{ type: "text", text }];
    if (call !== undefined)
      return [{ type: "tool-call", index: call.index, id: call.id, name: call.name, arguments: call.input }];
    if (usage === undefined) return [];
    const totalTokens = usage.inputTokens + usage.outputTokens;
    return [{ type: "usage", usage: { ...usage, totalTokens } }];
  }
}
