/**
 * Calls a language model of the AI SDK in this process. Each part of its stream becomes a JSON payload: bytes as base64,
 * dates and addresses as text.
 */
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { ResponseInfo } from "../../model/reply.ts";
import { race } from "../../ports/deadline.ts";
import { toBase64 } from "../../shared/base64.ts";
import { ModelFailure } from "../errors/model-errors.ts";
import { responseInfo } from "../errors/response-info.ts";
import { toCallOptions } from "../formats/ai-sdk/call-options.ts";
import { aiSdkFailure, aiSdkResponse } from "../formats/ai-sdk/errors.ts";
import { MAX_REPLY_BYTES } from "./events.ts";
import type { Transport } from "./ports.ts";
import { StreamReader, tooLarge } from "./stream-reader.ts";

export const aiSdkTransport: Transport = async function* (
  { profile, body },
  { languageModel, clock },
  attempt,
) {
  const { signal } = attempt;
  const options = { ...toCallOptions(body), abortSignal: signal };
  let isAnswered = false;
  try {
    const model = languageModel?.(profile.modelId);
    if (model === undefined) throw new ModelFailure("not_found", missing(profile.modelId, languageModel));
    const call = async () => model.doStream(options);
    const { stream, response } = await race(call, signal, (late) => late.stream.cancel());
    isAnswered = true;
    yield { response: infoOf(response?.headers, clock.now()) };
    let length = 0;
    for await (const part of new StreamReader(stream, attempt)) {
      if (part.type === "error") throw part.error;
      if (part.type === "raw") continue;
      const data = toJson(part);
      length += data.length;
      if (length > MAX_REPLY_BYTES) throw tooLarge(MAX_REPLY_BYTES);
      yield { payloads: [data] };
    }
  } catch (error) {
    signal.throwIfAborted();
    const response = isAnswered ? undefined : aiSdkResponse(error, clock.now());
    if (response !== undefined) yield { response };
    throw aiSdkFailure(error, clock.now());
  }
};

/** A model of the AI SDK reports headers, but no status. */
function infoOf(headers: Record<string, string> | undefined, now: number): ResponseInfo {
  if (headers === undefined) return {};
  const { status: _status, ...info } = responseInfo(200, new Headers(headers), now);
  return info;
}

function missing(modelId: string, languageModel: unknown): string {
  return languageModel === undefined
    ? "There are no AI SDK models: pass `models.languageModels` to `dramatis`, or choose another provider."
    : `There is no AI SDK model "${modelId}": \`models.languageModels\` does not return one.`;
}

function toJson(part: LanguageModelV4StreamPart): string {
  return JSON.stringify(part, (_key, value: unknown) =>
    value instanceof Uint8Array ? toBase64(value) : value,
  );
}
