/** Arguments of a call that come value by value, each with the path of its place. */
import { z } from "zod";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

const partialArg = z.object({
  jsonPath: z.string(),
  stringValue: z.string().nullish(),
  numberValue: z.number().nullish(),
  boolValue: z.boolean().nullish(),
});

type PartialArg = z.infer<typeof partialArg>;

const STEP = /\.([^.[\]'"]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;

/** Levels of nesting that a path may have. */
const MAX_STEPS = 64;

/**
 * Writes values to their places in `args`; a text is appended to the text that is there. Returns `false` for values that
 * cannot be read, or that would leave a hole in a list.
 */
export function putPartialArgs(args: JsonObject, given: unknown): boolean {
  const { data } = z.array(partialArg).safeParse(given);
  return data?.every((part) => put(args, part)) ?? false;
}

function put(args: JsonObject, part: PartialArg): boolean {
  const steps = stepsOf(part.jsonPath);
  let place: Json = args;
  for (const [n, step] of steps.entries()) {
    if (!canHold(place, step)) return false;
    const old: Json | undefined = Object.hasOwn(place, step) ? Reflect.get(place, step) : undefined;
    const next = steps[n + 1];
    const value: Json =
      next === undefined ? valueAt(part, old) : (old ?? (typeof next === "number" ? [] : {}));
    // Defined, not assigned: a member may be called `__proto__`.
    Object.defineProperty(place, step, { value, enumerable: true, configurable: true, writable: true });
    place = value;
  }
  return steps.length > 0;
}

function canHold(place: Json, step: string | number): place is JsonObject | Json[] {
  if (Array.isArray(place)) return typeof step === "number" && step <= place.length;
  return isJsonObject(place) && typeof step === "string";
}

function valueAt({ stringValue, numberValue, boolValue }: PartialArg, old: Json | undefined): Json {
  if (typeof stringValue === "string") return typeof old === "string" ? old + stringValue : stringValue;
  return numberValue ?? boolValue ?? null;
}

/** Splits a path such as `$.a.b[0]['c d']` into its steps. Empty for an unreadable path. */
function stepsOf(path: string): (string | number)[] {
  const steps: (string | number)[] = [];
  for (let at = 1; at < path.length; at = STEP.lastIndex) {
    STEP.lastIndex = at;
    const found = STEP.exec(path);
    if (found === null || steps.length === MAX_STEPS) return [];
    const [, plain, place, single = "", double = single] = found;
    steps.push(place === undefined ? (plain ?? double.replace(/\\(.)/g, "$1")) : Number(place));
  }
  return path.startsWith("$") ? steps : [];
}
