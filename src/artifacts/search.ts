/** Ranks artifacts for a query, as memories are ranked. Pure. */
import type { FoundRow } from "../d1/artifacts.ts";
import { LEAST_SIZE, rarityOf } from "../memory/corpus/full-text.ts";
import { analyzeQuery } from "../memory/ranking/analyze-query.ts";
import { MemoryColumns } from "../memory/ranking/columns.ts";
import { rank } from "../memory/ranking/rank.ts";
import { queryTerms, stemOf } from "../memory/ranking/words.ts";

/** Terms of a query that are looked up. */
const MAX_TERMS = 16;
/** The column of a text of usual length. Very short texts would be lowered. */
const USUAL_WORDS = 1_000;

/** Returns the terms of a query: for each, the stems of its forms as the index has them. */
export function searchTerms(query: string): string[][] {
  return queryTerms(query.toWellFormed())
    .slice(0, MAX_TERMS)
    .map(({ forms }) => [...new Set(forms.map((form) => ` ${stemOf(form)} `))]);
}

/** Returns the rows that answer a query, the best first. `cosines` are the similarities of vectors. */
export function ranked(
  query: string,
  rows: readonly FoundRow[],
  cosines: ReadonlyMap<string, number>,
  { limit, now }: { limit: number; now: number },
): FoundRow[] {
  const columns = new MemoryColumns();
  const semantic = new Float32Array(rows.length);
  const found = rows.map((row): number[] => JSON.parse(row.found));
  for (const [n, { updated_at: time, vector }] of rows.entries()) {
    const place = columns.put({
      ...{ n, type: "", time, changedAt: time, significance: 0.5, words: USUAL_WORDS, flags: 0 },
    });
    semantic[place] = (vector === null ? undefined : cosines.get(vector)) ?? 0;
  }
  const size = rows[0]?.size ?? 0;
  const terms = queryTerms(query.toWellFormed())
    .slice(0, MAX_TERMS)
    .map(({ word }, index) => {
      const having = found.filter((one) => one.includes(index)).length;
      return { word, weight: rarityOf(Math.max(size, LEAST_SIZE), having), isCommon: false };
    });
  const matches = found.flatMap((own, n) => {
    const score = own.reduce((sum, index) => sum + (terms[index]?.weight ?? 0), 0);
    return score === 0 ? [] : [{ n, score, found: own.reduce((bits, index) => bits | (1 << index), 0) }];
  });
  const results = rank({
    columns,
    query: analyzeQuery(query, now, columns.speakers),
    lexical: { terms, matches },
    ...(cosines.size === 0 ? {} : { semantic }),
    ...{ now, limit },
  });
  return results.flatMap(({ n }) => rows[n] ?? []);
}
