/**
 * What leaves a tool: JSON within a limit, or an error that says what is wrong with it.
 *
 * OUT-1  What is returned is plain JSON that shares nothing with the tool's own objects.
 * OUT-2  Nothing is lost in silence: a value that JSON would drop or empty (functions, NaN, maps, promises) is refused.
 *        Absent values are fine: `undefined` alone becomes `null`, and as a member it is left out.
 */
import { ToolError } from "../../library/tool-error.ts";
import type { Json } from "../../shared/json.ts";

/** The largest output of a tool, in bytes of JSON text. */
export const MAX_OUTPUT_BYTES = 1_048_576;

/** The largest progress report, in bytes of JSON text. */
export const MAX_PROGRESS_BYTES = 16_384;

/** `value` as JSON. Throws `ToolError` naming what is not JSON, or the limit; `what` begins the message. */
export function toJson(value: unknown, what: string, maxBytes: number): Json {
  const text = stringify(value, what);
  const bytes = new TextEncoder().encode(text).byteLength;
  if (bytes > maxBytes) {
    throw new ToolError(`${what} has ${bytes} bytes of JSON; the limit is ${maxBytes}. Return less.`);
  }
  return JSON.parse(text);
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
