/** Context messages and media as contents of the Gemini API. Pure. */
import type { ContextMessage, ContextPart, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { filled, jsonOf, objects } from "../common/json.ts";
import { type ContextMedia, plainType, requireHttps, resolveMedia } from "../common/media.ts";
import { type CallForm, ID_LENGTH, type SentCalls } from "../common/names.ts";
import { nativeContent, nativeParts } from "../common/native.ts";
import { unsupported } from "../common/request.ts";
import { type SpeakerTurn, spokenParts } from "../common/turns.ts";

const MAX_NAME = 128;

/** Newer models require a signature on the first call of a reply. For a reply of another model, this value replaces it. */
const UNSIGNED: JsonObject = { thoughtSignature: "skip_thought_signature_validator" };

/** Fits a name: a letter or `_`, then up to 127 letters, digits, `_`, `.`, `:` and `-`. */
export function toName(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_.:-]/gu, "_");
  return (/^[A-Za-z_]/.test(plain) ? plain : `_${plain}`).slice(0, MAX_NAME);
}

/** Returns 2 for `gemini-2.5-pro`; 0 if the model's name has no generation. */
export function generationOf(modelId: string): number {
  const [, generation = 0] = /(?:^|\/)gemini-(\d+)/.exec(modelId) ?? [];
  return Number(generation);
}

export const GEMINI_CALLS: CallForm = {
  toName,
  idLength: ID_LENGTH,
  callsIn({ contents }) {
    const parts = objects(contents).flatMap(({ parts }) => objects(parts));
    return parts.flatMap(({ functionCall: call }) =>
      isJsonObject(call) ? [{ id: String(call.id), name: String(call.name) }] : [],
    );
  },
};

/**
 * Builds one turn per message, and one for all results of a reply; an empty message gives an empty turn. `sent` are the
 * calls that were sent before.
 */
export function geminiTurns(
  profile: ModelProfile,
  messages: readonly ContextMessage[],
  sent: SentCalls,
): SpeakerTurn[] {
  const turns: SpeakerTurn[] = [];
  messages.forEach((message, index) => {
    switch (message.role) {
      case "assistant":
        turns.push({ role: "assistant", blocks: replyParts(profile, message, sent) });
        return;
      case "tool":
        if (messages[index - 1]?.role === "tool") return;
        turns.push({ role: "user", blocks: resultParts(runFrom(messages, index), sent) });
        return;
      case "user":
      case "system":
        turns.push({ role: "user", blocks: spokenParts(message).flatMap(toParts) });
        return;
      default:
        message.role satisfies never;
    }
  });
  return turns;
}

function replyParts(profile: ModelProfile, message: ContextMessage, sent: SentCalls): JsonObject[] {
  const toCall = (call: ToolCall) => ({ functionCall: { ...sent.add(call), args: jsonOf(call.arguments) } });
  const own = nativeParts(message, profile);
  const toText = (text: string, extra: JsonObject) => ({ text, ...extra });
  if (own !== undefined) return nativeContent(own, toCall, toText);
  const calls = (message.toolCalls ?? []).map(toCall);
  const isSigned = generationOf(profile.modelId) >= 3;
  return [
    ...spokenParts(message).flatMap(toParts),
    ...calls.map((call, n) => (isSigned && n === 0 ? { ...call, ...UNSIGNED } : call)),
  ];
}

function runFrom(messages: readonly ContextMessage[], start: number): readonly ContextMessage[] {
  const end = messages.findIndex(({ role }, index) => index > start && role !== "tool");
  return messages.slice(start, end < 0 ? messages.length : end);
}

/** Puts the results in the order of their calls: a model that ignores ids matches them by name and place. */
function resultParts(results: readonly ContextMessage[], sent: SentCalls): JsonObject[] {
  const placed = results.map((result) => ({ result, place: sent.placeOf(result) }));
  return placed.toSorted((one, other) => one.place - other.place).map(({ result }) => toResult(result, sent));
}

function toResult(message: ContextMessage, sent: SentCalls): JsonObject {
  const { content, parts = [], metadata } = message;
  const media = parts.flatMap((part) => (part.type === "text" ? [] : toParts({ ...part, name: "" })));
  return {
    functionResponse: {
      ...sent.answeredBy(message),
      response: metadata?.isSuccess === false ? { error: content } : { output: content },
      ...filled({ parts: media }),
    },
  };
}

const ACCEPTED =
  /^(?:image\/(?:png|jpeg|webp|heic|heif)|(?:audio|video|text)\/.+|application\/(?:pdf|json|rtf))$/;

/** Builds one part, or two for a file with a name: the API has no field for it. Throws `UNSUPPORTED` for other media. */
function toParts(part: ContextPart): JsonObject[] {
  if (part.type === "text") return [{ text: part.text }];
  const medium = toMedium(part);
  return part.name ? [{ text: `File "${part.name}":` }, medium] : [medium];
}

function toMedium(part: ContextMedia): JsonObject {
  const media = resolveMedia("gemini", part);
  const mimeType = plainType(media.mediaType);
  if (mimeType !== undefined && !ACCEPTED.test(mimeType))
    throw unsupported("gemini", `${part.type === "image" ? "an image" : "a file"} of the type "${mimeType}"`);
  return "url" in media
    ? { fileData: { ...defined({ mimeType }), fileUri: requireHttps("gemini", media.url) } }
    : { inlineData: { mimeType: mimeType ?? "", data: media.base64 } };
}
