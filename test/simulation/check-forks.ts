/** Checks of forks: their history, their own future, and the erasures in them. Pure. */
import { isDeepStrictEqual } from "node:util";
import type { JournalRow } from "../../src/agents/conversation/core/journal-entry.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import { lastSeq } from "../../src/shared/journal-row.ts";
import type { ForkRecord, History, Outcome } from "./history.ts";
import { tagOf } from "./model-script.ts";
import { planOf } from "./planned-forks.ts";
import { keptOf } from "./replaced-turns.ts";
import { conversationId, numberOf, type Scope, tagOfTurn } from "./scope.ts";

type Fail = Scope["fail"];

/** The history of a source up to the end of a turn. */
interface Cut {
  rows: readonly JournalRow[];
  /** Number of the last journal entry. */
  seq: number;
  /** The turns that were over, and the turns that were not. */
  ended: ReadonlySet<string>;
  open: ReadonlySet<string>;
}

/** Checks a fork. Returns the scope of its own future; `undefined` if the fork does not exist. */
export function checkFork(fork: ForkRecord, history: History, fail: Fail): Scope | undefined {
  const { conversation, answers, left, outcome, erased, requests } = fork;
  const name = `The fork ${conversation}`;
  for (const answer of answers) {
    // A repeated request may end the first.
    if (answer !== "done" && (answer !== "CONFLICT" || requests < 2))
      fail("forked", `${name} was refused: ${answer}.`);
  }
  if (outcome === undefined) {
    if (answers.includes("done")) fail("forked", `${name} was acknowledged, and does not exist.`);
    if (left.length > 0) fail("forked", `${name} does not exist, and left ${left.join(", ")}.`);
    return undefined;
  }
  if (erased?.answer === "done" && left.length > 0)
    fail("erased", `${name} still has "${erased.text}" of ${erased.id}: ${left.join(", ")}.`);
  const source = history.outcomes[fork.of];
  const cut = source && cutAt(fork.turnId, source);
  if (source === undefined || cut === undefined) {
    fail("forked", `${name} has no source with the ended turn ${fork.turnId}.`);
    return undefined;
  }
  const report = (detail: string) => fail("forked", `${name}: ${detail}`);
  const hasAll = outcome.journal.every(({ type }) => type !== "entry.erased");
  if (hasAll) checkHistory({ source, outcome, cut }, report);
  checkRecord(fork, { source, outcome, cut }, report);
  const turns = outcome.turns.filter(({ id }) => !cut.ended.has(id));
  checkOwn(fork, turns, history, report);
  if (hasAll) checkInputs(fork, turns, report);
  const messages = outcome.messages.filter(({ turnId }) => !cut.ended.has(turnId));
  const journal = outcome.journal.filter(({ seq }) => seq > cut.seq);
  return { history, conversation, fail, outcome: { ...outcome, turns, messages, journal } };
}

function cutAt(turnId: string, { journal, rows }: Outcome): Cut | undefined {
  const isEnd = ({ type }: { type: string }) => type === "turn.completed" || type === "turn.failed";
  const end = journal.find((entry) => entry.turnId === turnId && isEnd(entry));
  const last = rows.findLast(({ seq }) => seq <= (end?.seq ?? 0));
  if (last === undefined) return undefined;
  const seq = lastSeq(last);
  const before = journal.filter((entry) => entry.seq <= seq);
  const turns = (entries: typeof before) => new Set(entries.flatMap((entry) => entry.turnId ?? []));
  const ended = turns(before.filter(isEnd));
  const open = new Set([...turns(before)].filter((id) => !ended.has(id)));
  return { rows: rows.filter((row) => row.seq <= seq), seq, ended, open };
}

interface Forked {
  source: Outcome;
  outcome: Outcome;
  cut: Cut;
}

/** The history of a fork equals the history of its source up to the turn. */
function checkHistory({ source, outcome, cut }: Forked, report: (detail: string) => void): void {
  const open = new Set([...cut.open].map(numberOf));
  const due = cut.rows.map(({ entries, ...row }) => ({
    ...row,
    // Of turns that were not over, only the places of the entries are left.
    entries: entries.map(({ data, ...entry }) =>
      entry.turn !== undefined && open.has(entry.turn)
        ? entry
        : { ...entry, ...(data !== undefined && { data }) },
    ),
  }));
  const rows = outcome.rows.slice(0, due.length);
  if (!isDeepStrictEqual(plain(rows), plain(due)))
    report(`its journal begins ${JSON.stringify(rows)}, the source's ${JSON.stringify(due)}.`);
  const forked = outcome.rows[due.length];
  const types = forked?.entries.map(({ type }) => type).join();
  // A title that a model wrote after the cut has an entry of its own.
  const isForked = types === "conversation.forked" || types === "conversation.updated,conversation.forked";
  if (forked?.seq !== cut.seq + 1 || !isForked)
    report(`after entry ${cut.seq} it has ${JSON.stringify(forked)}.`);
  for (const id of cut.ended) {
    const [one, other] = [source, outcome].map(({ turns }) => turns.find((turn) => turn.id === id));
    if (one === undefined || other === undefined || !isDeepStrictEqual(keptOf(other), keptOf(one)))
      report(`${id} was ${JSON.stringify(one)}, and is ${JSON.stringify(other)}.`);
    if (other?.replacedBy !== undefined && outcome.turns.every((turn) => turn.id !== other.replacedBy))
      report(`${id} says that ${other.replacedBy} replaced it.`);
  }
  const messagesOf = ({ messages }: Outcome) => messages.filter(({ turnId }) => cut.ended.has(turnId));
  if (!isDeepStrictEqual(messagesOf(outcome), messagesOf(source)))
    report(`its messages are ${JSON.stringify(messagesOf(outcome))}.`);
  const ended = new Set([...cut.ended].map(numberOf));
  const sessionOf = ({ session }: Outcome) =>
    session.filter(({ turn, beginsTurn, covers }) =>
      turn === undefined ? covers === undefined && beginsTurn : ended.has(turn),
    );
  if (!isDeepStrictEqual(sessionOf(outcome), sessionOf(source)))
    report(`its session is ${JSON.stringify(sessionOf(outcome))}, of ${JSON.stringify(sessionOf(source))}.`);
}

function plain(rows: readonly object[]): unknown {
  return JSON.parse(JSON.stringify(rows));
}

/** A fork names its origin, and has the budget of its source with nothing spent before its own turns. */
function checkRecord(
  { of, turnId }: ForkRecord,
  { source, outcome, cut }: Forked,
  report: (detail: string) => void,
): void {
  const { record, budget, spent } = outcome.stored;
  const { omitted = 0, ...origin } = record.forkedFrom ?? {};
  if (!isDeepStrictEqual(origin, { conversationId: conversationId(of), turnId }) || omitted !== cut.open.size)
    report(`it is from ${JSON.stringify(record.forkedFrom)}, without ${cut.open.size} turns.`);
  if (!isDeepStrictEqual(budget, source.stored.budget))
    report(`its budget is ${JSON.stringify(budget)}, of ${JSON.stringify(source.stored.budget)}.`);
  const hasOwn = outcome.turns.some(({ id }) => !cut.ended.has(id));
  if (!hasOwn && Object.values(spent).some((amount) => amount !== 0))
    report(`it has no turn, and has spent ${JSON.stringify(spent)}.`);
}

/** A fork has turns of its own messages only. It runs nothing of its history, and its source gets nothing from it. */
function checkOwn(
  { conversation }: ForkRecord,
  turns: readonly TurnView[],
  history: History,
  report: (detail: string) => void,
): void {
  const { outcomes, forks, plan } = history;
  const ids = new Set(turns.map(({ id }) => id));
  const tag = tagOf(conversation, 0, 0);
  const others = [
    ...outcomes,
    ...forks.flatMap((fork) => (fork.conversation === conversation ? [] : (fork.outcome ?? []))),
  ];
  for (const other of others)
    for (const { id } of other.turns) if (ids.has(id)) report(`${id} is in another conversation too.`);
  const asked = history.modelCalls.filter((call) => call.conversation === conversation);
  for (const call of asked) if (call.tag !== tag) report(`it asks the model for ${call.tag}.`);
  const dispatched = history.dispatches.filter((one) => one.conversation === conversation);
  const numbers = new Set(turns.map(({ id }) => numberOf(id)));
  for (const id of dispatched.flatMap(({ operationIds }) => operationIds))
    if (!numbers.has(numberOf(id))) report(`it runs ${id} again.`);
  if (planOf(plan, conversation)?.memory !== undefined) return;
  const spent = turns.reduce((sum, turn) => sum + turn.spent.modelCalls, 0);
  if (forks.find((fork) => fork.conversation === conversation)?.outcome?.stored.spent.modelCalls !== spent)
    report(`its turns made ${spent} model calls, and its ledger has another number.`);
}

/** All own turns of a fork are of its own message. */
function checkInputs(
  { conversation }: ForkRecord,
  turns: readonly TurnView[],
  report: (detail: string) => void,
): void {
  for (const turn of turns)
    if (tagOfTurn(turn) !== tagOf(conversation, 0, 0)) report(`it has the turn of ${tagOfTurn(turn)}.`);
}
