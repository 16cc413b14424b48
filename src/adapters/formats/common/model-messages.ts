/**
 * The messages of a format, without the rest of its request.
 *
 * MESSAGES-1  The messages equal the messages in the format's request to the model.
 */
import type { FormatAdapter, ModelFormatAdapter } from "../../../model/format-adapter.ts";

/** Makes the adapter that returns these keys of the requests of `format`. */
export function modelFormatAdapter<Input>(
  format: FormatAdapter,
  keys: readonly (keyof Input & string)[],
): ModelFormatAdapter<Input> {
  return {
    name: format.provider,
    toModelMessages(systemInstructions, messages, modelId = "") {
      const context = { systemInstructions, messages, tools: [], toolChoice: "auto" } as const;
      const request = format.buildRequest({ provider: format.provider, modelId }, context);
      const kept = keys.flatMap((key) => (request[key] === undefined ? [] : [[key, request[key]] as const]));
      // SAFETY: the format's adapter names the keys of its own requests.
      return Object.fromEntries(kept) as Input;
    },
  };
}
