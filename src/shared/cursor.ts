/** Pages of lists that ascend by creation. A cursor is the key of the last item of a page, opaque to clients. */
import { z } from "zod";
import { defined } from "./defined.ts";
import { DramatisError } from "./errors.ts";
import type { Page, PageOptions } from "./page.ts";

/** The key that orders a list: milliseconds since the epoch, then the id. */
export interface ListKey {
  createdAt: number;
  id: string;
}

/** At most `limit` items that follow `after` in this order. */
export interface ListRange {
  order: "asc" | "desc";
  limit: number;
  after: ListKey;
}

/** An item of a list with its key. */
export interface Listed<Item> {
  key: ListKey;
  item: Item;
}

const DEFAULT_LIMIT = 50;

const keySchema = z.tuple([z.int(), z.string()]);

/** Returns the range of a page. Throws `INVALID_INPUT` for an invalid cursor. */
export function listRange({ limit = DEFAULT_LIMIT, cursor, order = "asc" }: PageOptions): ListRange {
  const start = order === "asc" ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER;
  return { order, limit, after: cursor === undefined ? { createdAt: start, id: "" } : decodeCursor(cursor) };
}

/** Makes a page of the first `limit` items. Any further item means that another page follows. */
export function pageOf<Item>(found: readonly Listed<Item>[], limit: number): Page<Item> {
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  const nextCursor = found.length > limit && last !== undefined ? encodeCursor(last.key) : undefined;
  return { items: shown.map(({ item }) => item), ...defined({ nextCursor }) };
}

export function encodeCursor({ createdAt, id }: ListKey): string {
  return btoa(JSON.stringify([createdAt, id]))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

function decodeCursor(cursor: string): ListKey {
  try {
    const [createdAt, id] = keySchema.parse(
      JSON.parse(atob(cursor.replaceAll("-", "+").replaceAll("_", "/"))),
    );
    return { createdAt, id };
  } catch (cause) {
    throw new DramatisError("INVALID_INPUT", "This is not a cursor of this list.", {
      errors: [{ path: "/cursor", message: "Must be the `nextCursor` of an answer." }],
      cause,
    });
  }
}
