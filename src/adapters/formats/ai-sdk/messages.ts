/** Context messages as turns of an AI SDK language model. Pure. */
import type { ContextMessage, ContextPart, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { NO_MESSAGE } from "../common/blank.ts";
import { jsonOf, objects } from "../common/json.ts";
import { type ContextMedia, carriesMedia, imageType, resolveMedia } from "../common/media.ts";
import { type CallForm, plainName, type SentCalls } from "../common/names.ts";
import { attributedParts, nativeContent, nativeParts } from "../common/native.ts";
import { unsupported } from "../common/request.ts";
import { type SpeakerTurn, spokenParts, type TurnFormat } from "../common/turns.ts";

const PROVIDER = "ai-sdk";

/** Calls in a form that every provider behind the SDK accepts. The strictest one accepts ids of 40 characters. */
export const AI_SDK_CALLS: CallForm = {
  toName: plainName,
  // Leaves room for a number behind the id.
  idLength: 34,
  callsIn({ prompt }) {
    const parts = objects(prompt).flatMap(({ content }) => objects(content));
    return parts.flatMap(({ type, toolCallId, toolName }) =>
      type === "tool-call" ? [{ id: String(toolCallId), name: String(toolName) }] : [],
    );
  },
};

/** In a prompt, results have a role of their own: a user's turn becomes a message of results and one of the rest. */
export const AI_SDK_TURNS: TurnFormat = {
  key: "prompt",
  opening: { type: "text", text: NO_MESSAGE },
  toMessages({ role, blocks }) {
    if (role === "assistant") return [{ role, content: blocks }];
    const results = blocks.filter(isResult);
    const others = blocks.filter((block) => !isResult(block));
    return [
      ...(results.length === 0 ? [] : [{ role: "tool", content: results }]),
      ...(others.length === 0 ? [] : [{ role, content: others }]),
    ];
  },
};

/** Builds one turn per message, empty for an empty message. `calls` were sent before. */
export function promptTurns(
  profile: ModelProfile,
  messages: readonly ContextMessage[],
  calls: SentCalls,
): SpeakerTurn[] {
  return messages.map((message): SpeakerTurn => {
    carriesMedia(PROVIDER, message);
    switch (message.role) {
      case "assistant":
        return { role: "assistant", blocks: toReply(message, profile, calls) };
      case "tool":
        return { role: "user", blocks: [toResult(message, calls)] };
      case "user":
      case "system":
        return { role: "user", blocks: spokenParts(message).map(toPart) };
      default:
        return message.role satisfies never;
    }
  });
}

function isResult({ type }: JsonObject): boolean {
  return type === "tool-result";
}

function toResult(message: ContextMessage, calls: SentCalls): JsonObject {
  const { id, name } = calls.answeredBy(message);
  const type = message.metadata?.isSuccess === false ? "error-text" : "text";
  const output = { type, value: message.content };
  return { type: "tool-result", toolCallId: id, toolName: name, output };
}

function toReply(message: ContextMessage, profile: ModelProfile, calls: SentCalls): JsonObject[] {
  const toCall = (call: ToolCall): JsonObject => {
    const { id, name } = calls.add(call);
    return { type: "tool-call", toolCallId: id, toolName: name, input: jsonOf(call.arguments) };
  };
  const toText = (text: string, extra: JsonObject) => ({ type: "text", text, ...extra });
  const own = nativeParts(message, profile);
  return own === undefined
    ? [...spokenParts(message).map(toPart), ...(message.toolCalls ?? []).map(toCall)]
    : nativeContent(attributedParts(message.name, own), toCall, toText);
}

function toPart(part: ContextPart): JsonObject {
  if (part.type === "text") return { type: "text", text: part.text };
  const media = resolveMedia(PROVIDER, part);
  const data = "url" in media ? { type: "url", url: media.url } : { type: "data", data: media.base64 };
  return {
    type: "file",
    ...defined({ filename: part.name }),
    data,
    mediaType: media.mediaType ?? typeOfAddress(part, "url" in media ? media.url : ""),
  };
}

/** Some models require a full media type for media by address. Others only need to know that it is an image. */
function typeOfAddress({ type }: ContextMedia, url: string): string {
  if (type === "image") return imageType(url);
  throw unsupported(PROVIDER, "a file by its address without a media type");
}
