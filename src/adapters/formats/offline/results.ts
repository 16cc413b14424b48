/** Rules 5 and 6: telling what tools answered and what the platform reported. */
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { shorten } from "../../../shared/text.ts";
import { labelled, type OfflineReply } from "./answer.ts";
import type { SeenResult, View } from "./view.ts";

const MAX_RESULTS = 20;
const MAX_QUOTE = 500;

/** Rule 5. */
export function quoteNotice({ notice }: View): OfflineReply | undefined {
  return notice === undefined ? undefined : labelled(`I was told: ${shorten(notice, MAX_QUOTE)}`);
}

/** Rule 6. */
export function quoteResults({ results }: View): OfflineReply | undefined {
  if (results.length === 0) return undefined;
  const rest = results.length - MAX_RESULTS;
  const told = [
    ...results.slice(0, MAX_RESULTS).map(sentence),
    ...(rest > 0 ? [`and ${rest} more results`] : []),
  ].join("; ");
  return labelled(/[.!?]$/.test(told) ? told : `${told}.`);
}

function sentence({ tool, text, failed }: SeenResult): string {
  const value = parse(text);
  const error = failureOf(value, failed);
  if (error !== undefined) return `${tool} failed with ${error}`;
  if (failed) return `${tool} failed: ${quote(value)}`;
  if (isJsonObject(value) && value.status === "pending") return `${tool} was started and is still running`;
  const isWrapped = isJsonObject(value) && value.success === true && "result" in value;
  return `${tool} answered ${quote(isWrapped ? (value.result ?? null) : value)}`;
}

/** Code and message of a result that is marked as a failure, or says that it is one. */
function failureOf(value: Json, failed: boolean): string | undefined {
  if (!isJsonObject(value) || value.success === true) return undefined;
  const error = failed && !("error" in value) ? value : value.error;
  if (!isJsonObject(error)) return undefined;
  const { code, message } = error;
  return typeof code === "string" ? `${code}: ${shorten(String(message ?? ""), MAX_QUOTE)}` : undefined;
}

function quote(value: Json): string {
  return shorten(readable(value), MAX_QUOTE);
}

function readable(value: Json): string {
  if (Array.isArray(value)) return value.length === 0 ? "nothing" : value.map(item).join(", ");
  if (!isJsonObject(value)) return typeof value === "string" ? value : JSON.stringify(value);
  const members = Object.entries(value);
  const [only] = members;
  if (only !== undefined && members.length === 1) return readable(only[1]);
  const isFlat = members.every(([, member]) => typeof member !== "object" || member === null);
  return isFlat
    ? members.map(([key, member]) => `${key} ${String(member)}`).join(", ")
    : JSON.stringify(value);
}

/** An element of a list: its own text where it has one. */
function item(value: Json): string {
  if (typeof value === "string") return `"${value}"`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const { text, heading, path, excerpt } = value;
  if (typeof text === "string") return `"${text}"`;
  if (typeof excerpt !== "string") return JSON.stringify(value);
  return `${String(heading)} (${String(path)}): "${shorten(excerpt, MAX_QUOTE / 4)}"`;
}

function parse(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
