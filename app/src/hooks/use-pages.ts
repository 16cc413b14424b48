/** Loads the first pages of a list, and again when the page becomes visible. */
import { useCallback, useEffect, useState } from "react";
import { defined } from "../../../src/shared/defined.ts";
import { type Resource, useResource } from "./use-resource.ts";

const PAGE_SIZE = 50;

export interface Pages<Item> extends Resource<Item[]> {
  /** `true` if there are more items to load. */
  more: boolean;
  loadMore(): void;
}

/** The options of the request for one page. */
export interface PageOptions {
  limit: number;
  order: "desc";
  cursor?: string;
  signal: AbortSignal;
}

/** Loads one page of a list. */
export type LoadPage<Item> = (options: PageOptions) => Promise<{ items: Item[]; nextCursor?: string }>;

/**
 * Loads the first page, newest first, and one more with each `loadMore`. `load` must keep its identity between renders. For another `load`, remount the
 * caller. `refreshMs`: loads again after so many milliseconds, too.
 */
export function usePages<Item>(load: LoadPage<Item>, refreshMs?: number): Pages<Item> {
  const [pages, setPages] = useState(1);
  const loadAll = useCallback((signal: AbortSignal) => firstPages(load, pages, signal), [load, pages]);
  const { value, error, reload } = useResource(loadAll);

  useEffect(() => {
    const refresh = () => {
      if (document.visibilityState === "visible") reload();
    };
    const timer = refreshMs === undefined ? undefined : setInterval(refresh, refreshMs);
    document.addEventListener("visibilitychange", refresh);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", refresh);
    };
  }, [reload, refreshMs]);

  const loadMore = useCallback(() => setPages((count) => count + 1), []);
  return { value: value?.items, more: value?.more ?? false, error, reload, loadMore };
}

async function firstPages<Item>(
  load: LoadPage<Item>,
  pages: number,
  signal: AbortSignal,
): Promise<{ items: Item[]; more: boolean }> {
  const items: Item[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages; page += 1) {
    const result = await load({ limit: PAGE_SIZE, order: "desc", signal, ...defined({ cursor }) });
    items.push(...result.items);
    cursor = result.nextCursor;
    if (cursor === undefined) break;
  }
  return { items, more: cursor !== undefined };
}
