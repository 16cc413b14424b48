/**
 * Reads one reply of an AI SDK language model from the parts of its stream, each as JSON. Kept to be given back:
 * reasoning, files the model made, custom parts, and calls that its provider ran, with their results. Passed over:
 * sources and warnings, raw chunks, pings.
 */
import { z } from "zod";
import type { ModelError } from "../../../model/error.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { inBandError, modelError } from "../../errors/model-errors.ts";
import type { ReplyReader } from "../common/reply-stream.ts";
import { AiSdkReply } from "./reply.ts";
import { aiSdkUsage } from "./usage.ts";

const PROVIDER = "ai-sdk";

const partSchema = z.object({
  type: z.string(),
  id: z.string().catch(""),
  delta: z.string().catch(""),
  toolCallId: z.string().catch(""),
  toolName: z.string().catch(""),
  input: z.string().catch(""),
  providerExecuted: z.boolean().catch(false),
  finishReason: z.object({ unified: z.string() }).optional().catch(undefined),
});

export class AiSdkReader implements ReplyReader {
  readonly #reply = new AiSdkReply();
  #finish: FinishReason | undefined;
  #messageId: string | undefined;

  get finish(): FinishReason | undefined {
    return this.#finish;
  }

  get isOver(): boolean {
    return this.#finish !== undefined;
  }

  read(payload: JsonObject): ModelDelta[] | ModelError | undefined {
    const part = partSchema.safeParse(payload);
    return part.success ? this.#take(part.data, payload) : undefined;
  }

  close(): ModelDelta[] {
    const parts = this.#reply.parts();
    return parts === undefined ? [] : [{ type: "native", parts }];
  }

  #take(part: z.infer<typeof partSchema>, payload: JsonObject): ModelDelta[] | ModelError {
    const { type, id, delta } = part;
    switch (type) {
      case "text-start":
      case "reasoning-start":
        this.#reply.begin(kindOf(type), id, payload.providerMetadata);
        return [];
      case "text-end":
      case "reasoning-end":
        this.#reply.add(kindOf(type), id, payload.providerMetadata);
        return [];
      case "text-delta":
      case "reasoning-delta":
        this.#reply.add(kindOf(type), id, payload.providerMetadata, delta);
        return delta === "" ? [] : [{ type: kindOf(type), text: delta }];
      case "tool-call":
        if (part.providerExecuted) this.#reply.keepProviderCall(payload);
        return part.providerExecuted ? [] : [this.#call(part, payload)];
      case "tool-result":
        this.#reply.keepProviderResult(payload);
        return [];
      case "tool-approval-request":
        this.#reply.dropProviderCall(part.toolCallId);
        return [];
      case "file":
      case "reasoning-file":
      case "custom":
        this.#reply.keep(payload);
        return [];
      case "response-metadata":
        if (this.#messageId !== undefined || id === "") return [];
        this.#messageId = id;
        return [{ type: "message-id", id }];
      case "error":
        return inBandError(PROVIDER, payload.error);
      case "finish":
        return this.#complete(part.finishReason?.unified, payload);
      default:
        return [];
    }
  }

  #call({ toolCallId, toolName, input }: z.infer<typeof partSchema>, payload: JsonObject): ModelDelta {
    const index = this.#reply.addCall(payload.providerMetadata);
    return {
      type: "tool-call",
      index,
      ...(toolCallId === "" ? {} : { id: toolCallId }),
      ...(toolName === "" ? {} : { name: toolName }),
      ...(input === "" ? {} : { arguments: input }),
    };
  }

  #complete(reason: string | undefined, { usage }: JsonObject): ModelDelta[] | ModelError {
    if (reason === "error") return failure("The model gave up in the middle of its reply.");
    if (reason === "interrupted") return failure("The reply ended before it was complete.");
    this.#finish = finishReason(reason, this.#reply.calls > 0, this.#reply.isWaiting);
    const counted = aiSdkUsage(usage);
    return counted === undefined ? [] : [{ type: "usage", usage: counted }];
  }
}

function failure(message: string): ModelError {
  return modelError(PROVIDER, "transient", message);
}

function kindOf(type: string): "text" | "reasoning" {
  return type.startsWith("text") ? "text" : "reasoning";
}

function finishReason(reason: string | undefined, hasCalls: boolean, isWaiting: boolean): FinishReason {
  switch (reason) {
    case "stop":
    case "tool-calls":
      if (hasCalls) return "tool_calls";
      return reason === "stop" && !isWaiting ? "stop" : "other";
    case "length":
      return "length";
    case "content-filter":
      return "content_filter";
    default:
      return "other";
  }
}
