/**
 * Reads a model's answer to a request for data. Pure.
 *
 * ANSWERDATA-1  An answer is JSON, or has one JSON object in a code fence or in prose. The value must fit the schema.
 * ANSWERDATA-2  An answer with two different objects is ambiguous and refused. An answer with an incomplete object is refused, too.
 * ANSWERDATA-3  The search for an object reads a few times the length of the answer. An answer that needs more is refused.
 */
import {
  canonicalJson,
  isJson,
  isJsonObject,
  type Json,
  type JsonObject,
  MAX_DEPTH,
  parseJson,
} from "../json.ts";
import { shapeProblem } from "../json-shape.ts";
import { violations } from "./violations.ts";

/** An answer that fits: its value, and its JSON without the text around it. */
export interface DataAnswer {
  value: Json;
  text: string;
}

/** Returns an answer, or describes in words for the model why the answer does not fit its schema. */
export function readAnswer(schema: JsonObject, text: string): DataAnswer | { problem: string } {
  if (text.trim() === "") return { problem: "the answer is empty" };
  const shape = shapeProblem(text, MAX_DEPTH);
  if (shape !== null) return { problem: `the answer ${shape.what}` };
  const value = parseJson(text);
  const answer = value === undefined ? objectIn(text) : { value, text };
  if ("problem" in answer) return answer;
  if (!isJson(answer.value)) return { problem: "the answer has a number beyond the range of numbers" };
  const found = violations(schema, answer.value) ?? ["the schema cannot be checked"];
  return found.length === 0 ? answer : { problem: found.join("; ") };
}

/** Characters that a search may read (ANSWERDATA-3). Brackets of prose are read again for each bracket around them. */
const searchLimit = ({ length }: string) => 4 * length + 100_000;

/** Returns the only JSON object in a text (ANSWERDATA-2). */
function objectIn(text: string): DataAnswer | { problem: string } {
  let found: DataAnswer | undefined;
  let left = searchLimit(text);
  for (let at = 0; at < text.length; at++) {
    if (text[at] !== "{" && text[at] !== "[") continue;
    const end = endOfContainer(text, at);
    left -= (end ?? text.length) - at;
    if (left < 0) return { problem: "the answer is not JSON: it has too many brackets around its objects" };
    if (end === undefined && text[at] === "[") continue;
    if (end === undefined) return { problem: "the answer is not JSON: an object in it is not complete" };
    const part = text.slice(at, end);
    const value = parseJson(part);
    // Skips braces of prose with their content. Brackets of prose may contain an object.
    if (value === undefined && text[at] === "[") continue;
    at = end - 1;
    if (value === undefined || !isJsonObject(value)) continue;
    if (found !== undefined && canonicalJson(found.value) !== canonicalJson(value))
      return {
        problem: "the answer is not JSON: it has several different objects",
      };
    found = { value, text: part };
  }
  return found ?? { problem: "the answer is not JSON" };
}

/** Returns the index after the bracket that closes the bracket at `start`; `undefined` if it stays open. */
function endOfContainer(text: string, start: number): number | undefined {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const sign = text[at];
    if (sign === '"') {
      const end = endOfText(text, at);
      if (end === undefined) return undefined;
      at = end;
    } else if (sign === "{" || sign === "[") depth += 1;
    else if ((sign === "}" || sign === "]") && --depth === 0) return at + 1;
  }
  return undefined;
}

/** Returns the index of the quote that closes the quote at `start`; `undefined` if it stays open. */
function endOfText(text: string, start: number): number | undefined {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at;
  }
  return undefined;
}
