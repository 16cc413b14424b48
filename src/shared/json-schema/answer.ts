/** Reads the answer of a model that was asked for data. Pure. */
import { isJson, type Json, type JsonObject, MAX_DEPTH, parseJson } from "../json.ts";
import { shapeProblem } from "../json-shape.ts";
import { violations } from "./violations.ts";

/** Returns the value of an answer, or describes in words for the model why the answer does not fit its schema. */
export function readAnswer(schema: JsonObject, text: string): { value: Json } | { problem: string } {
  if (text.trim() === "") return { problem: "the answer is empty" };
  const shape = shapeProblem(text, MAX_DEPTH);
  if (shape !== null) return { problem: `the answer ${shape.what}` };
  const value = parseJson(text);
  if (value === undefined) return { problem: "the answer is not JSON" };
  if (!isJson(value)) return { problem: "the answer has a number beyond the range of numbers" };
  const found = violations(schema, value) ?? ["the schema cannot be checked"];
  return found.length === 0 ? { value } : { problem: found.join("; ") };
}
