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
  /** Creates a decoder for one reply. */
  decoder(): StreamDecoder;
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
