/**
 * Validates the output of tools: JSON within a limit.
 *
 * OUT-1  Output is plain JSON and shares no objects with the tool.
 * OUT-2  A value that JSON would empty, drop or round is an error (EXACT-1). The error says that the tool ran, and such a call is not
 *        repeated.
 * OUT-3  Output nests at most as deep as its receiver accepts.
 */
import { ToolError } from "../../library/tools/tool-error.ts";
import { MAX_OUTPUT_DEPTH } from "../../protocol/executor-api.ts";
import { errorText } from "../../shared/errors.ts";
import { exactJson } from "../../shared/exact-json.ts";
import type { Json } from "../../shared/json.ts";
import { shapeProblem } from "../../shared/json-shape.ts";
import { utf8Length } from "../../shared/utf8.ts";

/** Maximum size of a progress report, in bytes of JSON. */

/** Validates a value like `parseOutput`. Throws `ToolError` also if the value is not JSON (OUT-2). */
export function toJson(value: unknown, what: string, maxBytes: number): Json {
  return parseOutput(textOf(value, what), what, maxBytes);
}

/** Parses the JSON text from `textOf`. Throws `ToolError` if it is too large or nests too deep (OUT-3). `what` begins the error's message. */
export function parseOutput(text: string, what: string, maxBytes: number): Json {
  const bytes = utf8Length(text);
  if (bytes > maxBytes)
    throw new ToolError(`${what} has ${bytes} bytes of JSON. The limit is ${maxBytes}. Return less.`);
  const problem = shapeProblem(text, MAX_OUTPUT_DEPTH);
  if (problem !== null) throw new ToolError(`${what} ${problem.what}. Return less.`);
  return JSON.parse(text);
}

/** Returns `value` as JSON text. Throws `ToolError` if JSON would lose a part of it (OUT-2). `what` begins the error's message. */
export function textOf(value: unknown, what: string): string {
  try {
    return exactJson(value);
  } catch (error) {
    const reason = errorText(error);
    throw new ToolError(`${what} is not JSON: ${reason}`, { cause: error });
  }
}
