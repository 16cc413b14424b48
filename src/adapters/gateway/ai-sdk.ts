/**
 * Asks a language model of the AI SDK, in this process: the parts of its stream become JSON payloads, bytes as base64,
 * dates and addresses as text.
 */
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { ResponseInfo } from "../../model/reply.ts";
import { ModelFailure } from "../errors/model-errors.ts";
import { responseInfo } from "../errors/response-info.ts";
import { toCallOptions } from "../formats/ai-sdk/call-options.ts";
import { aiSdkFailure, aiSdkResponse } from "../formats/ai-sdk/errors.ts";
import { abortable } from "./abortable.ts";
import type { AttemptDeadlines } from "./deadlines.ts";
import { MAX_REPLY_BYTES } from "./events.ts";
import type { Transport } from "./ports.ts";

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
    const ask = async () => model.doStream(options);
    // A reply that comes too late is not read; its stream is given back.
    const { stream, response } = await abortable(ask, signal, (late) => late.stream.cancel());
    isAnswered = true;
    yield { response: answered(response?.headers, clock.now()) };
    let length = 0;
    for await (const part of partsOf(stream, attempt)) {
      if (part.type === "error") throw part.error;
      if (part.type === "raw") continue;
      const data = toJson(part);
      length += data.length;
      if (length > MAX_REPLY_BYTES) {
        throw new ModelFailure("validation", `The reply is larger than ${MAX_REPLY_BYTES} bytes.`);
      }
      yield { payloads: [data] };
    }
  } catch (error) {
    signal.throwIfAborted();
    const response = isAnswered ? undefined : aiSdkResponse(error, clock.now());
    if (response !== undefined) yield { response };
    throw aiSdkFailure(error, clock.now());
  }
};

/** A model that answers does not tell its status. */
function answered(headers: Record<string, string> | undefined, now: number): ResponseInfo {
  if (headers === undefined) return {};
  const { status: _status, ...info } = responseInfo(200, new Headers(headers), now);
  return info;
}

function missing(modelId: string, languageModel: unknown): string {
  return languageModel === undefined
    ? "There are no AI SDK models: give `models.languageModels` to `dramatis`, or choose another provider."
    : `There is no AI SDK model "${modelId}": \`models.languageModels\` knows none of this name.`;
}

/** The parts of a stream; it is cancelled when reading ends early, for whatever reason. */
async function* partsOf(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  attempt: AttemptDeadlines,
): AsyncGenerator<LanguageModelV4StreamPart> {
  const { signal } = attempt;
  const reader = stream.getReader();
  const cancel = () => void reader.cancel().catch(() => undefined);
  signal.addEventListener("abort", cancel, { once: true });
  try {
    for (;;) {
      signal.throwIfAborted();
      const reading = reader.read();
      attempt.waits();
      const { done, value } = await reading;
      // Cancelling makes a waiting read resolve as if the stream had ended.
      signal.throwIfAborted();
      if (done) return;
      attempt.heard();
      yield value;
    }
  } finally {
    signal.removeEventListener("abort", cancel);
    cancel();
  }
}

function toJson(part: LanguageModelV4StreamPart): string {
  return JSON.stringify(part, (_key, value: unknown) =>
    value instanceof Uint8Array ? toBase64(value) : value,
  );
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}
