/** A conversation as the prompt of an AI SDK language model. Pure. */
import type { ContextMessage, Facts, ToolCall } from "../../memory/types.ts";
import { isJson, isJsonObject, type Json, type JsonObject } from "../../shared/json.ts";
import { CallIds, plainId } from "../call-ids.ts";
import { resolveMedia } from "../media-source.ts";
import { nativeParts, unsupported } from "../native.ts";
import { mediaParts } from "../openai/content.ts";
import { toName } from "../openai/names.ts";
import { attributed } from "../speaker.ts";
import type { ModelProfile } from "../types.ts";

const PROVIDER = "ai-sdk";
/** With a number behind it, an id is still as long as the strictest provider takes. */
const LONGEST_ID = 34;

/** Messages that follow the messages `earlier`. */
export function toPrompt(
  messages: readonly ContextMessage[],
  profile: ModelProfile,
  earlier: readonly Json[] = [],
): JsonObject[] {
  const names = new Map(earlier.flatMap(callsOf).map((call) => [call.toolCallId, call.toolName]));
  const ids = new CallIds(names.keys());
  const toCall = ({ id, name, arguments: input }: ToolCall): JsonObject => {
    const call = { toolCallId: ids.ofCall(plainId(id, LONGEST_ID)), toolName: toName(name) };
    names.set(call.toolCallId, call.toolName);
    return { type: "tool-call", ...call, input: toObject(input) };
  };
  const toResult = ({ toolCallId = "", name, content, metadata }: ContextMessage): JsonObject => {
    const id = ids.ofResult(plainId(toolCallId, LONGEST_ID));
    const type = metadata?.isSuccess === false ? "error-text" : "text";
    const toolName = toName(name ?? names.get(id) ?? "");
    return { type: "tool-result", toolCallId: id, toolName, output: { type, value: content } };
  };
  return messages.map((message) => {
    const { role, name, content } = message;
    const media = mediaParts(PROVIDER, message);
    switch (role) {
      case "system":
        return { role, content: attributed(name, content) };
      case "user":
        return {
          role,
          content: media === undefined ? [text(attributed(name, content))] : userParts(message),
        };
      case "assistant":
        return { role, content: nativeContent(message, profile, toCall) ?? plainContent(message, toCall) };
      case "tool":
        return { role, content: [toResult(message)] };
      default:
        return role satisfies never;
    }
  });
}

type ToCall = (call: ToolCall) => JsonObject;

function text(said: string): JsonObject {
  return { type: "text", text: said };
}

function userParts({ parts = [], name }: ContextMessage): JsonObject[] {
  const speaker = name === undefined ? [] : [text(attributed(name, "").trimEnd())];
  return [
    ...speaker,
    ...parts.map((part): JsonObject => {
      if (part.type === "text") return text(part.text);
      const media = resolveMedia(PROVIDER, part);
      const filename = part.name === undefined ? {} : { filename: part.name };
      if ("base64" in media) {
        return {
          type: "file",
          ...filename,
          data: { type: "data", data: media.base64 },
          mediaType: media.mediaType,
        };
      }
      const mediaType = part.mediaType ?? (part.type === "image" ? "image" : undefined);
      if (mediaType === undefined) throw unsupported(PROVIDER, "a file by its address without a media type");
      return { type: "file", ...filename, data: { type: "url", url: media.url }, mediaType };
    }),
  ];
}

function plainContent({ content, name, toolCalls = [] }: ContextMessage, toCall: ToCall): JsonObject[] {
  const isSaid = content !== "" || name !== undefined || toolCalls.length === 0;
  return [...(isSaid ? [text(attributed(name, content))] : []), ...toolCalls.map(toCall)];
}

/** A reply as its own model gave it (AISDK-2). */
function nativeContent(
  message: ContextMessage,
  profile: ModelProfile,
  toCall: ToCall,
): JsonObject[] | undefined {
  let offset = 0;
  return nativeParts(message, profile)?.flatMap((part): JsonObject[] => {
    switch (part.type) {
      case "text": {
        const said = message.content.slice(offset, offset + part.length);
        const isFirst = offset === 0;
        offset += part.length;
        return [{ ...text(isFirst ? attributed(message.name, said) : said), ...toObject(part.extra) }];
      }
      case "tool-call": {
        const call = message.toolCalls?.[part.index];
        return call === undefined ? [] : [{ ...toCall(call), ...toObject(part.extra) }];
      }
      case "block":
        return [toObject(part.value)];
      default:
        return part satisfies never;
    }
  });
}

/** The calls of a message that a prompt has already. */
function callsOf(message: Json): { toolCallId: string; toolName: string }[] {
  if (!isJsonObject(message) || !Array.isArray(message.content)) return [];
  return message.content.flatMap((part) => {
    if (!isJsonObject(part) || part.type !== "tool-call") return [];
    const { toolCallId, toolName } = part;
    return typeof toolCallId === "string" && typeof toolName === "string" ? [{ toolCallId, toolName }] : [];
  });
}

function toObject(facts: Facts | undefined): JsonObject {
  return isJson(facts) && isJsonObject(facts) ? facts : {};
}
