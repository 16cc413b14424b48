/** Checks of titles by a model: the start of the call, its requests, its end, and the title. Pure. */

import { modelTitle } from "../../src/agents/conversation/core/titles.ts";
import { finalReply } from "../../src/agents/conversation/core/turn-operations.ts";
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import { isJsonObject, type JsonObject } from "../../src/shared/json.ts";
import { numberOf, type Scope, tagIn } from "./scope.ts";
import { TurnTimeline } from "./turn-times.ts";

const ATTEMPTS = 3;

/** A call for a title, by its journal entries. */
export interface TitlingEntries {
  started: JournalEntryView;
  failures: JournalEntryView[];
  /** The entry that ended it; absent while it runs. */
  end?: JournalEntryView;
}

/** Returns the calls for titles of a conversation. */
export function titlingsOf({ outcome }: Pick<Scope, "outcome">): TitlingEntries[] {
  const found: TitlingEntries[] = [];
  for (const entry of outcome.journal) {
    const data = dataOf(entry);
    const last = found.at(-1);
    if (entry.type === "conversation.title.started") found.push({ started: entry, failures: [] });
    if (entry.type === "conversation.title.failed") last?.failures.push(entry);
    const isEnd = entry.type === "conversation.title.failed" ? data.final === true : givesTitle(entry);
    if (isEnd && last !== undefined) last.end ??= entry;
  }
  return found;
}

export function checkTitles(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const { titles } = history.plan.conversations[conversation] ?? {};
  const calls = history.sideCalls.filter(
    (call) => call.conversation === conversation && call.titled !== undefined,
  );
  const timeline = new TurnTimeline(scope);
  const [titling, ...more] = titlingsOf(scope);
  if (more.length > 0) fail("titles", `${more.length + 1} calls for a title began.`);
  const renamed = outcome.journal.find((entry) => setsTitle(entry) && dataOf(entry).automatic !== true);
  const first = timeline.turns
    .filter(({ turn }) => turn.status === "completed" && isAnswered(scope, turn.id))
    .sort((one, other) => one.ended - other.ended)[0];
  if (titling === undefined) {
    if (calls.length > 0) fail("titles", "A title was requested without a call that began.");
    const isDue = titles !== undefined && first !== undefined && !(renamed && renamed.seq < first.ended);
    if (isDue) fail("titles", `${first.turn.id} begins no call for a title.`);
    return;
  }
  const { started, failures, end } = titling;
  const of = timeline.turns.find(({ turn }) => turn.id === dataOf(started).turnId);
  const isSame = of !== undefined && timeline.commitOf(of.ended)?.seq === timeline.commitOf(started.seq)?.seq;
  if (!isSame || (first !== undefined && first.ended < of.ended))
    fail("titles", `The call at ${started.seq} does not begin with the end of the first answered turn.`);
  if (end === undefined) {
    fail("titles", `The call at ${started.seq} never ends.`);
    return;
  }
  const retries = failures.filter((entry) => dataOf(entry).final !== true).length;
  if (calls.length > Math.min(ATTEMPTS, 1 + retries) || retries >= ATTEMPTS)
    fail("titles", `${calls.length} requests were made in ${1 + retries} attempts.`);
  for (const { requestId, titled = "", step } of calls) {
    if (of !== undefined && tagIn(titled) !== tagIn(of.turn.input))
      fail("titles", `${requestId} is about ${tagIn(titled)}, not about ${tagIn(of.turn.input)}.`);
    if (step < timeline.stepOf(started.seq) || step > timeline.stepOf(end.seq))
      fail("titles", `${requestId} was made before the call began or after it ended.`);
  }
  const stop = timeline.standings.find(
    ({ seq, isStopped, isEnded }) => (isStopped || isEnded) && seq > started.seq,
  );
  const last = Math.min(stop?.seq ?? Infinity, renamed && renamed.seq > started.seq ? renamed.seq : Infinity);
  if (end.seq > last) fail("titles", `The call at ${started.seq} continues after ${last}.`);
  if (dataOf(end).code === "CANCELLED" && timeline.commitOf(end.seq)?.seq !== timeline.commitOf(last)?.seq)
    fail("titles", `The call at ${started.seq} is cancelled without a stop or a new title.`);
  checkTitle(scope, titling, calls.at(-1)?.text);
}

/** A title is the reply to the last request. A person's title is later than all others. */
function checkTitle({ outcome, fail }: Scope, { end }: TitlingEntries, text = ""): void {
  const { title } = outcome.stored.record;
  if (end !== undefined && givesTitle(end) && dataOf(end).title !== modelTitle(text))
    fail(
      "titles",
      `The title is ${JSON.stringify(dataOf(end).title)}, the model wrote ${JSON.stringify(text)}.`,
    );
  const newest = outcome.journal.findLast(setsTitle);
  if (newest !== undefined && title !== dataOf(newest).title)
    fail("titles", `The title is ${JSON.stringify(title)}, not ${JSON.stringify(dataOf(newest).title)}.`);
  if (outcome.stored.record.automaticTitle) fail("titles", "The title may be written again.");
}

function isAnswered({ outcome }: Scope, id: string): boolean {
  const turn = outcome.contents.get(numberOf(id));
  return turn !== undefined && (finalReply(turn)?.text.trim() ?? "") !== "";
}

function setsTitle(entry: JournalEntryView): boolean {
  return entry.type === "conversation.updated" && "title" in dataOf(entry);
}

function givesTitle(entry: JournalEntryView): boolean {
  const { automatic, by } = dataOf(entry);
  return setsTitle(entry) && automatic === true && isJsonObject(by) && by.type === "agent";
}

function dataOf({ data }: JournalEntryView): JsonObject {
  return isJsonObject(data) ? data : {};
}
