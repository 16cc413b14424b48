/**
 * Decodes one reply of an AI SDK language model from the parts of its stream, each as JSON. Reasoning, files that the
 * model made, custom parts, and calls that its provider ran are kept to be sent back. Sources, warnings, raw chunks and
 * pings are ignored.
 */
import type { ModelError } from "../../../model/error.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { inBandError } from "../../errors/model-errors.ts";
import { finishReason, ReplyDecoder } from "../common/decoder.ts";
import { filled, membersOf, stringOf } from "../common/json.ts";
import { nativeDeltas } from "../common/native.ts";
import { tokenUsage, total, usageDeltas } from "../common/usage.ts";
import { AiSdkReplyParts } from "./ai-sdk-parts.ts";

const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map([
  ["stop", "stop"],
  ["tool-calls", "tool_calls"],
  ["length", "length"],
  ["content-filter", "content_filter"],
  ["pause_turn", "paused"],
]);

export class AiSdkDecoder extends ReplyDecoder {
  readonly #parts = new AiSdkReplyParts();
  protected finish: FinishReason | undefined;

  protected read(part: JsonObject): ModelDelta[] | ModelError | undefined {
    const { type, providerMetadata: metadata } = part;
    const id = stringOf(part.id);
    switch (type) {
      case "text-start":
      case "reasoning-start":
        this.#parts.begin(kindOf(type), id, metadata);
        return [];
      case "text-end":
      case "reasoning-end":
        this.#parts.add(kindOf(type), id, metadata);
        return [];
      case "text-delta":
      case "reasoning-delta": {
        const text = stringOf(part.delta);
        this.#parts.add(kindOf(type), id, metadata, text);
        return text === "" ? [] : [{ type: kindOf(type), text }];
      }
      case "tool-call":
        if (part.providerExecuted !== true) return [this.#call(part)];
        this.#parts.keepProviderCall(part);
        return [];
      case "tool-result":
        this.#parts.keepProviderResult(part);
        return [];
      case "tool-approval-request":
        this.#parts.dropProviderCall(stringOf(part.toolCallId));
        return [];
      case "file":
      case "reasoning-file":
      case "custom":
        this.#parts.keep(part);
        return [];
      case "response-metadata":
        this.messageId ||= id;
        return [];
      case "error":
        return inBandError(this.provider, part.error);
      case "finish":
        return this.#complete(part);
      default:
        return typeof type === "string" ? [] : undefined;
    }
  }

  protected override close(): ModelDelta[] {
    return nativeDeltas(this.#parts.parts());
  }

  #call(part: JsonObject): ModelDelta {
    const [id, name, input] = [stringOf(part.toolCallId), stringOf(part.toolName), stringOf(part.input)];
    const index = this.#parts.addCall(part.providerMetadata);
    return { type: "tool-call", index, ...filled({ id, name, arguments: input }) };
  }

  #complete({ finishReason: given, usage }: JsonObject): ModelDelta[] | ModelError {
    const { unified, raw } = membersOf(given);
    // The SDK has no reason of its own for Anthropic's pauses.
    const reason = raw === "pause_turn" ? raw : stringOf(unified);
    if (reason === "error") return this.error("transient", "The model reported an error during its reply.");
    if (reason === "interrupted") return this.error("transient", "The reply ended before it was complete.");
    const { hasCalls, isWaiting } = this.#parts;
    const finish = finishReason(FINISH_REASONS, reason, hasCalls);
    this.finish = finish === "stop" && isWaiting ? "other" : finish;
    this.isOver = true;
    return usageDeltas(toUsage(usage));
  }
}

function kindOf(type: string): "text" | "reasoning" {
  return type.startsWith("text") ? "text" : "reasoning";
}

/** The provider's own counts are more detailed. */
function toUsage(value: Json | undefined): TokenUsage | undefined {
  const { inputTokens, outputTokens, raw } = membersOf(value);
  const [input, output] = [membersOf(inputTokens), membersOf(outputTokens)];
  return tokenUsage(
    {
      inputTokens: input.total,
      cachedInputTokens: input.cacheRead,
      cacheWriteTokens: input.cacheWrite,
      outputTokens: output.total,
      reasoningTokens: output.reasoning,
      totalTokens: total(input.total, output.total),
    },
    membersOf(raw),
  );
}
