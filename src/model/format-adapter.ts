/** The pure half of a model provider: neutral context to its request, its stream to deltas. */

import type { JsonObject } from "../shared/json.ts";
import type { ModelContext } from "./context.ts";
import type { ContextMessage } from "./messages.ts";
import type { ModelProfile, ProviderId } from "./profile.ts";
import type { ModelDelta } from "./reply.ts";

/** The pure half: one per provider wire format. */
export interface FormatAdapter {
  readonly provider: ProviderId;
  /** The provider's own request body. Throws `UNSUPPORTED` naming what the provider cannot express. */
  buildRequest(profile: ModelProfile, context: ModelContext): JsonObject;
  /** The same request continued by later messages (a cycle's moves): what was sent before stays byte for byte. */
  extend(profile: ModelProfile, request: JsonObject, messages: readonly ContextMessage[]): JsonObject;
  /** A decoder for one reply. */
  decoder(): StreamDecoder;
}

/** Decodes one reply. `push` takes the payload of one server-sent event (the text of its `data`). */
export interface StreamDecoder {
  push(data: string): ModelDelta[];
  /** The stream ended; reports an error delta if the reply is not complete. */
  end(): ModelDelta[];
}

/** The format adapter of a provider; throws `UNSUPPORTED` for one that is not built in. */
export type AdapterLookup = (provider: ProviderId) => FormatAdapter;
