/** Context messages as contents of the Gemini API. Pure. */
import type { ContextMessage, ToolCall } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { CallIds } from "../common/call-ids.ts";
import { type OwnPart, ownParts } from "../common/native.ts";
import { jsonOf } from "../common/request.ts";
import { type Exchange, spokenParts } from "../common/turns.ts";
import { toParts } from "./media.ts";

const MAX_NAME = 128;

/** What newer models want on the first call of a reply that they have not signed themselves. */
const UNSIGNED: JsonObject = { thoughtSignature: "skip_thought_signature_validator" };

/** A letter or `_`, then up to 127 letters, digits, `_`, `.`, `:` and `-`. */
export function toName(name: string): string {
  const plain = name.replace(/[^A-Za-z0-9_.:-]/gu, "_");
  return (/^[A-Za-z_]/.test(plain) ? plain : `_${plain}`).slice(0, MAX_NAME);
}

/** The calls of a request: by which id each is sent, and under which name. */
interface Calls {
  ids: CallIds;
  names: Map<string, string>;
}

/** One turn per message that follows the contents `earlier`, or per run of results; empty where a message says nothing. */
export function toContents(
  profile: ModelProfile,
  messages: readonly ContextMessage[],
  earlier: readonly Json[] = [],
): Exchange[] {
  const names = new Map(earlier.flatMap(callsOf));
  const sent: Calls = { ids: new CallIds(names.keys()), names };
  const turns: Exchange[] = [];
  let calls: readonly ToolCall[] = [];
  messages.forEach((message, index) => {
    switch (message.role) {
      case "assistant":
        calls = message.toolCalls ?? [];
        turns.push({ role: "assistant", blocks: replyParts(profile, message, sent) });
        return;
      case "tool":
        if (messages[index - 1]?.role === "tool") return;
        turns.push({ role: "user", blocks: resultParts(runFrom(messages, index), calls, sent) });
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

/** The id and the name of each call in a content. */
function callsOf(content: Json): [id: string, name: string][] {
  const parts = isJsonObject(content) ? content.parts : undefined;
  if (!Array.isArray(parts)) return [];
  return parts.flatMap((part): [string, string][] => {
    const call = isJsonObject(part) ? part.functionCall : undefined;
    if (!isJsonObject(call) || typeof call.id !== "string") return [];
    return [[call.id, String(call.name)]];
  });
}

function replyParts(profile: ModelProfile, message: ContextMessage, sent: Calls): JsonObject[] {
  const own = ownParts(message, profile);
  if (own !== undefined) return own.flatMap((part) => toOwnParts(part, sent));
  const { toolCalls = [] } = message;
  // From the third generation on, a call of the current turn must be signed.
  const signature = generationOf(profile.modelId) >= 3 ? UNSIGNED : {};
  return [
    ...spokenParts(message).flatMap(toParts),
    ...toolCalls.map((call, n) => ({ ...toCall(call, sent), ...(n === 0 ? signature : {}) })),
  ];
}

/** 2 for `gemini-2.5-pro`; 0 where the name of a model does not tell. */
export function generationOf(modelId: string): number {
  const [, generation = 0] = /(?:^|\/)gemini-(\d+)/.exec(modelId) ?? [];
  return Number(generation);
}

/** A part of a reply in its own words. An empty text stands only where a signature hangs on it. */
function toOwnParts(part: OwnPart, sent: Calls): JsonObject[] {
  if (part.type === "block") return [part.value];
  if (part.type === "tool-call") return [{ ...toCall(part.call, sent), ...part.extra }];
  const { text, extra } = part;
  return text === "" && Object.keys(extra).length === 0 ? [] : [{ text, ...extra }];
}

function toCall(call: ToolCall, { ids, names }: Calls): JsonObject {
  const id = ids.ofCall(call.id);
  const name = toName(call.name);
  names.set(id, name);
  return { functionCall: { id, name, args: jsonOf(call.arguments) } };
}

function runFrom(messages: readonly ContextMessage[], start: number): readonly ContextMessage[] {
  const end = messages.findIndex(({ role }, index) => index > start && role !== "tool");
  return messages.slice(start, end < 0 ? messages.length : end);
}

/** The results in the order of their calls: a model that reads no ids tells them apart by name and place. */
function resultParts(
  results: readonly ContextMessage[],
  calls: readonly ToolCall[],
  sent: Calls,
): JsonObject[] {
  const place = ({ toolCallId }: ContextMessage) => calls.findIndex(({ id }) => id === toolCallId);
  return results.toSorted((one, other) => place(one) - place(other)).map((result) => toResult(result, sent));
}

function toResult(message: ContextMessage, { ids, names }: Calls): JsonObject {
  const { content, parts, toolCallId = "", metadata } = message;
  const id = ids.ofResult(toolCallId);
  const media = (parts ?? []).flatMap((part) => (part.type === "text" ? [] : toParts({ ...part, name: "" })));
  return {
    functionResponse: {
      id,
      name: names.get(id) ?? toName(message.name ?? ""),
      response: metadata?.isSuccess === false ? { error: content } : { output: content },
      ...(media.length === 0 ? {} : { parts: media }),
    },
  };
}
