/** A request of the format `ai-sdk` as a language model takes it: addresses of files are `URL` objects there. Pure. */
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { ModelFailure } from "../../errors/model-errors.ts";

/** Throws `ModelFailure` for a body that has no prompt, or an address that is none. */
export function toCallOptions(body: JsonObject): LanguageModelV4CallOptions {
  const { prompt } = body;
  if (!Array.isArray(prompt)) {
    throw new ModelFailure("validation", "The request of a language model must have an array `prompt`.");
  }
  const options = { ...body, prompt: prompt.map(revived) };
  // SAFETY: the format built it, and the model checks what a hook may have put in its place.
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
  throw new ModelFailure("validation", "The address of a file in the request is no URL.");
}
