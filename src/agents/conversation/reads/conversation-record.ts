/**
 * The conversation on record: projections of its journal.
 *
 * PROJ-5  A read folds at most `MAX_FOLDED` entries, after the entries that earlier reads have folded. If entries are left, it fails with
 *         `UNAVAILABLE`, retriable, and the next read continues.
 */
import { z } from "zod";
import {
  type CanonicalEvent,
  PROJECTIONS,
  type Projection,
  type ProjectionOptions,
} from "../../../protocol/projection-schemas.ts";
import { defined } from "../../../shared/defined.ts";
import { notFound, unavailable } from "../../../shared/errors.ts";
import { listIds } from "../../../shared/known-ids.ts";
import { pageOptionsSchema } from "../../../shared/page.ts";
import { validate } from "../../../shared/validation.ts";
import { canonicalEvents } from "../core/record/canonical.ts";
import { newestPlaces } from "../core/record/context.ts";
import { type Fold, foldEntries, NEW_FOLD, type Numbered } from "../core/record/fold.ts";
import type { ConversationState } from "../core/state.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";
import { entriesAround, journalEntries } from "./journal-entries.ts";
import { base, type ProjectionInput, timelineEntry, WHOLE, type WholeInput } from "./projections.ts";
import { newRecentTurns, requireTurn, TurnReader } from "./turn-reader.ts";

/** Entries that a read folds, and newest entries that a context is made from. */
const MAX_FOLDED = 50_000;

/** Entries that a page of the timeline examines. */
const MAX_EXAMINED = 5_000;

/** The cursor is the number of an entry. In the canonical timeline it may have the number of a piece. */
const pageSchema = pageOptionsSchema((cursor) => /^\d{1,15}(?:\.\d{1,6})?$/.test(cursor)).extend({
  turn: z.string().optional(),
});

type PageRange = ReturnType<typeof pageSchema.parse>;

export class ConversationRecord {
  /** The fold of the entries that were read. */
  #fold: Fold = NEW_FOLD;

  constructor(
    private readonly store: Pick<ConversationDatabase, "journal" | "turn">,
    private readonly maxFolded = MAX_FOLDED,
  ) {}

  /** Returns a projection by its name. Throws `NOT_FOUND` for an unknown name. */
  projection(state: ConversationState, name: string, options: ProjectionOptions = {}): Projection {
    const known = PROJECTIONS.find((candidate) => candidate === name);
    if (known === undefined) {
      const names = listIds(name, PROJECTIONS);
      throw notFound(`There is no projection "${name}". Projections are: ${names}.`);
    }
    const page = validate(pageSchema, options);
    const reader = new TurnReader(state, this.store, newRecentTurns());
    const turnOf = (n: number) => (reader.admits(n) ? reader.take(n) : undefined);
    const { record } = state;
    const input = { record, fold: { ...NEW_FOLD, seq: state.seq }, turnOf };
    if (known === "timeline") return this.#timeline(input, reader, page);
    if (known === "canonical_timeline") return this.#canonicalTimeline(input, reader, page);
    const fold = this.#folded(state.seq);
    const newest: WholeInput["newest"] = (isShown) => {
      const entries = journalEntries(this.store.journal, "desc", undefined, state.seq);
      return newestPlaces(
        takeWhile(entries, (seq) => seq > state.seq - this.maxFolded),
        fold,
        isShown,
      );
    };
    return WHOLE[known]({ record, fold, turnOf, newest });
  }

  #timeline(input: ProjectionInput, reader: TurnReader, page: PageRange): Projection {
    const { limit, order, cursor } = page;
    const { journal } = this.store;
    const { seq } = input.fold;
    const after = cursor === undefined ? undefined : Number.parseInt(cursor, 10);
    const only = page.turn === undefined ? undefined : requireTurn(page.turn, reader.take);
    const found = entriesAround(journal, only, order, after, seq);
    const entries: ReturnType<typeof timelineEntry>[] = [];
    const shown = base("timeline", input);
    let last: string | undefined;
    let examined = 0;
    for (const numbered of found) {
      const { turn } = numbered.entry;
      const isShown = only === undefined || turn === only.n;
      const isAdmitted = turn === undefined || entries.length === 0 || reader.admits(turn);
      if (examined === MAX_EXAMINED || (isShown && (entries.length === limit || !isAdmitted)))
        return { ...shown, entries, ...defined({ nextCursor: last }) };
      if (isShown) entries.push(timelineEntry(numbered, input));
      last = String(numbered.seq);
      examined += 1;
    }
    return { ...shown, entries };
  }

  /** The cursor is the id of the last event. A page may end between two pieces of a message. */
  #canonicalTimeline(
    input: ProjectionInput,
    reader: TurnReader,
    { limit, order, cursor }: PageRange,
  ): Projection {
    const step = order === "asc" ? 1 : -1;
    const from = cursor === undefined ? undefined : Number.parseInt(cursor, 10) - step;
    const events: CanonicalEvent[] = [];
    const shown = base("canonical_timeline", input);
    for (const numbered of journalEntries(this.store.journal, order, from, input.fold.seq)) {
      const { turn } = numbered.entry;
      const last = events.at(-1);
      if (turn !== undefined && !reader.admits(turn) && last !== undefined)
        return { ...shown, events, nextCursor: last.id };
      const all = canonicalEvents(numbered, input);
      if (step === -1) all.reverse();
      const left = all.slice(all.findIndex(({ id }) => id === cursor) + 1);
      const room = limit - events.length;
      const more = left.length > room;
      events.push(...left.slice(0, room));
      const newest = events.at(-1);
      if (more && newest !== undefined) return { ...shown, events, nextCursor: newest.id };
    }
    return { ...shown, events };
  }

  #folded(seq: number): Fold {
    const from = this.#fold.seq > seq ? NEW_FOLD : this.#fold;
    const until = Math.min(seq, from.seq + this.maxFolded);
    const tail = journalEntries(this.store.journal, "asc", from.seq === 0 ? undefined : from.seq, until);
    this.#fold = foldEntries(
      from,
      takeWhile(tail, (next) => next <= until),
    );
    if (this.#fold.seq >= seq) return this.#fold;
    throw unavailable(
      `The projection has read ${this.#fold.seq} of ${seq} entries of the journal. Repeat the request to continue.`,
      { retriable: true },
    );
  }
}

/** Yields the entries before the first with a number that `isIn` refuses. */
function* takeWhile(entries: Iterable<Numbered>, isIn: (seq: number) => boolean): Generator<Numbered> {
  for (const entry of entries) {
    if (!isIn(entry.seq)) return;
    yield entry;
  }
}
