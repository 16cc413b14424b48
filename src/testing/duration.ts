/** Durations in words. Pure. */
import { invalid } from "../shared/errors.ts";

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Returns a duration in milliseconds. Throws `INVALID_INPUT`.
 * @example millisecondsOf("1h30m");
 */
export function millisecondsOf(duration: number | string): number {
  if (typeof duration === "number" && duration >= 0) return duration;
  const text = String(duration);
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
  if (parts.length > 0 && parts.map(([whole]) => whole).join("") === text)
    return parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * (UNITS[unit] ?? 0), 0);
  throw invalid(
    `The duration "${text}" is invalid. Write milliseconds, or a text such as "30s", "1h" or "2d12h".`,
  );
}
