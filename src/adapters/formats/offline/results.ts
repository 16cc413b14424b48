/** Rules 5 and 6: reports of the platform, and results of tools. */
import { isJsonObject, type Json, parseJson } from "../../../shared/json.ts";
import { shorten } from "../../../shared/text.ts";
import { membersOf } from "../common/json.ts";
import { labelled, type OfflineAnswer } from "./answer.ts";
import type { SeenResult, View } from "./view.ts";

const MAX_RESULTS = 20;
const MAX_QUOTE = 500;

/** Rule 5. */
export function quoteNotice({ notice }: View): OfflineAnswer | undefined {
  return notice === undefined ? undefined : labelled(`I was told: ${shorten(notice, MAX_QUOTE)}`);
}

/** Rule 6. */
export function quoteResults({ results }: View): OfflineAnswer | undefined {
  if (results.length === 0) return undefined;
  const rest = results.length - MAX_RESULTS;
  const sentences = results.slice(0, MAX_RESULTS).map(sentence);
  if (rest > 0) sentences.push(`and ${rest} more results`);
  const text = sentences.join("; ");
  return labelled(/[.!?]$/.test(text) ? text : `${text}.`);
}

function sentence(result: SeenResult): string {
  const { tool } = result;
  const done = memoryResult(result);
  if (done !== undefined) return done;
  const { kind, text, code } = outcomeOf(result);
  switch (kind) {
    case "failed":
      return `${tool} failed${code === undefined ? "" : ` with ${code}`}: ${shorten(text, MAX_QUOTE)}`;
    case "pending":
      return `${tool} was started and is still running`;
    case "answer":
      return `${tool} answered ${shorten(text, MAX_QUOTE)}`;
  }
}

/** Returns the words for a result of the platform's tools `remember` and `forget`. */
function memoryResult({ tool, text, failed }: SeenResult): string | undefined {
  const facts = membersOf(parseJson(text));
  const { remembered, forgotten } = membersOf(facts.success === true ? facts.result : facts);
  if (failed) return undefined;
  if (tool === "remember" && isJsonObject(remembered)) return "I keep that for our later conversations";
  return tool === "forget" && forgotten === true ? "I have forgotten that" : undefined;
}

export interface Outcome {
  kind: "answer" | "pending" | "failed";
  text: string;
  code?: string;
}

export function outcomeOf({ text, failed }: SeenResult): Outcome {
  const value = parseJson(text) ?? text;
  const facts = membersOf(value);
  const isSuccess = facts.success === true;
  const error = failed && !("error" in facts) ? facts : facts.error;
  if (!isSuccess && isJsonObject(error) && typeof error.code === "string")
    return { kind: "failed", text: String(error.message ?? ""), code: error.code };
  if (failed) return { kind: "failed", text: readable(value) };
  if (facts.status === "pending") return { kind: "pending", text: "" };
  return { kind: "answer", text: readable(isSuccess && "result" in facts ? (facts.result ?? null) : value) };
}

function readable(value: Json): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return value.length === 0 ? "nothing" : value.map(item).join(", ");
  if (!isJsonObject(value)) return JSON.stringify(value);
  if (Array.isArray(value.memories)) return readable(value.memories);
  const members = Object.entries(value);
  const [only] = members;
  if (only !== undefined && members.length === 1) return readable(only[1]);
  const isFlat = members.every(([, member]) => typeof member !== "object" || member === null);
  return isFlat
    ? members.map(([key, member]) => `${key} ${String(member)}`).join(", ")
    : JSON.stringify(value);
}

/** An element of a list: its own text if it has one. */
function item(value: Json): string {
  const { text, content = text, heading, path, excerpt } = isJsonObject(value) ? value : { text: value };
  if (typeof content === "string") return `"${content}"`;
  if (typeof excerpt !== "string") return JSON.stringify(value);
  return `${String(heading)} (${String(path)}): "${shorten(excerpt, MAX_QUOTE / 4)}"`;
}
