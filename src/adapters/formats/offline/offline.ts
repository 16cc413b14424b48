/**
 * The offline model's adapter: a deterministic, rule-driven model that needs no network and says that it is one. It is
 * reached like every other model, so a first run and the tests go the real way. Its rules: `docs/offline-model.md`.
 */

import type { ModelError } from "../../../model/error.ts";
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { modelError } from "../../errors/model-errors.ts";
import { type ReplyReader, ReplyStream } from "../common/reply-stream.ts";
import { continued } from "../common/request.ts";
import { buildBody, chunkSchema, toOfflineMessage } from "./body.ts";

export const offlineFormat: FormatAdapter = {
  provider: "offline",
  buildRequest: buildBody,
  extend: (_profile, request, messages) => continued(request, "messages", messages.map(toOfflineMessage)),
  decoder: () => new ReplyStream("offline", new OfflineReader()),
};

class OfflineReader implements ReplyReader {
  #finish: FinishReason | undefined;

  get finish(): FinishReason | undefined {
    return this.#finish;
  }

  get isOver(): boolean {
    return this.#finish !== undefined;
  }

  read(payload: JsonObject): ModelDelta[] | ModelError | undefined {
    const { data: chunk } = chunkSchema.safeParse(payload);
    if (chunk === undefined) return undefined;
    if ("id" in chunk) return [{ type: "message-id", id: chunk.id }];
    if ("text" in chunk) return [{ type: "text", text: chunk.text }];
    if ("call" in chunk) {
      const { index, id, name, input } = chunk.call;
      return [{ type: "tool-call", index, id, name, arguments: input }];
    }
    if ("error" in chunk) return modelError("offline", "validation", chunk.error);
    this.#finish = chunk.done;
    const { inputTokens, outputTokens } = chunk.usage;
    const usage = { inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
    return [{ type: "usage", usage }];
  }

  close(): ModelDelta[] {
    return [];
  }
}
