/** Describes text that should be a JSON object and is not: the fault, its position, and the text there. Pure. */
import { isJson, isJsonObject, type Json, MAX_DEPTH } from "./json.ts";
import { faultPosition } from "./json-position.ts";
import { shapeProblem } from "./json-shape.ts";
import { piece } from "./text.ts";

/** Length of the quoted text before and after a fault. */
const QUOTED = 30;

/** Returns a sentence without its subject, such as `are not JSON: Unexpected token at position 3, at "x}"`. */
export function objectFault(text: string): string {
  const shape = shapeProblem(text, MAX_DEPTH);
  // The shape's words follow a singular noun.
  if (shape !== null) return `cannot be read: the text ${shape.what}`;
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const at = faultPosition(error, text);
    return `are not JSON: ${reasonOf(error)} at position ${at}, ${quoted(text, at)}`;
  }
  if (isJsonObject(value))
    return isJson(value) ? "are a JSON object" : "have a number beyond the range of numbers";
  const start = text.length - text.trimStart().length;
  return `are ${kindOf(value)} and not a JSON object, at position ${start}, ${quoted(text, start)}`;
}

function kindOf(value: Json): string {
  if (Array.isArray(value)) return "a list";
  return value === null ? "null" : `a ${typeof value}`;
}

function quoted(text: string, at: number): string {
  const before = piece(text, at - QUOTED, at);
  const after = piece(text, at, at + QUOTED);
  if (after === "") return `at the end of the text, after ${JSON.stringify(before)}`;
  return before === ""
    ? `at ${JSON.stringify(after)}`
    : `after ${JSON.stringify(before)}, at ${JSON.stringify(after)}`;
}

/** Returns the engine's reason without its position and its quotation, which is from another place. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : "A fault";
  return message
    .replace(/(?: in JSON)? at position.*$/s, "")
    .replace(/, (?:\.\.\.)?".*is not valid JSON$/s, "");
}
