/** Loads runs, newest first, and again every few seconds while the page is visible. */
import { useCallback, useEffect, useState } from "react";
import type { RunStatus, RunSummary } from "../../../src/client/index.ts";
import { defined } from "../../../src/shared/defined.ts";
import { client } from "../client.ts";
import { type Resource, useResource } from "./use-resource.ts";

const PAGE_SIZE = 50;
const REFRESH_MS = 4_000;

export interface Runs extends Resource<RunSummary[]> {
  /** `true` if there are more runs to load. */
  more: boolean;
  loadMore(): void;
}

/** The caller is mounted anew for another status. */
export function useRuns(status: RunStatus | undefined): Runs {
  const [pages, setPages] = useState(1);
  const load = useCallback((signal: AbortSignal) => firstPages(pages, status, signal), [pages, status]);
  const { value, error, reload } = useResource(load);

  useEffect(() => {
    const refresh = () => {
      if (document.visibilityState === "visible") reload();
    };
    const timer = setInterval(refresh, REFRESH_MS);
    document.addEventListener("visibilitychange", refresh);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", refresh);
    };
  }, [reload]);

  const loadMore = useCallback(() => setPages((count) => count + 1), []);
  return { value: value?.runs, more: value?.more ?? false, error, reload, loadMore };
}

async function firstPages(
  pages: number,
  status: RunStatus | undefined,
  signal: AbortSignal,
): Promise<{ runs: RunSummary[]; more: boolean }> {
  const runs: RunSummary[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages; page += 1) {
    const options = { limit: PAGE_SIZE, order: "desc", signal, ...defined({ status, cursor }) } as const;
    const result = await client.runs.list(options);
    runs.push(...result.runs);
    cursor = result.nextCursor;
    if (cursor === undefined) break;
  }
  return { runs, more: cursor !== undefined };
}
