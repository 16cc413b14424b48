/**
 * JSON text that loses no part of a value. Pure.
 *
 * EXACT-1  A value that JSON would empty, drop or round is refused at any depth. The error names the usual mistake. Examples are a
 *          `Response`, an `Error`, a `Map`, a promise, an instance with its state in private fields, an integer beyond 2^53, and `NaN`.
 * EXACT-2  `undefined` becomes `null` as the whole value and in a list. As a member it is left out. A `Date` becomes its ISO 8601 text, and
 *          any other value with `toJSON` becomes the result of that method.
 */

/** Advice for instances of classes that JSON empties. */
const ADVICE = {
  Response: "Return its content, as in `await response.json()`",
  Request: "Return its content, as in `await request.json()`",
  Headers: "Return `Object.fromEntries(headers)`",
  URLSearchParams: "Return `Object.fromEntries(params)`",
  FormData: "Return `Object.fromEntries(form)`",
  Blob: "Return its content, as in `await blob.text()`",
  ReadableStream: "Return its content, as in `await new Response(stream).text()`",
  WritableStream: "Return the content that it gets",
  TransformStream: "Return the content that it gives",
  Error: "Throw it, or return its `message`",
  RegExp: "Return its `source`",
  Map: "Return `Object.fromEntries(map)`",
  Set: "Return `[...set]`",
  WeakMap: "Return an object",
  WeakSet: "Return a list",
  ArrayBuffer: "Return it as text, such as base64",
} as const;

/** Below this size JSON has all digits of an integer. Larger numbers have an exponent, which shows that they are rounded. */
const FIRST_EXPONENT = 1e21;

/** Returns `value` as JSON text. Throws `TypeError` with the place and the reason for a value that JSON would change (EXACT-1). */
export function exactJson(value: unknown): string {
  const text = JSON.stringify(value, function (this: unknown, key: string, member: unknown) {
    const given = (this as Record<string, unknown>)[key];
    const reason = refusal(given, member);
    if (reason === undefined) return member;
    throw new TypeError(`${key === "" ? "it" : `"${key}"`} is ${reason}.`);
  });
  return text ?? "null";
}

/** Returns why a value is refused. `member` is the result of its `toJSON`, or the value itself. */
function refusal(value: unknown, member: unknown): string | undefined {
  if (value instanceof Date && Number.isNaN(value.getTime())) return "an invalid Date";
  if (member === undefined && value !== undefined) return "a value with a `toJSON` that returns undefined";
  if (ArrayBuffer.isView(value)) return `binary data. ${ADVICE.ArrayBuffer}`;
  switch (typeof member) {
    case "bigint":
      return "a bigint. Return it as text, as in `String(value)`";
    case "function":
    case "symbol":
      return `a ${typeof member}`;
    case "number":
      return numberRefusal(member);
    case "object":
      return member === null ? undefined : objectRefusal(member);
    default:
      return undefined;
  }
}

function numberRefusal(value: number): string | undefined {
  if (!Number.isFinite(value)) return `${value}, which JSON cannot represent. Return null or a string`;
  const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value);
  return isRounded && Math.abs(value) < FIRST_EXPONENT
    ? `${value}, beyond the integers that are exact (2^53). Return it as text`
    : undefined;
}

function objectRefusal(value: object): string | undefined {
  if (Array.isArray(value)) return undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || prototype === Object.prototype;
  if (typeof Reflect.get(value, "then") === "function")
    return "a promise that was not awaited. Await it, as in `await response.json()`";
  if (!isPlain) {
    for (const [name, advice] of Object.entries(ADVICE)) {
      const type: unknown = Reflect.get(globalThis, name);
      if (typeof type === "function" && value instanceof type)
        return `${withArticle(nameOf(value) || name)}. ${advice}`;
    }
  }
  if (Object.keys(value).length > 0) return undefined;
  if (!isPlain)
    return `an instance of ${nameOf(value) || "a class"}, which JSON empties. Return a plain object with its values`;
  return Reflect.ownKeys(value).length > 0
    ? "an object with symbols or non-enumerable members only, which JSON leaves out. Return a plain object with its values"
    : undefined;
}

function withArticle(name: string): string {
  return `${/^[AEIO]/.test(name) ? "an" : "a"} ${name}`;
}

function nameOf(value: object): string {
  const { constructor: type } = value;
  return typeof type === "function" ? type.name : "";
}
