/** Checks of compactions: their start, their cover, their requests, and their end. Pure. */
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import { isJsonObject, type JsonObject } from "../../src/shared/json.ts";
import type { SideCallRecord } from "./history.ts";
import { firedIn, type Scope, tagIn } from "./scope.ts";
import type { TurnTimeline } from "./turn-times.ts";
import { amissIn, budgetOf, tokensOf, upTo, type Window, windowOf } from "./windows.ts";

/** Parts of the history's budget: above the first it is compacted, and the newest turns within the second are kept. */
const ABOVE = 0.8;
const KEPT = 0.4;
const ATTEMPTS = 3;
/** Pauses before the second attempt and the third one, in milliseconds. */
const PAUSES_MS = [500, 1_000];

/** A compaction, by its journal entries. */
export interface Compaction {
  /** Number of its first entry. */
  started: number;
  /** The compaction covers the events below this number. */
  cover: number;
  failures: JournalEntryView[];
  /** The entry that ended it; absent while it runs. */
  end?: JournalEntryView;
}

/** Returns the compactions of a conversation. */
export function compactionsOf({ outcome, fail }: Scope): Compaction[] {
  const found: Compaction[] = [];
  for (const entry of outcome.journal) {
    if (!entry.type.startsWith("context.")) continue;
    const data = dataOf(entry);
    const open = found.at(-1)?.end === undefined ? found.at(-1) : undefined;
    if ((entry.type === "context.compaction.started") !== (open === undefined))
      fail("compactions", `${entry.type} ${entry.seq} has no place.`);
    if (entry.type === "context.compaction.started")
      found.push({ started: entry.seq, cover: Number(data.events), failures: [] });
    if (entry.type === "context.compaction.failed") open?.failures.push(entry);
    if (open !== undefined && (entry.type === "context.compacted" || data.final === true)) open.end = entry;
  }
  return found;
}

function dataOf({ data }: JournalEntryView): JsonObject {
  return isJsonObject(data) ? data : {};
}

/** Returns the requests of a compaction. */
export function requestsOf(
  { started, end }: Compaction,
  { history, conversation }: Scope,
  timeline: TurnTimeline,
): SideCallRecord[] {
  const [from, to] = [timeline.stepOf(started), end === undefined ? Infinity : timeline.stepOf(end.seq)];
  return history.sideCalls.filter(
    ({ conversation: of, titled, step }) =>
      of === conversation && titled === undefined && step > from && step < to,
  );
}

/** Checks all compactions. `countAt` returns the number of messages of the session before an entry. */
export function checkCompactions(
  scope: Scope,
  timeline: TurnTimeline,
  countAt: (seq: number) => number,
): void {
  const { history, outcome, conversation, fail } = scope;
  const compactions = compactionsOf(scope);
  const summaries = outcome.session.filter(({ covers }) => covers !== undefined);
  const known = new Set<SideCallRecord>();
  let before: Compaction | undefined;
  for (const compaction of compactions) {
    const { started, cover, end } = compaction;
    if (end === undefined) fail("ends", `The compaction that began at ${started} never ends.`);
    const window = windowOf(outcome, countAt(started));
    checkCut(compaction, window, timeline, scope);
    // After a compaction gave up, only a higher cover is tried. After a stop, the remaining attempts continue.
    const isGivenUp =
      before?.end?.type === "context.compaction.failed" && dataOf(before.end).code !== "CANCELLED";
    const last = outcome.session[countAt(before?.started ?? 0) - 1]?.seq ?? -1;
    if (isGivenUp && cover <= last)
      fail("compactions", `A history that was given up is tried again at ${started}.`);
    before = compaction;
    const calls = requestsOf(compaction, scope, timeline);
    for (const call of calls) known.add(call);
    checkAttempts(compaction, calls, scope);
    checkSummaries(calls, upTo(window, cover), scope);
    checkStop(compaction, calls, scope, timeline);
    if (end?.type !== "context.compacted") continue;
    const request = calls.at(-1);
    const stored = summaries.shift()?.covers;
    if (stored !== cover)
      fail("compactions", `The summary of ${end.seq} is stored for ${stored} events, not ${cover}.`);
    if (dataOf(end).events !== cover)
      fail("compactions", `${end.seq} covers ${dataOf(end).events} events, not ${cover}.`);
    const isSummary =
      request?.failure === undefined && (request?.says === "summary" || request?.says === "calls");
    if (!isSummary) fail("compactions", `${end.seq} has a summary that no model gave.`);
  }
  for (const call of history.sideCalls) {
    if (call.conversation === conversation && call.titled === undefined && !known.has(call))
      fail("compactions", `${call.requestId} was made for no compaction.`);
  }
  if (history.toolRuns.some(({ call }) => /^(?:summary|title)/.test(call)))
    fail("compactions", "A tool ran that a model called instead of giving a summary or a title.");
}

/** A cut lies at the beginning of a turn behind the newest summary, and keeps the newest turns within their share. */
function checkCut(
  { started, cover }: Compaction,
  window: Window,
  timeline: TurnTimeline,
  scope: Scope,
): void {
  const { fail } = scope;
  const { summary, turns } = window;
  const at = turns.findIndex(([first]) => first?.seq === cover);
  if (at < 1 || cover <= (summary[0]?.seq ?? -1))
    fail(
      "compactions",
      `The compaction at ${started} covers ${cover} events, which is no whole number of turns.`,
    );
  const budgets = scope.outcome.turns.map(({ input }) => budgetOf(scope, tagIn(input)));
  const tokens = tokensOf([...summary, ...turns.flat()]);
  if (tokens <= ABOVE * Math.min(...budgets))
    fail("compactions", `The compaction at ${started} begins with ${tokens} tokens, of ${budgets}.`);
  // The end of the first turn of a commit decides, whatever else ends in it.
  const commit = timeline.commitOf(started)?.seq;
  const together = timeline.turns.filter(({ ended }) => timeline.commitOf(ended)?.seq === commit).length;
  const kept = turns.slice(at, turns.length - Math.max(0, together - 1));
  if (kept.length > 1 && tokensOf(kept.flat()) > KEPT * Math.max(...budgets))
    fail("compactions", `The compaction at ${started} keeps ${tokensOf(kept.flat())} tokens, of ${budgets}.`);
}

/** Each attempt makes one request at most, after the pause that is due. */
function checkAttempts(
  { started, failures }: Compaction,
  calls: readonly SideCallRecord[],
  scope: Scope,
): void {
  const { outcome, fail } = scope;
  const attempts = failures.map((entry) => Number(dataOf(entry).attempt));
  const most = 1 + failures.filter((entry) => dataOf(entry).final === false).length;
  if (calls.length > most)
    fail("compactions", `${calls.length} requests were made in ${most} attempts from ${started}.`);
  const goesOn = failures.some(
    (entry) => dataOf(entry).final === false && Number(dataOf(entry).attempt) >= ATTEMPTS,
  );
  if (goesOn || attempts.some((attempt) => attempt > ATTEMPTS))
    fail("compactions", `The compaction at ${started} took the attempts ${attempts}.`);
  attempts.forEach((attempt, index) => {
    if (index > 0 && attempt !== (attempts[index - 1] ?? 0) + 1)
      fail("compactions", `The compaction at ${started} took the attempts ${attempts}.`);
  });
  // The end of a pause is a time of the wall clock, and a crash repeats a request at once.
  if (outcome.lives > 1 || firedIn(scope, ({ kind }) => kind === "jump") > 0) return;
  calls.slice(1).forEach((call, index) => {
    const last = calls[index];
    const pause = last?.failure === undefined ? 0 : (PAUSES_MS[(attempts[index] ?? 1) - 1] ?? 0);
    if (last !== undefined && call.at - last.at < pause)
      fail("compactions", `${call.requestId} was made ${call.at - last.at} ms after ${last.requestId}.`);
  });
}

/** A request for a summary contains the events that the summary replaces and the previous summary. */
function checkSummaries(calls: readonly SideCallRecord[], covered: Window, scope: Scope): void {
  const budgets = new Set(scope.outcome.turns.map(({ input }) => budgetOf(scope, tagIn(input))));
  for (const { requestId, before } of calls) {
    const amiss = [...budgets].map((budget) => amissIn(before, covered, budget));
    if (!amiss.includes(undefined))
      scope.fail("context", `${requestId} differs from the events to cover: ${amiss[0]}.`);
  }
}

/** A stop ends the compaction and its request. A stopped conversation begins no compaction. */
function checkStop(
  { started, end }: Compaction,
  calls: readonly SideCallRecord[],
  { outcome, fail }: Scope,
  timeline: TurnTimeline,
): void {
  if (timeline.standingAt(started).isStopped) fail("stopped", `A compaction begins at ${started}.`);
  const stop = timeline.standings.find(
    ({ seq, isStopped, isEnded }) => (isStopped || isEnded) && seq > started,
  );
  if (stop !== undefined && (end?.seq ?? Infinity) > stop.seq)
    fail("stops", `The compaction that began at ${started} continues after the stop at ${stop.seq}.`);
  const commit = end === undefined ? undefined : timeline.commitOf(end.seq);
  if (end === undefined || commit === undefined || dataOf(end).code !== "CANCELLED") return;
  if (stop === undefined || timeline.commitOf(stop.seq)?.seq !== commit.seq)
    fail("stops", `The compaction that began at ${started} ended by a stop without a request.`);
  for (const { requestId, life, over } of calls) {
    if (life !== commit.life) continue;
    const goesOn =
      over === undefined ? life === outcome.lives : over.step > commit.step && over.how === "complete";
    if (goesOn) fail("over", `${requestId} continues after the conversation was stopped.`);
  }
}
