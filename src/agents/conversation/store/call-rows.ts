/**
 * Records of model calls as a turn's row holds them: small, because every turn has one.
 *
 * CALLROW-1  `unpackCall(packCall(call, base), base)` equals the call, but for a breakdown of its usage, which is not kept.
 */

import type { ErrorCategory } from "../../../model/error.ts";
import type { RateLimitFeedback } from "../../../model/reply.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import type { CallRecord } from "../core/state.ts";

/** Counts in the order of `COUNTS`, without what is missing at the end. */
type PackedUsage = (number | null)[];

/** Times are milliseconds: the start since the turn began, the others since the start. What is missing at the end is left out. */
export type PackedCall = [
  item: number,
  profile: number,
  startedAfter: number,
  attempts: number,
  took?: number | null,
  firstTextAfter?: number | null,
  usage?: PackedUsage | null,
  status?: number | null,
  requestId?: string | null,
  category?: ErrorCategory | null,
  rateLimit?: RateLimitFeedback | null,
];

const COUNTS = [
  "inputTokens",
  "outputTokens",
  "totalTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "reasoningTokens",
] as const satisfies (keyof TokenUsage)[];

/** `base` is the time of the turn's creation. */
export function packCall(call: CallRecord, base: number): PackedCall {
  const { item, profile, startedAt, attempts, finishedAt, firstTextAt, usage, status, requestId } = call;
  const since = (time: number | undefined) => (time === undefined ? null : time - startedAt);
  return withoutTail([
    item,
    profile,
    startedAt - base,
    attempts,
    since(finishedAt),
    since(firstTextAt),
    usage === undefined ? null : withoutTail(COUNTS.map((count) => usage[count] ?? null)),
    status ?? null,
    requestId ?? null,
    call.category === "none" ? null : call.category,
    call.rateLimit ?? null,
  ]);
}

export function unpackCall(packed: PackedCall, base: number): CallRecord {
  const [item, profile, startedAfter, attempts, took, firstTextAfter, usage, status, requestId] = packed;
  const [category, rateLimit] = [packed[9], packed[10]];
  const startedAt = base + startedAfter;
  return {
    item,
    profile,
    startedAt,
    ...(took == null ? {} : { finishedAt: startedAt + took }),
    ...(firstTextAfter == null ? {} : { firstTextAt: startedAt + firstTextAfter }),
    attempts,
    category: category ?? "none",
    ...(status == null ? {} : { status }),
    ...(requestId == null ? {} : { requestId }),
    ...(usage == null ? {} : { usage: unpackUsage(usage) }),
    ...(rateLimit == null ? {} : { rateLimit }),
  };
}

function unpackUsage(packed: PackedUsage): TokenUsage {
  const usage: TokenUsage = {};
  COUNTS.forEach((count, index) => {
    const value = packed[index];
    if (value != null) usage[count] = value;
  });
  return usage;
}

function withoutTail<List extends unknown[]>(list: List): List {
  const end = list.findLastIndex((item) => item !== null);
  // SAFETY: what is cut off are the `null`s of members that may be absent.
  return list.slice(0, end + 1) as List;
}
