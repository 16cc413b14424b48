/** The scripted model as an AI SDK language model. It streams its reply at once, in the parts of a provider. */
import type { LanguageModel } from "ai";
import { replyTo, TOOL_NAME } from "./workload.ts";

type LanguageModelV4 = Extract<LanguageModel, { specificationVersion: "v4" }>;
type CallOptions = Parameters<LanguageModelV4["doStream"]>[0];
type StreamResult = Awaited<ReturnType<LanguageModelV4["doStream"]>>;
type StreamPart = StreamResult["stream"] extends ReadableStream<infer Part> ? Part : never;

export const aiSdkModel: LanguageModelV4 = {
  specificationVersion: "v4",
  provider: "scripted",
  modelId: "zero-latency",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("The scripted model only streams.")),
  doStream: async ({ prompt }) => {
    const parts = partsFor(prompt);
    const stream = new ReadableStream<StreamPart>({
      start(controller) {
        for (const part of parts) controller.enqueue(part);
        controller.close();
      },
    });
    return { stream };
  },
};

function partsFor(prompt: CallOptions["prompt"]): StreamPart[] {
  const reply = replyTo(read(prompt));
  const parts: StreamPart[] = [{ type: "stream-start", warnings: [] }];
  if (reply.kind === "text") {
    parts.push({ type: "text-start", id: "0" });
    for (const delta of reply.pieces) parts.push({ type: "text-delta", id: "0", delta });
    parts.push({ type: "text-end", id: "0" });
  } else {
    const { id } = reply;
    const input = JSON.stringify(reply.input);
    parts.push({ type: "tool-input-start", id, toolName: TOOL_NAME });
    parts.push({ type: "tool-input-delta", id, delta: input });
    parts.push({ type: "tool-input-end", id });
    parts.push({ type: "tool-call", toolCallId: id, toolName: TOOL_NAME, input });
  }
  parts.push({
    type: "finish",
    finishReason: { unified: reply.kind === "text" ? "stop" : "tool-calls", raw: undefined },
    usage: {
      inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 50, text: 50, reasoning: 0 },
    },
  });
  return parts;
}

/** Searches back only to the newest user message, so that the model's own time does not depend on the history. */
function read(prompt: CallOptions["prompt"]) {
  let toolResults = 0;
  const messages = prompt.length - (prompt[0]?.role === "system" ? 1 : 0);
  for (let index = prompt.length - 1; index >= 0; index -= 1) {
    const message = prompt[index];
    if (message?.role === "tool") toolResults += 1;
    if (message?.role !== "user") continue;
    const text = message.content.map((part) => (part.type === "text" ? part.text : "")).join("");
    return { text, messages, toolResults };
  }
  return { text: "", messages, toolResults };
}
