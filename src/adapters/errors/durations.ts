/** Spans and points of time as providers write them. Pure; in and out are milliseconds. */

const UNITS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** A span such as `20ms`, `34.4s` or `1h6m0s`; `undefined` for anything else. */
export function durationMs(text: string): number | undefined {
  const value = text.trim();
  if (!/^(?:\d{1,12}(?:\.\d{1,12})?(?:ms|[smhd]))+$/.test(value)) return undefined;
  let total = 0;
  for (const [, amount, unit] of value.matchAll(/([\d.]+)(ms|[smhd])/g)) {
    total += Number(amount) * (UNITS.get(unit ?? "") ?? 0);
  }
  return total;
}

/** Plain seconds, with or without a fraction. */
export function secondsMs(text: string): number | undefined {
  return /^\s*\d{1,12}(?:\.\d{1,9})?\s*$/.test(text) ? Number(text) * 1_000 : undefined;
}

/** An HTTP date or an ISO 8601 one, since the epoch. */
export function dateMs(text: string): number | undefined {
  // `Date.parse` takes almost anything for a date, so only what begins like one is given to it.
  if (!/^(?:[A-Za-z]{3,9},? |\d{4}-\d{2}-\d{2}T)/.test(text.trim())) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}
