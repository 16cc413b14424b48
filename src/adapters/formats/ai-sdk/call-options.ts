/** Turns a request of the format `ai-sdk` into call options, where addresses of files are `URL` objects. Pure. */
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { ModelFailure } from "../../errors/model-errors.ts";

/** Throws `ModelFailure` for a body without a prompt, or an address that is not a URL. */
export function toCallOptions(body: JsonObject): LanguageModelV4CallOptions {
  const { prompt } = body;
  if (!Array.isArray(prompt))
    throw new ModelFailure("validation", "The request of a language model must have an array `prompt`.");
  const options = { ...body, prompt: prompt.map(revived) };
  // SAFETY: the format built it, and the model checks what an interceptor may have changed.
  return options as unknown as LanguageModelV4CallOptions;
}

function revived(message: Json): unknown {
  if (!isJsonObject(message) || !Array.isArray(message.content)) return message;
  return {
    ...message,
    content: message.content.map((part) =>
      isJsonObject(part) && isJsonObject(part.data) && part.data.type === "url"
        ? { ...part, data: { ...part.data, url: toUrl(part.data.url) } }
        : part,
    ),
  };
}

function toUrl(url: Json | undefined): URL {
  if (typeof url === "string" && URL.canParse(url)) return new URL(url);
  throw new ModelFailure("validation", "The address of a file in the request is not a URL.");
}
