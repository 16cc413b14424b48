/** Names and ids as providers take them: the same way wherever they occur in a request. Pure. */
import { fingerprint } from "../../../shared/text.ts";

/** Characters of a name that every provider takes. */
export const NAME_LENGTH = 64;

/** 1 to `limit` letters, digits, `_` and `-`. */
export function plainName(name: string, limit: number): string {
  return name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, limit) || "unnamed";
}

/** At most `limit` characters: the end of a longer text gives way to a fingerprint of the whole. */
export function fitLength(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 9).toWellFormed()}_${fingerprint(text)}`;
}
