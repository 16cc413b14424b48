/**
 * Shortens tool results that are too long for a context. Pure.
 *
 * SHORT-1  What was JSON stays JSON of the same kind: an array an array, an object an object, a string a string. Only
 *          what is too long or too deep to be parsed becomes a string of JSON.
 * SHORT-2  What was left out is said where it is missing; what is short enough is untouched.
 */
import { type Json, jsonDepth } from "../../shared/json.ts";
import type { TokenCounter } from "./tokens.ts";

/** No tokenizer makes text so dense: content longer than this many characters a token is too long, uncounted. */
const MAX_CHARS_PER_TOKEN = 16;
const FIRST_CHARS_PER_TOKEN = 4;
/** Room below which nothing of a value is worth keeping, in characters. */
const MIN_ROOM = 64;
/** Longer text is cut without being parsed, and deeper values are: both would cost more than they are worth. */
const MAX_PARSED_LENGTH = 2 * 1024 * 1024;
const MAX_DEPTH = 64;

/** The content, or a shortened form of it that has about `maxTokens`, never more but for its label. */
export function shortenedContent(content: string, maxTokens: number, count: TokenCounter): string {
  const isLong = content.length > maxTokens * MAX_CHARS_PER_TOKEN || count(content) > maxTokens;
  if (!isLong) return content;
  const value = parsed(content);
  let room = Math.min(content.length, maxTokens * FIRST_CHARS_PER_TOKEN);
  for (;;) {
    const text = value === undefined ? cutText(content, room) : JSON.stringify(pruned(value, room));
    const tokens = count(text);
    if (tokens <= maxTokens || room <= MIN_ROOM) return text.length < content.length ? text : content;
    room = Math.max(MIN_ROOM, Math.floor(room * Math.min(0.9, maxTokens / tokens)));
  }
}

/** JSON values with something to cut; everything else is text. Text too long to parse is cut as a string of JSON. */
function parsed(content: string): Json | undefined {
  if (!/^\s*["[{]/.test(content)) return undefined;
  if (content.length > MAX_PARSED_LENGTH) return content;
  try {
    const value: Json = JSON.parse(content);
    return jsonDepth(value, MAX_DEPTH) > MAX_DEPTH ? content : value;
  } catch {
    return undefined;
  }
}

function cutText(text: string, room: number): string {
  return `${text.slice(0, room).toWellFormed()}… (shortened: ${text.length} characters)`;
}

/** The value within about `room` characters of JSON. */
function pruned(value: Json, room: number): Json {
  if (typeof value === "string") return value.length <= room ? value : cutText(value, room);
  if (typeof value !== "object" || value === null) return value;
  return Array.isArray(value) ? prunedArray(value, room) : prunedObject(value, room);
}

/** The first items as they are, the one that does not fit pruned, and a note of how many are missing. */
function prunedArray(items: readonly Json[], room: number): Json[] {
  const kept: Json[] = [];
  let left = room;
  for (const item of items) {
    const size = JSON.stringify(item).length + 1;
    if (size > left && left < MIN_ROOM) break;
    kept.push(size > left ? pruned(item, left) : item);
    left -= size;
    if (left <= 0) break;
  }
  const missing = items.length - kept.length;
  return missing === 0 ? kept : [...kept, `… (shortened: ${missing} of ${items.length} items left out)`];
}

/** Each member gets its share of the room and what smaller ones before it left. */
function prunedObject(object: { [key: string]: Json }, room: number): { [key: string]: Json } {
  const members = Object.entries(object);
  const kept: [string, Json][] = [];
  let left = room;
  for (const [index, [key, value]] of members.entries()) {
    const size = key.length + JSON.stringify(value).length + 4;
    const share = Math.max(left / (members.length - index), Math.min(left, MIN_ROOM));
    if (size > share && share < MIN_ROOM) break;
    const next = size > share ? pruned(value, Math.max(0, share - key.length - 4)) : value;
    kept.push([key, next]);
    left -= Math.min(size, share);
  }
  const missing = members.length - kept.length;
  if (missing > 0) kept.push(["…", `(shortened: ${missing} of ${members.length} members left out)`]);
  return Object.fromEntries(kept);
}
