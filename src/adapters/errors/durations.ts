/** Parses spans and times in the notations of providers. Pure; results are in milliseconds. */

const UNITS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** Parses a span such as `20ms`, `34.4s` or `1h6m0s`. Returns `undefined` for other text. */
export function durationMs(text: string): number | undefined {
  const value = text.trim();
  if (!/^(?:\d{1,12}(?:\.\d{1,12})?(?:ms|[smhd]))+$/.test(value)) return undefined;
  let total = 0;
  for (const [, amount, unit] of value.matchAll(/([\d.]+)(ms|[smhd])/g))
    total += Number(amount) * (UNITS.get(unit ?? "") ?? 0);
  return total;
}

/** Parses plain seconds, with or without a fraction. */
export function secondsMs(text: string): number | undefined {
  return /^\s*\d{1,12}(?:\.\d{1,9})?\s*$/.test(text) ? Number(text) * 1_000 : undefined;
}

/** Parses an HTTP date or an ISO 8601 date into milliseconds since the epoch. */
export function dateMs(text: string): number | undefined {
  // `Date.parse` accepts almost any text, so the beginning is checked first.
  if (!/^(?:[A-Za-z]{3,9},? |\d{4}-\d{2}-\d{2}T)/.test(text.trim())) return undefined;
  const time = Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}
