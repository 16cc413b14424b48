/** Lists that hold what is deployed: it has no time of creation, so it stands in the order of the code, before the rest. */

import { decodeCursor, encodeCursor, type ListKey, type Page, type PageOptions } from "../shared/page.ts";
import type { DefinitionStore } from "./definition-store.ts";
import type { CodeRegistry } from "./registry.ts";
import { codeLibraryView, type LibraryView, storedLibraryView } from "./views.ts";

const DEFAULT_LIMIT = 50;

interface Entry<Item> {
  key: ListKey;
  item: Item;
}

/** One page of deployed definitions. Throws `INVALID_INPUT` for a cursor that is none. */
export function codePage<Item extends { id: string }>(
  items: readonly Item[],
  { limit = DEFAULT_LIMIT, cursor, order = "asc" }: PageOptions,
): Page<Item> {
  const entries = items.map((item, index) => ({
    key: { createdAt: index - items.length, id: item.id },
    item,
  }));
  return pageOf(following(entries, order, cursor), limit);
}

/** The deployed libraries and those of a tenant, without those that a deployed one hides. Throws as `codePage`. */
export async function libraryPage(
  { code, store }: { code: CodeRegistry; store: DefinitionStore | null },
  tenant: string,
  { limit = DEFAULT_LIMIT, cursor, order = "asc" }: PageOptions,
): Promise<Page<LibraryView>> {
  const ids = code.libraryIds;
  const deployed = following(
    ids.map((id, index) => ({ key: { createdAt: index - ids.length, id }, item: codeLibraryView(id) })),
    order,
    cursor,
  );
  if (order === "asc" && deployed.length > limit) return pageOf(deployed, limit);
  const start: ListKey = { createdAt: order === "asc" ? -1 : Number.MAX_SAFE_INTEGER, id: "" };
  const given = cursor === undefined ? start : decodeCursor(cursor);
  const after = given.createdAt < 0 && order === "asc" ? start : given;
  // As many more as a page may have to leave out.
  const rows = await store?.libraries(tenant, { order, limit: limit + 1 + ids.length, after });
  const own = (rows ?? [])
    .filter(({ id }) => !code.has(id))
    .map((row) => ({ key: { createdAt: row.createdAt, id: row.id }, item: storedLibraryView(row) }));
  return pageOf(order === "asc" ? [...deployed, ...own] : [...own, ...deployed], limit);
}

/** Those after the cursor, in order. */
function following<Item>(
  entries: readonly Entry<Item>[],
  order: "asc" | "desc",
  cursor: string | undefined,
): Entry<Item>[] {
  const ordered = order === "asc" ? [...entries] : entries.toReversed();
  if (cursor === undefined) return ordered;
  const { createdAt } = decodeCursor(cursor);
  return ordered.filter(({ key }) =>
    order === "asc" ? key.createdAt > createdAt : key.createdAt < createdAt,
  );
}

function pageOf<Item>(entries: readonly Entry<Item>[], limit: number): Page<Item> {
  const shown = entries.slice(0, limit);
  const last = shown.at(-1);
  return {
    items: shown.map(({ item }) => item),
    ...(entries.length > limit && last !== undefined ? { nextCursor: encodeCursor(last.key) } : {}),
  };
}
