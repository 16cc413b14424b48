/**
 * What the model calls of a turn took, kept with the turn, and what they add up to.
 *
 * CALLS-1  Each call is recorded once, however many attempts it took and whether or not it succeeded; a fallback is a
 *          call of its own.
 * CALLS-2  What was used counts when the provider counted it, also in an attempt that failed afterwards.
 * CALLS-3  The totals of turns and conversations are the sums of their calls, to the billionth of a dollar.
 */

import { profileAt } from "../../../library/version-chain.ts";
import type { RequestOutcome } from "../../../model/call-record.ts";
import { nanoDollarsOf } from "../../../model/cost.ts";
import type { ErrorCategory } from "../../../model/error.ts";
import type { UsageTotals } from "../../../model/usage.ts";
import { addUsage } from "../../../model/usage.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { defined } from "../../../shared/defined.ts";
import type { AttemptFacts } from "./signals.ts";
import type { CallRecord, Turn } from "./state.ts";

/** What became of an attempt. */
export interface AttemptOutcome {
  facts: AttemptFacts;
  category: ErrorCategory | "none";
  /** Whether the call is over: no further attempt of it will be made. */
  isLast: boolean;
}

/** The turn with an attempt of its present call recorded. */
export function withAttempt(turn: Turn, { facts, category, isLast }: AttemptOutcome): Turn {
  if (turn.call === null) return turn;
  const { calls = [] } = turn;
  const { item, profile = 0 } = turn.call;
  const before = openRecord(turn);
  const firstTextAt = before?.firstTextAt ?? facts.firstTextAt;
  const usage = addUsage(before?.usage, facts.usage);
  const { status, requestId, rateLimit = before?.rateLimit } = facts;
  const record: CallRecord = {
    item,
    profile,
    startedAt: before?.startedAt ?? facts.startedAt,
    ...(isLast ? { finishedAt: facts.finishedAt } : {}),
    ...defined({ firstTextAt }),
    attempts: (before?.attempts ?? 0) + 1,
    category,
    ...defined({ status, requestId, usage, rateLimit }),
  };
  return { ...turn, calls: [...(before === undefined ? calls : calls.slice(0, -1)), record] };
}

/** What became of a call, from its record; `undefined` while it runs. */
export function outcomeOf({
  startedAt,
  finishedAt,
  attempts,
  category,
  status,
  rateLimit,
}: CallRecord): RequestOutcome | undefined {
  if (finishedAt === undefined) return undefined;
  return {
    ok: category === "none",
    ...defined({ status }),
    errorCategory: category,
    attempts,
    startedAt,
    finishedAt,
    ...defined({ rateLimitFeedback: rateLimit }),
  };
}

/** The turn with its last record closed: it ends, and no attempt is to come. */
export function withoutOpenCall(turn: Turn, now: number): Turn {
  const open = openRecord(turn);
  if (open === undefined) return turn;
  return { ...turn, calls: [...(turn.calls ?? []).slice(0, -1), { ...open, finishedAt: now }] };
}

/** The record of the call in progress, once one of its attempts has failed. */
export function openRecord({ calls = [] }: Turn): CallRecord | undefined {
  const last = calls.at(-1);
  return last?.finishedAt === undefined ? last : undefined;
}

/** What calls add up to. */
export function totalsOf(calls: readonly CallRecord[] = [], chain: VersionChain): UsageTotals {
  const sum = (amount: (call: CallRecord) => number | undefined) =>
    calls.reduce((total, call) => total + (amount(call) ?? 0), 0);
  return {
    calls: calls.length,
    inputTokens: sum(({ usage }) => usage?.inputTokens),
    cachedInputTokens: sum(({ usage }) => usage?.cachedInputTokens),
    outputTokens: sum(({ usage }) => usage?.outputTokens),
    nanoDollars: sum(({ usage, profile }) => nanoDollarsOf(usage, profileAt(chain, profile))),
  };
}

/** The totals moved on by what a turn's calls have become. */
export function movedTotals(totals: UsageTotals, from: UsageTotals, to: UsageTotals): UsageTotals {
  return {
    calls: totals.calls + to.calls - from.calls,
    inputTokens: totals.inputTokens + to.inputTokens - from.inputTokens,
    cachedInputTokens: totals.cachedInputTokens + to.cachedInputTokens - from.cachedInputTokens,
    outputTokens: totals.outputTokens + to.outputTokens - from.outputTokens,
    nanoDollars: totals.nanoDollars + to.nanoDollars - from.nanoDollars,
  };
}
