/**
 * Records of a turn's model calls, and their totals. Pure.
 *
 * CALLS-1  Each call is recorded once, independent of its attempts and its success. A fallback is a separate call.
 * CALLS-2  Usage of failed attempts counts too, if the provider reported it.
 * CALLS-3  The totals of turns are the sums of their calls, to the billionth of a dollar. The totals of a conversation are the sums of its
 *          turns' calls and its side calls, for summaries and titles.
 */
import { profileAt } from "../../../library/definitions/version-chain.ts";
import type { RequestOutcome } from "../../../model/call-record.ts";
import { nanoDollarsOf } from "../../../model/cost.ts";
import type { ErrorCategory } from "../../../model/error.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { TokenEstimate } from "../../../model/spending.ts";
import { addUsage, type TokenUsage, type UsageTotals } from "../../../model/usage.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { amountsOfModels, type TaskModelUsage } from "../../../protocol/task-summary.ts";
import { defined } from "../../../shared/defined.ts";
import { addEstimates } from "./ledger.ts";
import type { AttemptFacts } from "./signals.ts";
import type { AttemptsRecord, CallRecord, Turn } from "./turn.ts";

export interface AttemptOutcome {
  facts: AttemptFacts;
  category: ErrorCategory | "none";
  /** The call is over: no attempt follows. */
  isLast: boolean;
}

export function withAttempt(turn: Turn, outcome: AttemptOutcome): Turn {
  if (turn.call === null) return turn;
  const { item, profile = 0 } = turn.call;
  const record = { item, profile, ...withOutcome(openRecord(turn), outcome) };
  return { ...turn, calls: [...closedRecords(turn), record] };
}

/** Adds an attempt to the record of its call; `before` is absent for the first attempt. */
export function withOutcome(
  before: AttemptsRecord | undefined,
  { facts, category, isLast }: AttemptOutcome,
): AttemptsRecord {
  const { status, requestId } = facts;
  return {
    startedAt: before?.startedAt ?? facts.startedAt,
    attempts: (before?.attempts ?? 0) + 1,
    category,
    ...defined({
      finishedAt: isLast ? facts.finishedAt : undefined,
      firstTextAt: before?.firstTextAt ?? facts.firstTextAt,
      status,
      requestId,
      usage: addUsage(before?.usage, facts.usage),
      estimate: addEstimates(before?.estimate, facts.estimate),
      crashed: before?.crashed,
      rateLimit: facts.rateLimit ?? before?.rateLimit,
    }),
  };
}

/** Records an attempt of the turn's current call that a crash interrupted. */
export function withCrash(turn: Turn, estimate: TokenEstimate): Turn {
  if (turn.call === null) return turn;
  const { reserved: _reserved, ...call } = turn.call;
  const { item, profile = 0, notBefore: startedAt } = call;
  const before: CallRecord = openRecord(turn) ?? {
    item,
    profile,
    startedAt,
    attempts: 0,
    category: "unknown",
  };
  const crashed = (before.crashed ?? 0) + 1;
  const record = { ...before, crashed, ...defined({ estimate: addEstimates(before.estimate, estimate) }) };
  return { ...turn, call, calls: [...closedRecords(turn), record] };
}

/** Closes the record of a call after its turn failed before the next attempt. */
export function withoutOpenCall(turn: Turn, now: number): Turn {
  const open = openRecord(turn);
  return open === undefined
    ? turn
    : { ...turn, calls: [...closedRecords(turn), { ...open, finishedAt: now }] };
}

/** Returns the record of the call in progress; `undefined` before its first attempt failed. */
export function openRecord({ calls = [] }: Turn): CallRecord | undefined {
  const last = calls.at(-1);
  return last?.finishedAt === undefined ? last : undefined;
}

export function closedRecords({ calls = [] }: Pick<Turn, "calls">): CallRecord[] {
  return calls.filter(({ finishedAt }) => finishedAt !== undefined);
}

/** Returns the outcome of a call; `undefined` while the call runs. */
export function outcomeOf({
  startedAt,
  finishedAt,
  attempts,
  category,
  status,
  rateLimit,
}: AttemptsRecord): RequestOutcome | undefined {
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

/** Adds usage of a call that no turn records. */
export function withUsage(
  totals: UsageTotals,
  usage: TokenUsage | undefined,
  profile: ModelProfile,
): UsageTotals {
  return {
    calls: totals.calls,
    inputTokens: totals.inputTokens + (usage?.inputTokens ?? 0),
    cachedInputTokens: totals.cachedInputTokens + (usage?.cachedInputTokens ?? 0),
    outputTokens: totals.outputTokens + (usage?.outputTokens ?? 0),
    nanoDollars: totals.nanoDollars + (nanoDollarsOf(usage, profile) ?? 0),
  };
}

export function withTaskUsage(totals: UsageTotals, models: TaskModelUsage): UsageTotals {
  return {
    calls: totals.calls + models.calls,
    inputTokens: totals.inputTokens + models.inputTokens,
    cachedInputTokens: totals.cachedInputTokens,
    outputTokens: totals.outputTokens + models.outputTokens,
    nanoDollars: totals.nanoDollars + amountsOfModels(models).nanoDollars,
  };
}

/** Adds to the totals the difference between two totals of one turn. */
export function movedTotals(totals: UsageTotals, from: UsageTotals, to: UsageTotals): UsageTotals {
  const moved = (count: keyof UsageTotals) => totals[count] + to[count] - from[count];
  return {
    calls: moved("calls"),
    inputTokens: moved("inputTokens"),
    cachedInputTokens: moved("cachedInputTokens"),
    outputTokens: moved("outputTokens"),
    nanoDollars: moved("nanoDollars"),
  };
}
