/**
 * Reads chains of causes and lists of incidents from the journal.
 *
 * RECORDLIST-1  A chain is read from at most `MAX_CHAINED` entries on each side of its first entry. If it may continue there, it is `partial`.
 * RECORDLIST-2  A page of incidents examines at most `MAX_EXAMINED` entries. So a page may be empty and have a `nextCursor`.
 */
import { z } from "zod";
import {
  CAUSE_DIRECTIONS,
  type CauseChain,
  type CauseOptions,
  type Incident,
  type IncidentOptions,
} from "../../../protocol/record-schemas.ts";
import { defined } from "../../../shared/defined.ts";
import { notFound } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { type Page, pageOf, pageOptionsSchema } from "../../../shared/page.ts";
import { validate } from "../../../shared/validation.ts";
import type { TurnLookup } from "../core/frames.ts";
import { chainFrom } from "../core/record/causes.ts";
import type { Numbered } from "../core/record/fold.ts";
import { incidentOf, mayBeIncident } from "../core/record/incidents.ts";
import type { ConversationIdentity, ConversationState } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";
import { entriesAround, journalEntries } from "./journal-entries.ts";
import { timelineEntry } from "./projections.ts";
import { newRecentTurns, requireTurn, TurnReader } from "./turn-reader.ts";

type RecordStore = Pick<ConversationDatabase, "journal" | "turn">;

/** Entries of the journal that a chain is read from, on each side of its first entry. */
const MAX_CHAINED = 10_000;
/** Entries of the journal that a page of incidents examines. */
const MAX_EXAMINED = 5_000;

/** The cursors are numbers of entries. */
const pageSchema = pageOptionsSchema((cursor) => /^\d{1,15}$/.test(cursor));
const causeSchema = pageSchema.omit({ order: true }).extend({
  direction: z.enum(CAUSE_DIRECTIONS).default("backward"),
});
const incidentSchema = pageSchema.extend({
  correlation: z.string().optional(),
  turn: z.string().optional(),
});

/** Returns the chain of causes from entry `seq`. Throws `NOT_FOUND` if the journal has no such entry. */
export function readCauses(
  state: ConversationState,
  store: RecordStore,
  seq: number,
  options: CauseOptions = {},
  maxChained = MAX_CHAINED,
): CauseChain {
  const { limit, cursor, direction } = validate(causeSchema, options);
  const [start] =
    seq < 1 ? [] : journalEntries(store.journal, "asc", undefined, Math.min(seq, state.seq), seq);
  if (start === undefined)
    throw notFound(`The journal has no entry ${seq}. Its entries have the numbers 1 to ${state.seq}.`);
  const { record } = state;
  const reader = new TurnReader(state, store, newRecentTurns());
  const turn = start.entry.turn === undefined ? undefined : reader.take(start.entry.turn);
  const first = Math.max(turn?.firstSeq ?? seq, seq - maxChained);
  const last = direction === "backward" ? seq : Math.min(state.seq, seq + maxChained);
  const entries = turn === undefined ? [start] : entriesOf(store, turn, first, last);
  const isCut = turn !== undefined && first > turn.firstSeq;
  const isPartial = direction === "backward" ? isCut : turn !== undefined && last < state.seq;
  const chain = chainFrom(entries, seq, direction, isCut);
  const after = cursor === undefined ? -1 : chain.findIndex((entry) => entry.seq === Number(cursor));
  const { items, nextCursor } = pageOf(
    chain.slice(after + 1, after + 2 + limit),
    limit,
    ({ cause, ...numbered }) => {
      const view = timelineEntry(numbered, { record, turnOf: reader.take });
      return { ...view, ...defined({ cause }) };
    },
    (entry) => String(entry.seq),
  );
  return { entries: items, ...defined({ nextCursor }), ...(isPartial && { partial: true }) };
}

function entriesOf({ journal }: RecordStore, { n }: Turn, first: number, last: number): Numbered[] {
  const entries: Numbered[] = [];
  for (const numbered of journalEntries(journal, "asc", undefined, last, first))
    if (numbered.entry.turn === n) entries.push(numbered);
  return entries;
}

export function readIncidents(
  state: ConversationState,
  store: RecordStore,
  options: IncidentOptions = {},
  maxExamined = MAX_EXAMINED,
): Page<Incident> {
  const { limit, order, cursor, ...filter } = validate(incidentSchema, options);
  const reader = new TurnReader(state, store, newRecentTurns());
  const items: Incident[] = [];
  let position = cursor;
  let examined = 0;
  const full = () => ({ items, ...defined({ nextCursor: position }) });
  const after = cursor === undefined ? undefined : Number(cursor);
  const only = filter.turn === undefined ? undefined : requireTurn(filter.turn, reader.take);
  const entries = entriesAround(store.journal, only, order, after, state.seq);
  for (const numbered of entries) {
    if (examined === maxExamined) return full();
    examined += 1;
    const { type, turn } = numbered.entry;
    if (mayBeIncident(type)) {
      if (turn !== undefined && !reader.admits(turn)) return full();
      const found = incidentAt(numbered, state, reader.take);
      if (found !== null && fits(found, filter, state.record)) {
        if (items.length === limit) return full();
        items.push(found);
      }
    }
    position = String(numbered.seq);
  }
  return { items };
}

function incidentAt(numbered: Numbered, { record }: ConversationState, turnOf: TurnLookup): Incident | null {
  const view = timelineEntry(numbered, { record, turnOf });
  // SAFETY: the data of a view are plain data.
  const incident = incidentOf(numbered.entry.type, view.data as Json | undefined);
  return incident && { ...view, ...incident };
}

/** A correlation id has two forms: of its signal, and `{conversationId}:{turnId}`. */
function fits(
  { turnId = "", correlationId }: Incident,
  { correlation, turn }: Pick<z.output<typeof incidentSchema>, "correlation" | "turn">,
  { id }: ConversationIdentity,
): boolean {
  if (turn !== undefined && turnId !== turn) return false;
  return correlation === undefined || correlation === correlationId || correlation === `${id}:${turnId}`;
}
