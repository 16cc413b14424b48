/** The pure half of a model provider: builds its requests and decodes its replies. */
import type { JsonObject } from "../shared/json.ts";
import type { ModelContext } from "./context.ts";
import type { ContextMessage } from "./messages.ts";
import type { ModelProfile, ProviderId } from "./profile.ts";
import type { ModelDelta } from "./reply.ts";

/** Converts between neutral types and the wire format of one provider. */
export interface FormatAdapter {
  readonly provider: ProviderId;
  /** Builds the provider's request body. Throws `UNSUPPORTED` with the part that the provider cannot express. */
  buildRequest(profile: ModelProfile, context: ModelContext): JsonObject;
  /** Appends later messages to a request. The previous content stays unchanged, byte for byte. */
  extend(profile: ModelProfile, request: JsonObject, messages: readonly ContextMessage[]): JsonObject;
  /** Sets the choice of tools in a request that another builder made. Throws `UNSUPPORTED` for a forced tool that it does not offer. */
  choose(request: JsonObject, toolChoice: ModelContext["toolChoice"]): JsonObject;
  /** Creates a decoder for one reply. */
  decoder(): StreamDecoder;
}

/** Converts a working context to the messages of one provider, for a request that you send yourself. Keeps no state. */
export interface ModelFormatAdapter<Input = unknown> {
  readonly name: string;
  /**
   * Returns the members of a request that hold instructions and messages. Throws `UNSUPPORTED` as `buildRequest` does.
   * `modelId` is the model that will get them. Without it the reasoning and signatures of earlier replies are left out.
   * @example
   * const { system, messages } = anthropicAdapter.toModelMessages(context.systemInstructions, context.messages);
   */
  toModelMessages(
    systemInstructions: readonly string[],
    messages: readonly ContextMessage[],
    modelId?: string,
  ): Input;
}

/** Decodes one reply. */
export interface StreamDecoder {
  /** Decodes the payload of one server-sent event: the text of its `data`. */
  push(data: string): ModelDelta[];
  /** Ends the stream. Returns an error delta if the reply is incomplete. */
  end(): ModelDelta[];
}

/** Returns the format adapter of a provider. */
export type AdapterLookup = (provider: ProviderId) => FormatAdapter;
