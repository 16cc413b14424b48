/**
 * The fold of a journal: what the entries up to a number say together. Pure. Projections are made from it.
 *
 * PROJ-1  `foldEntries(foldEntries(NEW_FOLD, some), others)` equals `foldEntries(NEW_FOLD, [...some, ...others])`. The distribution of entries
 *         over rows does not matter.
 * PROJ-2  A fold has numbers and types of entries, and no content. So an erasure does not change it.
 * PROJ-7  A new fork is idle. It has none of the turns that were active.
 */
import { parseItemId } from "../../../../protocol/ids.ts";
import type { EntryType } from "../../../../protocol/journal.ts";
import { isJsonObject, type Json } from "../../../../shared/json.ts";
import type { JournalEntry } from "../journal-entry.ts";

/** An entry with its number and its time. */
export interface Numbered {
  readonly entry: JournalEntry;
  readonly seq: number;
  readonly at: number;
}

/** An entry of an item of a turn, without its content. */
export interface Place {
  readonly type: EntryType;
  readonly turn: number;
  readonly item: number;
  readonly seq: number;
  readonly at: number;
}

export interface Fold {
  /** The number of the newest entry; 0 before the first. */
  readonly seq: number;
  readonly lastType: EntryType | null;
  readonly counts: Readonly<Partial<Record<EntryType, number>>>;
  readonly status: "active" | "waiting" | "completed" | "failed";
  readonly isStopped: boolean;
  /** Messages that wait to begin their turns. */
  readonly queued: number;
  /** The numbers of active turns, in the order of their beginnings. */
  readonly active: readonly number[];
  /** The requests of calls without a result. */
  readonly pending: readonly Place[];
  /** The newest entries of sub-agents that work. */
  readonly subAgents: readonly Place[];
  /** The last entries of sub-agents that have stopped, the newest `MAX_STOPPED`. */
  readonly stopped: readonly Place[];
  /** The number of sub-agents that have stopped. */
  readonly stoppedCount: number;
  /** Ranges of turns that the contexts leave out, each from its first number to its last. */
  readonly hidden: readonly (readonly [first: number, last: number])[];
}

/** Stopped sub-agents in a `subagent_status`. */
const MAX_STOPPED = 100;

/** The members of a fold without work. */
const IDLE = {
  status: "active",
  isStopped: false,
  queued: 0,
  active: [],
  pending: [],
  subAgents: [],
} as const;

export const NEW_FOLD: Fold = {
  ...IDLE,
  seq: 0,
  lastType: null,
  counts: {},
  stopped: [],
  stoppedCount: 0,
  hidden: [],
};

/** Returns the fold with further entries. */
export function foldEntries(fold: Fold, entries: Iterable<Numbered>): Fold {
  const counts: Partial<Record<EntryType, number>> = { ...fold.counts };
  let next = fold;
  for (const numbered of entries) {
    const { type } = numbered.entry;
    counts[type] = (counts[type] ?? 0) + 1;
    next = { ...next, ...changeOf(next, numbered), seq: numbered.seq, lastType: type };
  }
  return next === fold ? fold : { ...next, counts };
}

function changeOf(fold: Fold, { entry, seq, at }: Numbered): Partial<Fold> {
  const { type, turn: n, item = 0, data } = entry;
  const of = n === undefined ? {} : ofTurn(fold, { type, turn: n, item, seq, at }, data);
  switch (type) {
    case "conversation.waiting":
      return { status: "waiting" };
    case "conversation.active":
      return { status: "active" };
    case "conversation.ended":
      return { status: member(data, "status") === "failed" ? "failed" : "completed" };
    case "conversation.cancelled":
      return { isStopped: true };
    case "conversation.resumed":
      return { isStopped: false };
    case "conversation.forked":
      return forked(fold);
    case "conversation.queue.received":
      return { queued: fold.queued + numberOf(member(data, "count")) };
    case "conversation.queue.drained":
      return { queued: numberOf(member(data, "left")) };
    default:
      return of;
  }
}

function ofTurn(fold: Fold, place: Place, data: Json | undefined): Partial<Fold> {
  const { type, turn: n } = place;
  switch (type) {
    case "turn.started":
      return { ...withReplaced(fold, n, data), active: [...fold.active, n] };
    case "turn.completed":
    case "turn.failed":
      return { active: fold.active.filter((turn) => turn !== n) };
    case "tool.requested":
      return { pending: [...fold.pending, place] };
    case "tool.completed":
    case "tool.failed":
    case "tool.cancelled":
      return { pending: without(fold.pending, place) };
    case "subagent.requested":
    case "subagent.started":
      return begun(fold, place);
    case "subagent.stopped":
      return {
        subAgents: without(fold.subAgents, place),
        stopped: [...without(fold.stopped, place), place].slice(-MAX_STOPPED),
        stoppedCount: fold.stoppedCount + 1,
      };
    default:
      return {};
  }
}

/** A turn that replaces an earlier turn hides it, and the turns after it (REPLACE-1). */
function withReplaced({ hidden }: Fold, n: number, data: Json | undefined): Partial<Fold> {
  const replaced = member(data, "regenerates") ?? member(data, "edits");
  const first = typeof replaced === "string" ? parseItemId(replaced)?.n : undefined;
  if (first === undefined) return {};
  const begin = hidden.find(([, last]) => last === first - 1)?.[0] ?? first;
  return { hidden: [...hidden.filter(([from]) => from < begin), [begin, n - 1]] };
}

/** A fork is open, and the turns that were active are left out (FORK-1). */
function forked({ active, hidden }: Fold): Partial<Fold> {
  return { ...IDLE, hidden: [...hidden, ...active.map((n) => [n, n] as const)] };
}

/** A sub-agent that starts without a request is the next attempt of a sub-agent that has stopped. */
function begun(fold: Fold, place: Place): Partial<Fold> {
  const others = without(fold.subAgents, place);
  const isAgain = place.type === "subagent.started" && others.length === fold.subAgents.length;
  const subAgents = [...others, place];
  if (!isAgain) return { subAgents };
  return { subAgents, stopped: without(fold.stopped, place), stoppedCount: fold.stoppedCount - 1 };
}

function without(places: readonly Place[], { turn, item }: Place): readonly Place[] {
  return places.filter((place) => place.turn !== turn || place.item !== item);
}

function member(data: Json | undefined, name: string): Json | undefined {
  return isJsonObject(data) ? data[name] : undefined;
}

function numberOf(value: Json | undefined): number {
  return typeof value === "number" ? value : 0;
}
