/** Whole lists, for methods that have no pages here. */
import type { LibraryPorts } from "../../library/authoring/authoring.ts";
import type { DefinitionKind, DefinitionTypes } from "../../library/definitions/definition.ts";
import type { DefinitionKey } from "../../library/definitions/reference.ts";
import { hasCode } from "../../shared/errors.ts";
import { MAX_PAGE_SIZE, type Page, type PageOptions } from "../../shared/page.ts";

/** The length of a list is limited. */
export const MAX_ITEMS = 1_000;

/** Reads the pages of a list, up to the limit. */
export async function everyItem<Item>(read: (options: PageOptions) => Promise<Page<Item>>): Promise<Item[]> {
  const items: Item[] = [];
  let options: PageOptions = { limit: MAX_PAGE_SIZE };
  for (;;) {
    const { items: more, nextCursor } = await read(options);
    items.push(...more);
    if (nextCursor === undefined || items.length >= MAX_ITEMS) return items.slice(0, MAX_ITEMS);
    options = { ...options, cursor: nextCursor };
  }
}

/** Returns the definitions of a kind in all libraries, up to the limit. */
export async function everyLibrary<Kind extends DefinitionKind>(
  registry: LibraryPorts["registry"],
  kind: Kind,
): Promise<{ key: DefinitionKey; definition: DefinitionTypes[Kind] }[]> {
  const found: { key: DefinitionKey; definition: DefinitionTypes[Kind] }[] = [];
  for (const { id: library } of await everyItem((options) => registry.libraries(options))) {
    const definitions = await everyItem((options) => registry.list(kind, library, options));
    found.push(...definitions.map(({ id, definition }) => ({ key: { library, id }, definition })));
    if (found.length >= MAX_ITEMS) break;
  }
  return found.slice(0, MAX_ITEMS);
}

/** Returns `undefined` for a definition that does not exist. Use it with `catch`. */
export function ifNotFound(error: unknown): undefined {
  if (hasCode(error, "NOT_FOUND")) return undefined;
  throw error;
}
