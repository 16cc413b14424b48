/** Context messages as contents of the Gemini API. Pure. */
import type { ContextMessage, NativePart, ToolCall } from "../../memory/types.ts";
import { isJsonObject, type Json, type JsonObject } from "../../shared/json.ts";
import type { CallIds } from "../call-ids.ts";
import { nativeParts } from "../native.ts";
import { jsonOf, spokenParts, type Turn } from "../turns.ts";
import type { ModelProfile } from "../types.ts";
import { toParts } from "./media.ts";

const MAX_NAME = 128;

/** What newer models want on the first call of a reply that they have not signed themselves. */
const UNSIGNED: JsonObject = { thoughtSignature: "skip_thought_signature_validator" };

/** A letter or `_`, then up to 127 letters, digits, `_`, `.`, `:` and `-`. */
export function toName(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_.:-]/gu, "_");
  return (/^[A-Za-z_]/.test(plain) ? plain : `_${plain}`).slice(0, MAX_NAME);
}

/** One turn per message, or per run of results; empty where a message says nothing. */
export function toTurns(profile: ModelProfile, messages: readonly ContextMessage[], ids: CallIds): Turn[] {
  const turns: Turn[] = [];
  let calls: readonly ToolCall[] = [];
  messages.forEach((message, index) => {
    switch (message.role) {
      case "assistant":
        calls = message.toolCalls ?? [];
        turns.push({ role: "assistant", blocks: replyParts(profile, message, ids) });
        return;
      case "tool":
        if (messages[index - 1]?.role === "tool") return;
        turns.push({ role: "user", blocks: resultParts(runFrom(messages, index), calls, ids) });
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

/** The ids of all calls that a request has. */
export function callIdsIn(contents: readonly Json[]): string[] {
  return contents.flatMap((content) => {
    const parts = isJsonObject(content) ? content.parts : undefined;
    if (!Array.isArray(parts)) return [];
    return parts.flatMap((part) => {
      const call = isJsonObject(part) ? part.functionCall : undefined;
      return isJsonObject(call) && typeof call.id === "string" ? [call.id] : [];
    });
  });
}

function replyParts(profile: ModelProfile, message: ContextMessage, ids: CallIds): JsonObject[] {
  const native = nativeParts(message, profile);
  if (native !== undefined) return ownParts(native, message, ids);
  const { toolCalls = [] } = message;
  const signature = wantsSignatures(profile.modelId) ? UNSIGNED : {};
  return [
    ...spokenParts(message).flatMap(toParts),
    ...toolCalls.map((call, n) => ({ ...toCall(call, ids), ...(n === 0 ? signature : {}) })),
  ];
}

/** From the third generation on, a call of the current turn must be signed. */
function wantsSignatures(modelId: string): boolean {
  const [, generation] = /(?:^|\/)gemini-(\d+)/.exec(modelId) ?? [];
  return Number(generation ?? 0) >= 3;
}

/** A reply in its own words. An empty text stands only where a signature hangs on it. */
function ownParts(parts: readonly NativePart[], message: ContextMessage, ids: CallIds): JsonObject[] {
  let read = 0;
  return parts.flatMap((part): JsonObject[] => {
    if (part.type === "block") return [jsonOf(part.value)];
    const extra = jsonOf(part.extra ?? {});
    if (part.type === "tool-call") {
      const call = message.toolCalls?.[part.index];
      return call === undefined ? [] : [{ ...toCall(call, ids), ...extra }];
    }
    read += part.length;
    const text = message.content.slice(read - part.length, read);
    return text === "" && part.extra === undefined ? [] : [{ text, ...extra }];
  });
}

function toCall({ id, name, arguments: input }: ToolCall, ids: CallIds): JsonObject {
  return { functionCall: { id: ids.ofCall(id), name: toName(name), args: jsonOf(input) } };
}

function runFrom(messages: readonly ContextMessage[], start: number): readonly ContextMessage[] {
  const end = messages.findIndex(({ role }, index) => index > start && role !== "tool");
  return messages.slice(start, end < 0 ? messages.length : end);
}

/** The results in the order of their calls: a model that reads no ids tells them apart by name and place. */
function resultParts(
  results: readonly ContextMessage[],
  calls: readonly ToolCall[],
  ids: CallIds,
): JsonObject[] {
  const place = ({ toolCallId }: ContextMessage) => calls.findIndex(({ id }) => id === toolCallId);
  return results
    .toSorted((one, other) => place(one) - place(other))
    .map((result) => {
      const called = calls[place(result)]?.name ?? result.name ?? "";
      return toResult(result, toName(called), ids);
    });
}

function toResult(message: ContextMessage, name: string, ids: CallIds): JsonObject {
  const { content, parts, toolCallId = "", metadata } = message;
  const media = (parts ?? []).flatMap((part) => (part.type === "text" ? [] : toParts({ ...part, name: "" })));
  return {
    functionResponse: {
      id: ids.ofResult(toolCallId),
      name,
      response: metadata?.isSuccess === false ? { error: content } : { output: content },
      ...(media.length === 0 ? {} : { parts: media }),
    },
  };
}
