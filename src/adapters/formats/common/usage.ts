/** Token counts, whatever a provider calls them. Pure. */

import type { ModelDelta } from "../../../model/reply.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";

type Counted = Exclude<keyof TokenUsage, "breakdown">;

/** The counts that are counts, with the provider's `finer` ones; `undefined` if there are none. */
export function tokenUsage(
  counts: Partial<Record<Counted, unknown>>,
  finer?: JsonObject,
): TokenUsage | undefined {
  const counted = Object.entries(counts).filter(([, value]) => isCount(value));
  const hasFiner = finer !== undefined && Object.keys(finer).length > 0;
  if (counted.length === 0 && !hasFiner) return undefined;
  return { ...Object.fromEntries(counted), ...(hasFiner ? { breakdown: finer } : {}) };
}

/** The members that have counts of their own inside. */
export function finerCounts(counts: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(counts).filter(([, value]) => typeof value === "object" && value !== null),
  );
}

/** The sum of those that are counts; `undefined` if none is. */
export function sum(...values: readonly unknown[]): number | undefined {
  const counts = values.filter(isCount);
  return counts.length === 0 ? undefined : counts.reduce((whole, count) => whole + count, 0);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

/** Counts that come several times in one reply: later ones take the place of earlier ones, key by key. */
export class RunningCounts {
  readonly #read: (counts: JsonObject) => TokenUsage | undefined;
  #counts: JsonObject = {};

  constructor(read: (counts: JsonObject) => TokenUsage | undefined) {
    this.#read = read;
  }

  add(given: JsonObject | null | undefined): ModelDelta[] {
    if (!given) return [];
    const known = Object.entries(given).filter((entry): entry is [string, Json] => entry[1] !== null);
    this.#counts = { ...this.#counts, ...Object.fromEntries(known) };
    const usage = this.#read(this.#counts);
    return usage === undefined ? [] : [{ type: "usage", usage }];
  }
}
