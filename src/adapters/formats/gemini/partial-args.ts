/** Arguments of a call that come value by value, each with the path of its place. */
import { z } from "zod";
import type { Json, JsonObject } from "../../../shared/json.ts";

const partialArg = z.object({
  jsonPath: z.string(),
  stringValue: z.string().nullish(),
  numberValue: z.number().nullish(),
  boolValue: z.boolean().nullish(),
  nullValue: z.unknown().optional(),
});

const STEP = /\.([^.[\]'"]+)|\[(\d{1,9})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]/y;

/** Levels of nesting that a path may have. */
const MAX_STEPS = 64;

/**
 * Puts values into `args` at their places; a text continues the text that is there. False for what cannot be read, or
 * leaves a hole in a list.
 */
export function putPartialArgs(args: JsonObject, given: unknown): boolean {
  const parsed = z.array(partialArg).safeParse(given);
  return parsed.success && parsed.data.every((part) => put(args, part));
}

function put(args: JsonObject, part: z.infer<typeof partialArg>): boolean {
  const steps = stepsOf(part.jsonPath);
  if (steps === undefined) return false;
  let place: Json = args;
  for (const [n, step] of steps.entries()) {
    const next = steps[n + 1];
    const old = member(place, step);
    const value: Json =
      next === undefined ? valueAt(part, old) : (old ?? (typeof next === "number" ? [] : {}));
    if (!setMember(place, step, value)) return false;
    place = value;
  }
  return true;
}

function valueAt(
  { stringValue, numberValue, boolValue }: z.infer<typeof partialArg>,
  old: Json | undefined,
): Json {
  if (typeof stringValue === "string") return typeof old === "string" ? old + stringValue : stringValue;
  return numberValue ?? boolValue ?? null;
}

function member(place: Json, step: string | number): Json | undefined {
  if (Array.isArray(place)) return typeof step === "number" ? place[step] : undefined;
  const isIn =
    typeof place === "object" && place !== null && typeof step === "string" && Object.hasOwn(place, step);
  return isIn ? place[step] : undefined;
}

function setMember(place: Json, step: string | number, value: Json): boolean {
  if (Array.isArray(place)) {
    if (typeof step !== "number" || step > place.length) return false;
    place[step] = value;
    return true;
  }
  if (typeof place !== "object" || place === null || typeof step !== "string") return false;
  // Defined, not assigned: a member may be called `__proto__`.
  Object.defineProperty(place, step, { value, enumerable: true, configurable: true, writable: true });
  return true;
}

/** The steps of a path such as `$.a.b[0]['c d']`. */
function stepsOf(path: string): (string | number)[] | undefined {
  if (!path.startsWith("$")) return undefined;
  const steps: (string | number)[] = [];
  for (let at = 1; at < path.length; at = STEP.lastIndex) {
    STEP.lastIndex = at;
    const found = STEP.exec(path);
    if (found === null || steps.length === MAX_STEPS) return undefined;
    const [, plain, place, single, double] = found;
    const quoted = single ?? double;
    if (place !== undefined) steps.push(Number(place));
    else steps.push(plain ?? (quoted ?? "").replace(/\\(.)/g, "$1"));
  }
  return steps.length === 0 ? undefined : steps;
}
