/** Deployed definitions as JSON lists, the values of statements. Pure. */
import type { UnversionedDefinition } from "../library/definition-source.ts";
import { utf8Length } from "../shared/utf8.ts";

/**
 * Target size of a list, in bytes. A single definition can exceed it: as JSON within JSON it has up to twice
 * `MAX_DEFINITION_BYTES`, which is less than the 2 000 000 bytes that D1 binds.
 */
const MAX_LIST_BYTES = 700_000;

/** Returns the content of each definition, by its hash. */
export function contentList(definitions: readonly UnversionedDefinition[]): string {
  return JSON.stringify(definitions.map(({ library, kind, id, hash }) => ({ library, kind, id, hash })));
}

/** Returns the definitions in full, as several lists if one would be too long to bind. */
export function definitionLists(definitions: readonly UnversionedDefinition[]): string[] {
  const lists: string[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const { library, kind, id, hash, definition } of definitions) {
    const item = JSON.stringify({ library, kind, id, hash, definition: JSON.stringify(definition) });
    const length = utf8Length(item);
    if (bytes + length > MAX_LIST_BYTES) {
      lists.push([]);
      bytes = 0;
    }
    lists.at(-1)?.push(item);
    bytes += length;
  }
  return lists.map((items) => `[${items.join(",")}]`);
}
