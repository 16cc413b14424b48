/** Times as text. */

/** Converts milliseconds since the epoch to ISO 8601 UTC. */
export function toIso(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

export const DAY_MS = 24 * 3_600_000;
