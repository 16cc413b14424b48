/** JSON from outside: text to values that the rest of the code may trust in form. Pure. */
import { DramatisError } from "./errors.ts";
import { jsonPointer } from "./validation.ts";

/** How deep a value may nest. */
const MAX_DEPTH = 64;

/** The text as JSON; throws `INVALID_JSON`, which says of `name` what is wrong. */
export function parseJsonText(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const detail = text.trim() === "" ? `${name} is empty; send JSON.` : `${name} is not valid JSON.`;
    throw new DramatisError("INVALID_JSON", detail, { cause });
  }
}

/**
 * Throws unless a parsed value nests at most 64 deep (`INVALID_JSON`) and holds well-formed Unicode only
 * (`INVALID_INPUT`). What walks the value afterwards may recurse.
 */
export function checkJson(value: unknown, name: string): void {
  const malformed = findMalformed(value, 1, name);
  if (malformed === null) return;
  throw new DramatisError("INVALID_INPUT", "Text must be well-formed Unicode: no lone surrogates.", {
    errors: [{ path: jsonPointer(malformed), message: "Must be well-formed Unicode." }],
  });
}

/** The path of the first string or key with a lone surrogate. Recursion is safe: it ends at the greatest depth. */
function findMalformed(value: unknown, depth: number, name: string): PropertyKey[] | null {
  if (typeof value === "string") return value.isWellFormed() ? null : [];
  if (typeof value !== "object" || value === null) return null;
  if (depth > MAX_DEPTH) {
    throw new DramatisError("INVALID_JSON", `${name} nests deeper than ${MAX_DEPTH} levels.`);
  }
  for (const [key, member] of Object.entries(value)) {
    if (!key.isWellFormed()) return [key.toWellFormed()];
    const path = findMalformed(member, depth + 1, name);
    if (path !== null) return [key, ...path];
  }
  return null;
}
