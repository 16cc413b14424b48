/** Checks of model calls: their causes, their contents and their records. */
import { isDeepStrictEqual } from "node:util";
import { NO_USAGE, type UsageTotals } from "../../src/model/usage.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import { compactionsOf } from "./check-compactions.ts";
import { titlingsOf } from "./check-titles.ts";
import type { ModelCallRecord } from "./history.ts";
import { MODELS } from "./models.ts";
import type { ModelFailure } from "./plan.ts";
import { firedIn, messageTag, type Scope, tagOfTurn } from "./scope.ts";

export function checkModelCalls(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const calls = history.modelCalls.filter((call) => call.conversation === conversation);
  const faults = localFailures(scope);
  for (const [round, own] of Map.groupBy(calls, ({ tag, round }) => `${tag}.${round}`)) {
    const failures = own.filter(({ failure }) => failure !== undefined).length;
    const most = Math.max(1, outcome.lives) + failures + faults;
    if (own.length > most)
      fail("model calls", `${round} was requested ${own.length} times; faults explain ${most}.`);
  }
}

/** Failures that end the attempts of a model. */
const FINAL: ReadonlySet<ModelFailure | undefined> = new Set(["wrong key", "unknown model"]);
/** The failure with a wait longer than the backoff. The next model is called first, and this model perhaps later. */
const DEFERRING: ModelFailure = "rate limit";
const ATTEMPTS = 3;

/** Counts the attempts that failures use. A final failure uses all attempts of its model. */
export function attemptsUsed(calls: readonly Pick<ModelCallRecord, "failure">[]): number {
  return calls.reduce(
    (sum, { failure }) => sum + (failure === undefined ? 0 : FINAL.has(failure) ? ATTEMPTS : 1),
    0,
  );
}

/** Faults that can fail attempts, or prevent them from reaching the provider. */
export function localFailures(scope: Scope): number {
  return firedIn(scope, ({ port }) => /^(?:model|sql|object)\./.test(port));
}

export function checkFallbacks(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const calls = history.modelCalls.filter((call) => call.conversation === conversation);
  const faults = localFailures(scope);
  // A request that a crash cut off uses no attempt.
  const deaths = Math.max(0, outcome.lives - 1);
  const rounds = Map.groupBy(calls, ({ tag, round }) => `${tag}.${round}`);
  for (const [round, own] of rounds) {
    const repeated = repeatedBy(own, calls, rounds);
    own.forEach(({ profile }, index) => {
      if (profile >= (own[index - 1]?.profile ?? 0)) return;
      const before = [...repeated, ...own.slice(0, index)].filter((call) => call.profile === profile);
      if (before.at(-1)?.failure !== DEFERRING || before.length >= ATTEMPTS + faults + deaths)
        fail("fallbacks", `${round} goes back to ${MODELS[profile]} without need.`);
    });
    const last = own.at(-1)?.profile ?? 0;
    // A withdrawn answer, and an interrupted reply, are retried by the same model.
    const first = isRepeat(own[0], calls) ? (own[0]?.profile ?? 0) : 0;
    const earlier = own.filter(({ profile }) => profile < last);
    const used = earlier.reduce(
      (sum, call) => sum + (call.failure === DEFERRING ? ATTEMPTS : attemptsUsed([call])),
      0,
    );
    if (used + faults < ATTEMPTS * (last - first))
      fail("fallbacks", `${round} is asked of ${MODELS[last]} without need.`);
  }
}

/** Reports whether a request may be for a message with a withdrawn reply. */
function isRepeat(call: ModelCallRecord | undefined, calls: readonly ModelCallRecord[]): boolean {
  return callBefore(call, calls)?.unfit !== undefined || hasNewer(call, calls);
}

/** Returns the request of the turn before one. */
function callBefore(call: ModelCallRecord | undefined, calls: readonly ModelCallRecord[]) {
  return calls.findLast(({ tag, step }) => call !== undefined && tag === call.tag && step < call.step);
}

/** Returns the calls of earlier rounds for the same message. Models that were deferred in them stay deferred. */
function repeatedBy(
  [first]: readonly ModelCallRecord[],
  calls: readonly ModelCallRecord[],
  rounds: ReadonlyMap<string, readonly ModelCallRecord[]>,
): ModelCallRecord[] {
  if (first === undefined || !isRepeat(first, calls)) return [];
  const before = rounds.get(`${first.tag}.${first.round - 1}`) ?? [];
  return [...repeatedBy(before, calls, rounds), ...before];
}

/** Reports whether a request contains a newer message that the turn's requests before it did not. */
function hasNewer(call: ModelCallRecord | undefined, calls: readonly ModelCallRecord[]): boolean {
  if (call === undefined) return false;
  return call.newer.length > (callBefore(call, calls)?.newer.length ?? 0);
}

export function checkCalls(scope: Scope): void {
  const { history, outcome, fail } = scope;
  const deaths = Math.max(0, outcome.lives - 1);
  const unseen = localFailures(scope);
  const names = new Set<string>();
  for (const turn of outcome.turns) {
    const seen = history.modelCalls.filter(({ tag }) => tag === tagOfTurn(turn));
    const attempts = turn.calls.reduce((sum, call) => sum + (call.outcome?.attempts ?? 0), 0);
    // An attempt may be stopped before its request arrives.
    const stopped = turn.error?.code === "CANCELLED" ? 1 : 0;
    if (attempts > seen.length + unseen + stopped || attempts < seen.length - deaths)
      fail("calls", `${turn.id} records ${attempts} attempts of ${seen.length} requests.`);
    for (const call of turn.calls) {
      const { requestId, outcome: end } = call;
      if (end === undefined) fail("calls", `${call.id} has no end.`);
      if (requestId === undefined) continue;
      if (names.has(requestId)) fail("calls", `${requestId} is in two calls.`);
      names.add(requestId);
      const request = seen.find((one) => one.requestId === requestId);
      if (request === undefined || MODELS[request.profile] !== call.model)
        fail("calls", `${call.id} names ${requestId}, which ${call.model} was not asked.`);
    }
    checkCounts(turn, seen, deaths, fail);
  }
}

/** Counted requests must count once. The tokens of each request are a separate bit. */
function checkCounts(
  { id, calls }: TurnView,
  seen: readonly ModelCallRecord[],
  deaths: number,
  fail: Scope["fail"],
): void {
  const counted = sumOf(calls, "inputTokens");
  const known = seen.filter(({ tokens }) => bit(counted, tokens));
  const sum = known.reduce((total, { tokens }) => total + tokens, 0);
  if (sum !== counted || known.length !== sumOf(calls, "outputTokens"))
    fail(
      "usage",
      `${id} counts ${counted} tokens, of requests ${known.map(({ tokens }) => tokens).join(" ")}.`,
    );
  const lost = seen.filter(({ isCounted, tokens }) => isCounted && !bit(counted, tokens));
  if (lost.length > deaths)
    fail("usage", `${id} does not count ${lost.map(({ requestId }) => requestId).join(" ")}.`);
}

function bit(sum: number, power: number): boolean {
  return power > 0 && Math.floor(sum / power) % 2 === 1;
}

function sumOf(calls: TurnView["calls"], count: "inputTokens" | "outputTokens"): number {
  return calls.reduce((sum, { usage }) => sum + (usage?.[count] ?? 0), 0);
}

export function checkUsage(scope: Scope): void {
  const { outcome, fail } = scope;
  const { usage } = outcome.stored;
  const calls = outcome.turns.flatMap((turn) => turn.calls);
  const own = {
    calls: calls.length,
    inputTokens: sumOf(calls, "inputTokens"),
    cachedInputTokens: 0,
    outputTokens: sumOf(calls, "outputTokens"),
    nanoDollars: calls.reduce((sum, { cost = 0 }) => sum + Math.round(cost * 1e9), 0),
  };
  const summaries = summaryUsage(scope, own);
  const sums = {
    ...own,
    calls: own.calls + summaries.calls,
    inputTokens: own.inputTokens + summaries.inputTokens,
    outputTokens: own.outputTokens + summaries.outputTokens,
    nanoDollars: own.nanoDollars + summaries.inputTokens + 1_000 * summaries.outputTokens,
  };
  if (!isDeepStrictEqual({ ...usage }, sums))
    fail("usage", `The totals are ${JSON.stringify(usage)}, the sums of the calls ${JSON.stringify(sums)}.`);
  const { published = NO_USAGE } = outcome;
  // If the wake-up could not be armed before the actor died, the next turn reports to the directory.
  const untold =
    outcome.lives > 1 && firedIn(scope, ({ port, kind }) => port === "window.open" && kind === "error") > 0;
  if (!untold && !isDeepStrictEqual({ ...published }, { ...usage }))
    fail("usage", `The directory has ${JSON.stringify(published)}, the totals are ${JSON.stringify(usage)}.`);
  for (const turn of outcome.turns) {
    const { inputTokens = 0, outputTokens = 0 } = turn.usage ?? {};
    if (
      inputTokens !== sumOf(turn.calls, "inputTokens") ||
      outputTokens !== sumOf(turn.calls, "outputTokens")
    )
      fail("usage", `${turn.id} used ${JSON.stringify(turn.usage)}, its calls another amount.`);
  }
}

type Counts = Pick<UsageTotals, "calls" | "inputTokens" | "outputTokens">;

/** Returns the usage of the calls for summaries: the rest of the totals, if that is possible. */
function summaryUsage(scope: Scope, own: Counts): Counts {
  const { history, outcome, conversation, fail } = scope;
  const { usage } = outcome.stored;
  const asked = history.sideCalls.filter((call) => call.conversation === conversation);
  const inputTokens = usage.inputTokens - own.inputTokens;
  const known = asked.filter(({ tokens }) => bit(inputTokens, tokens));
  const lost = asked.filter(({ isCounted, tokens }) => isCounted && !bit(inputTokens, tokens));
  if (lost.length > Math.max(0, outcome.lives - 1))
    fail("usage", `The totals do not have ${lost.map(({ requestId }) => requestId).join(" ")}.`);
  // An end without a known attempt counts no call.
  const ends = [...compactionsOf(scope), ...titlingsOf(scope)].flatMap(({ end }) => end ?? []);
  const least = ends.filter(({ type }) => !type.endsWith(".failed")).length;
  const calls = usage.calls - own.calls;
  return {
    calls: calls >= least && calls <= ends.length ? calls : least,
    inputTokens: known.reduce((sum, { tokens }) => sum + tokens, 0),
    outputTokens: known.length,
  };
}

export function checkContext(scope: Scope): void {
  const { history, conversation, fail } = scope;
  const lost = firedIn(scope, ({ port, kind }) => port === "object.get" && kind === "loss");
  for (const call of history.modelCalls) {
    if (call.conversation !== conversation) continue;
    const { requestId, tag, images, missing } = call;
    const sent = history.sent.find((message) => message.tag === messageTag(tag))?.content ?? "";
    const named = typeof sent === "string" ? 0 : sent.length - 1;
    if (images + missing !== named || missing > lost)
      fail(
        "context",
        `${requestId} carries ${images} images of ${named}, and says that ${missing} are gone.`,
      );
  }
}
