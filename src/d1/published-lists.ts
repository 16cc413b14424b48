/** Deployed definitions as the JSON lists that statements are given. Pure. */
import type { CodeDefinition } from "../library/registry.ts";
import { utf8Length } from "../shared/utf8.ts";

/** A value that is bound has less than 2 000 000 bytes; the JSON of one definition in JSON has at most half of that more. */
const MAX_BOUND_BYTES = 700_000;

/** Which definitions, by content, as a JSON list. */
export function namesOf(definitions: readonly CodeDefinition[]): string {
  return JSON.stringify(definitions.map(({ library, kind, id, hash }) => ({ library, kind, id, hash })));
}

/** The definitions as JSON lists, none too long to be bound. */
export function pieces(definitions: readonly CodeDefinition[]): string[] {
  const found: string[] = [];
  let items: string[] = [];
  let bytes = 0;
  for (const { library, kind, id, hash, definition } of definitions) {
    const item = JSON.stringify({ library, kind, id, hash, definition: JSON.stringify(definition) });
    const length = utf8Length(item);
    if (items.length > 0 && bytes + length > MAX_BOUND_BYTES) {
      found.push(`[${items.join(",")}]`);
      items = [];
      bytes = 0;
    }
    items.push(item);
    bytes += length;
  }
  return [...found, `[${items.join(",")}]`];
}
