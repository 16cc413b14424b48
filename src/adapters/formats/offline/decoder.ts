/** Decodes one reply of the offline model. */
import type { ModelError } from "../../../model/error.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { ReplyDecoder } from "../common/decoder.ts";
import { chunkSchema } from "./wire.ts";

export class OfflineDecoder extends ReplyDecoder {
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
