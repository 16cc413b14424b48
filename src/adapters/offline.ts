/**
 * The offline model's adapter: a deterministic, rule-driven model that needs no network and says that it is one. It is
 * reached like every other model, so a first run and the tests go the real way. Its rules: `docs/offline-model.md`.
 */
import { appendMessages } from "./chat-messages.ts";
import { modelError } from "./errors.ts";
import { buildBody, chunkSchema, toOfflineMessage } from "./offline/body.ts";
import type { FormatAdapter, ModelDelta, StreamDecoder } from "./types.ts";

export const offlineFormat: FormatAdapter = {
  provider: "offline",
  buildRequest: buildBody,
  extend: (_profile, request, messages) => appendMessages(request, messages.map(toOfflineMessage)),
  decoder: () => new OfflineDecoder(),
};

class OfflineDecoder implements StreamDecoder {
  #isOver = false;

  push(data: string): ModelDelta[] {
    if (this.#isOver) return [];
    const parsed = chunkSchema.safeParse(parse(data));
    if (!parsed.success) return this.#fail("transient", "The offline model sent an unknown chunk.");
    const chunk = parsed.data;
    if ("id" in chunk) return [{ type: "message-id", id: chunk.id }];
    if ("text" in chunk) return [{ type: "text", text: chunk.text }];
    if ("call" in chunk) {
      const { index, id, name, input } = chunk.call;
      return [{ type: "tool-call", index, id, name, arguments: input }];
    }
    if ("error" in chunk) return this.#fail("validation", chunk.error);
    this.#isOver = true;
    const { inputTokens, outputTokens } = chunk.usage;
    const usage = { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
    return [
      { type: "usage", usage },
      { type: "finish", reason: chunk.done },
    ];
  }

  end(): ModelDelta[] {
    return this.#isOver ? [] : this.#fail("transient", "The reply ended before it was complete.");
  }

  #fail(category: "transient" | "validation", message: string): ModelDelta[] {
    this.#isOver = true;
    return [{ type: "error", error: modelError("offline", category, message) }];
  }
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
