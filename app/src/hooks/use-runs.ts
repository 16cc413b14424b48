/** Loads runs, newest first, and again every few seconds while the page is visible. */
import { useCallback } from "react";
import type { RunStatus, RunSummary } from "../../../src/client/index.ts";
import { defined } from "../../../src/shared/defined.ts";
import { client } from "../client.ts";
import { type PageOptions, type Pages, usePages } from "./use-pages.ts";

const REFRESH_MS = 4_000;

/** The caller is remounted for another status. */
export function useRuns(status: RunStatus | undefined): Pages<RunSummary> {
  const load = useCallback(
    async (page: PageOptions) => {
      const { runs, ...rest } = await client.runs.list({ ...page, ...defined({ status }) });
      return { items: runs, ...rest };
    },
    [status],
  );
  return usePages(load, REFRESH_MS);
}
