/** Builds the index query of a search. Pure. */
import type { z } from "zod";
import { defined } from "../../shared/defined.ts";
import { cut } from "../../shared/text.ts";
import { DEFAULT_RESULTS, MAX_QUERY_LENGTH } from "./corpus-limits.ts";
import type { IndexQuery } from "./memory-index.ts";
import type { CheckedFilter, querySchema } from "./schemas.ts";
import type { Visible } from "./visibility.ts";

/**
 * Returns the index query. `numbers` returns the memories that match a filter. It reads the rows if the index cannot apply the filter. With
 * `ofRowsOnly` it always reads the rows, so the index finds only memories that still have a row. `now` is the time of the question, unless
 * the query names a time.
 */
export function indexQuery(
  { query, limit, now: asked, minRelevance, weights, ...filter }: z.output<typeof querySchema>,
  visible: Visible,
  numbers: (filter: CheckedFilter) => ReadonlySet<number>,
  now: number,
  { ofRowsOnly = false } = {},
): IndexQuery {
  const { type, metadata, subject, speaker, session, from, before } = filter;
  return {
    text: cut(query, MAX_QUERY_LENGTH),
    now: asked ?? now,
    limit: limit ?? DEFAULT_RESULTS,
    minRelevance: minRelevance ?? 0,
    weights: defined(weights ?? {}),
    filter: defined({
      types: type === undefined || Array.isArray(type) ? type : [type],
      speaker,
      session,
      from,
      before,
      userId: subject?.userId,
      conversationId: subject?.conversationId,
    }),
    visible,
    ...((ofRowsOnly || metadata !== undefined) && { allowed: numbers(filter) }),
  };
}
