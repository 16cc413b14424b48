/**
 * Records of model calls in a turn's row: packed, because every turn has at least one.
 *
 * CALLROW-1  `unpackCall(packCall(call, base), base)` equals the call, except for the breakdown of its usage, which is not stored.
 */
import type { ErrorCategory } from "../../../model/error.ts";
import type { RateLimitFeedback } from "../../../model/reply.ts";
import type { TokenEstimate } from "../../../model/spending.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import { defined } from "../../../shared/defined.ts";
import type { CallRecord } from "../core/turn.ts";

/** Counts in the order of `COUNTS`, without absent counts at the end. */
type PackedUsage = (number | null)[];

type PackedEstimate = { e: [input: number, output: number] };

/** Times are milliseconds: the start since the turn's creation, the others since the start. Absent ends are left out. */
export type PackedCall = [
  item: number,
  profile: number,
  startedAfter: number,
  attempts: number,
  took?: number | null,
  firstTextAfter?: number | null,
  /** If only an estimate is known, it replaces the usage. */
  usage?: PackedUsage | PackedEstimate | null,
  status?: number | null,
  requestId?: string | null,
  category?: ErrorCategory | null,
  rateLimit?: RateLimitFeedback | null,
  estimate?: PackedEstimate | null,
  crashed?: number | null,
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
  const { inputTokens, outputTokens } = call.estimate ?? {};
  const estimate: PackedEstimate | null =
    inputTokens === undefined || outputTokens === undefined ? null : { e: [inputTokens, outputTokens] };
  return withoutTail([
    item,
    profile,
    startedAt - base,
    attempts,
    since(finishedAt),
    since(firstTextAt),
    usage === undefined ? estimate : withoutTail(COUNTS.map((count) => usage[count] ?? null)),
    status ?? null,
    requestId ?? null,
    call.category === "none" ? null : call.category,
    call.rateLimit ?? null,
    usage === undefined ? null : estimate,
    call.crashed ?? null,
  ]);
}

export function unpackCall(packed: PackedCall, base: number): CallRecord {
  const [item, profile, startedAfter, attempts, took, firstTextAfter, usage, status, requestId] = packed;
  const [category, rateLimit, crashed] = [packed[9], packed[10], packed[12]];
  const estimate = usage != null && "e" in usage ? usage : packed[11];
  const startedAt = base + startedAfter;
  const at = (after: number | null | undefined) => (after == null ? undefined : startedAt + after);
  return {
    item,
    profile,
    startedAt,
    attempts,
    category: category ?? "none",
    ...defined({
      finishedAt: at(took),
      firstTextAt: at(firstTextAfter),
      status: status ?? undefined,
      requestId: requestId ?? undefined,
      usage: usage == null || "e" in usage ? undefined : unpackUsage(usage),
      rateLimit: rateLimit ?? undefined,
      estimate: estimate == null ? undefined : unpackEstimate(estimate),
      crashed: crashed ?? undefined,
    }),
  };
}

function unpackEstimate({ e: [inputTokens, outputTokens] }: PackedEstimate): TokenEstimate {
  return { inputTokens, outputTokens };
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
  // SAFETY: the members that are cut off are `null`, and may be absent.
  return list.slice(0, end + 1) as List;
}
