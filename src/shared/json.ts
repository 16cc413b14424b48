/** JSON values, and the two things every boundary needs of them: a canonical text and a check of well-formedness. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type JsonObject = { [key: string]: Json };

/** JSON text with keys sorted at every level: equal values give equal text (RFC 8785's ordering rule). */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`);
  return `{${members.join(",")}}`;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Levels of nesting, 0 for a value that is no container. Looks no deeper than one beyond `limit`. */
export function jsonDepth(value: Json, limit: number): number {
  if (typeof value !== "object" || value === null || limit < 0) return 0;
  const members = Array.isArray(value) ? value : Object.values(value);
  return 1 + members.reduce<number>((deepest, member) => Math.max(deepest, jsonDepth(member, limit - 1)), 0);
}
