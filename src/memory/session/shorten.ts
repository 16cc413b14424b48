/**
 * Shortens tool results that are too long for a context. Pure.
 *
 * SHORT-1  JSON stays JSON of the same kind: an array stays an array, an object an object, a string a string. Only JSON
 *          that is too long or too deep to parse becomes a string of JSON.
 * SHORT-2  A note marks each omission. Content that is short enough is unchanged.
 */
import type { Json } from "../../shared/json.ts";
import { shapeProblem } from "../../shared/json-shape.ts";
import { cut } from "../../shared/text.ts";
import { fitsTokens, type TokenCounter } from "./tokens.ts";

/** No tokenizer exceeds this density: content with more characters per token is too long without counting. */
const MAX_CHARS_PER_TOKEN = 16;
const FIRST_CHARS_PER_TOKEN = 4;
/** A smaller part of a value is not worth keeping. Characters. */
const MIN_ROOM = 64;
/** Longer text and deeper values are cut as text, because parsing or pruning them would cost too much. */
const MAX_PARSED_LENGTH = 2 * 1024 * 1024;
const MAX_DEPTH = 64;

/** Returns the content, or a shortened form of at most `maxTokens` plus the note on the omission. */
export function shortenedContent(content: string, maxTokens: number, count: TokenCounter): string {
  const isLong = content.length > maxTokens * MAX_CHARS_PER_TOKEN || !fitsTokens(content, maxTokens, count);
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

/** Parses JSON that can be cut. Returns `undefined` for other text, and text that is too long to parse as a JSON string. */
function parsed(content: string): Json | undefined {
  if (!/^\s*["[{]/.test(content)) return undefined;
  if (content.length > MAX_PARSED_LENGTH) return content;
  try {
    return shapeProblem(content, MAX_DEPTH) === null ? JSON.parse(content) : content;
  } catch {
    return undefined;
  }
}

function cutText(text: string, room: number): string {
  return `${cut(text, room)}… (shortened: ${text.length} characters)`;
}

/** Prunes a value to about `room` characters of JSON. */
function pruned(value: Json, room: number): Json {
  if (typeof value === "string") return value.length <= room ? value : cutText(value, room);
  if (typeof value !== "object" || value === null) return value;
  return Array.isArray(value) ? prunedArray(value, room) : prunedObject(value, room);
}

/** Keeps the first items, prunes the item that does not fit, and notes how many are missing. */
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

/** Gives each member its share of the room, plus unused room of smaller members before it. */
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
