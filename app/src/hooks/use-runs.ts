/** Loads runs, newest first, and again every few seconds while the page is visible. */
import { useCallback } from "react";
import type { RunSummary } from "../../../src/client/index.ts";
import { defined } from "../../../src/shared/defined.ts";
import { client } from "../client.ts";
import type { RunChoice } from "../runs/run-filter.ts";
import { type PageOptions, type Pages, usePages } from "./use-pages.ts";

const REFRESH_MS = 4_000;

/** The caller is remounted for another choice. */
export function useRuns({ status, text }: RunChoice): Pages<RunSummary> {
  const load = useCallback(
    async (page: PageOptions) => {
      const { runs, ...rest } = await client.runs.list({
        ...page,
        ...defined({ status: status || undefined, text: text || undefined }),
      });
      return { items: runs, ...rest };
    },
    [status, text],
  );
  return usePages(load, REFRESH_MS);
}
