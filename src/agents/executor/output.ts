/**
 * The output of tools: JSON within a limit.
 *
 * OUT-1  Output is plain JSON and shares nothing with the tool's own objects.
 * OUT-2  No value is lost silently: one that JSON would drop or empty (functions, NaN, maps, promises) is an error.
 *        `undefined` is allowed: by itself it becomes `null`, and as a member it is left out.
 * OUT-3  Output nests no deeper than its receiver takes.
 */
import { ToolError } from "../../library/tool-error.ts";
import { MAX_OUTPUT_DEPTH } from "../../protocol/executor-api.ts";
import type { Json } from "../../shared/json.ts";
import { shapeProblem } from "../../shared/json-shape.ts";
import { utf8Length } from "../../shared/utf8.ts";

/** Maximum size of a progress report, in bytes of JSON. */
export const MAX_PROGRESS_BYTES = 16_384;

/**
 * Returns `value` as JSON. Throws `ToolError`, whose message begins with `what`, if it is not JSON, too large, or nested deeper
 * than `MAX_OUTPUT_DEPTH`.
 */
export function toJson(value: unknown, what: string, maxBytes: number): Json {
  const text = stringify(value, what);
  const bytes = utf8Length(text);
  if (bytes > maxBytes) {
    throw new ToolError(`${what} has ${bytes} bytes of JSON; the limit is ${maxBytes}. Return less.`);
  }
  const problem = shapeProblem(text, MAX_OUTPUT_DEPTH);
  if (problem !== null) throw new ToolError(`${what} ${problem.what}. Return less.`);
  const json: Json = JSON.parse(text);
  return json;
}

function stringify(value: unknown, what: string): string {
  try {
    return (
      JSON.stringify(value, (key, member: unknown) => {
        const reason = refusal(member);
        if (reason === undefined) return member;
        throw new TypeError(key === "" ? `it is ${reason}` : `"${key}" is ${reason}`);
      }) ?? "null"
    );
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ToolError(`${what} is not JSON: ${reason}`, { cause: error });
  }
}

function refusal(value: unknown): string | undefined {
  switch (typeof value) {
    case "bigint":
    case "function":
    case "symbol":
      return `a ${typeof value}`;
    case "number":
      return Number.isFinite(value) ? undefined : String(value);
    case "object":
      if (value instanceof Map) return "a Map";
      if (value instanceof Set) return "a Set";
      if (value instanceof Promise) return "a promise that was not awaited";
      return ArrayBuffer.isView(value) || value instanceof ArrayBuffer ? "binary data" : undefined;
    default:
      return undefined;
  }
}
