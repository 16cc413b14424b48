/** Pages of lists, and the cursors between them. */
import { z } from "zod";
import { invalid } from "./errors.ts";

export interface Page<Item> {
  items: Item[];
  /** Send it back to get the next page; absent on the last page. */
  nextCursor?: string;
}

export interface PageOptions {
  /** 1 to 200. Default: 50. */
  limit?: number;
  cursor?: string;
  order?: "asc" | "desc";
}

export const DEFAULT_PAGE_SIZE = 50;
export const MAX_PAGE_SIZE = 200;
/** A page of a list with large items ends with the item that brings it to this size. */
export const MAX_PAGE_BYTES = 4 * 1024 * 1024;
export const DEFAULT_ORDER = "asc";
/** The rule of cursors, for error messages. */
export const CURSOR_RULE = "Must be the `nextCursor` of an answer.";

/** Returns the schema of `PageOptions`, with defaults, for a list with cursors of its own. */
export function pageOptionsSchema(isCursor: (cursor: string) => boolean) {
  return z.strictObject({
    limit: z.int().min(1).max(MAX_PAGE_SIZE).default(DEFAULT_PAGE_SIZE),
    cursor: z.string().refine(isCursor, CURSOR_RULE).optional(),
    order: z.enum(["asc", "desc"]).default(DEFAULT_ORDER),
  });
}

export function bothOrders(statement: (comparison: "<" | ">", order: "ASC" | "DESC") => string) {
  return { asc: statement(">", "ASC"), desc: statement("<", "DESC") };
}

/** Returns the page of `rows`. The caller requests one row more than `limit` to find out whether others follow. */
export function pageOf<Row, Item>(
  rows: readonly Row[],
  limit: number,
  toItem: (row: Row) => Item,
  cursorOf: (row: Row) => string,
): Page<Item> {
  const items = rows.slice(0, limit).map(toItem);
  const last = rows[limit - 1];
  return rows.length > limit && last !== undefined ? { items, nextCursor: cursorOf(last) } : { items };
}

/** The key of lists that ascend by creation: milliseconds since the epoch, then the id. */
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

export interface Listed<Item> {
  key: ListKey;
  item: Item;
}

/** Returns the range of a page. Throws `INVALID_INPUT` for an invalid cursor. */
export function listRange({
  limit = DEFAULT_PAGE_SIZE,
  cursor,
  order = DEFAULT_ORDER,
}: PageOptions): ListRange {
  const start = order === "asc" ? Number.MIN_SAFE_INTEGER : Number.MAX_SAFE_INTEGER;
  return { order, limit, after: cursor === undefined ? { createdAt: start, id: "" } : decodeCursor(cursor) };
}

/** As `pageOf`, for items with keys. */
export function listPage<Item>(found: readonly Listed<Item>[], limit: number): Page<Item> {
  return pageOf(
    found,
    limit,
    ({ item }) => item,
    ({ key }) => encodeCursor(key),
  );
}

const keySchema = z.tuple([z.int(), z.string()]);

/** Returns the cursor after a key, opaque to clients. */
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
    throw invalid(
      "This is not a cursor of this list. Use the `nextCursor` of an answer; omit it for the first page.",
      {
        errors: [{ path: "/cursor", message: CURSOR_RULE }],
        cause,
      },
    );
  }
}
