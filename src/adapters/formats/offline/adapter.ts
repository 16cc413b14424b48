/**
 * The offline model: a deterministic model that follows the rules of `docs/offline-model.md`, needs no network and labels
 * its answers. It is reached like every other model, so that a first run and the tests take the real path.
 */
import type { FormatAdapter, ModelFormatAdapter } from "../../../model/format-adapter.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { filled, jsonOf, objects } from "../common/json.ts";
import { modelFormatAdapter } from "../common/model-messages.ts";
import { continued, withChoice } from "../common/request.ts";
import { wellFormedFormat } from "../common/well-formed.ts";
import { OfflineDecoder } from "./decoder.ts";

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
