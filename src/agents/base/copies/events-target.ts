/**
 * The copy of a journal in the log of its tenant.
 *
 * LOGGED-2  An erasure replaces all entries that the log has of the actor before it adds its own entry. A failure repeats both.
 */
import {
  type LoggedJournal,
  MAX_LOGGED_DATA,
  type Publication,
  type PublishedEntry,
} from "../../../protocol/event-log.ts";
import { type JournalRowOf, lastSeq } from "../../../shared/journal-row.ts";
import type { EventLogWriter } from "../lookup/event-logs.ts";
import type { CopiedActor, JournalTarget } from "./journal-copy.ts";

export interface LoggedActor<Entry> {
  runtime(): CopiedActor<JournalRowOf<Entry>>;
  /** Returns `null` if there is no log. */
  events(): EventLogWriter | null;
  address(): { tenant: string; id: string };
  /** Returns the members that the publications of the actor share. */
  head(): LoggedJournal & Omit<Publication, "from" | "entries">;
  entries(): (entry: Entry, seq: number, at: number) => PublishedEntry;
  /** Reports whether an entry has changed earlier entries. */
  isErasure(entry: Entry): boolean;
}

/** Length of the entries and texts in one publication, unless one entry has more. */
const MAX_LENGTH = 128 * 1024;
/** Most messages of a publication. */
const MAX_TEXTS = 64;
/** Rows of the journal in one read. */
const SLICE = 64;

export class EventsTarget<Entry> implements JournalTarget<EventLogWriter, JournalRowOf<Entry>> {
  constructor(private readonly actor: LoggedActor<Entry>) {}

  readonly find = () => this.actor.events();

  async published(log: EventLogWriter): Promise<number> {
    const { tenant, id } = this.actor.address();
    return log.published(tenant, id);
  }

  async put(log: EventLogWriter, rows: readonly JournalRowOf<Entry>[], upTo: number): Promise<number> {
    const runtime = this.actor.runtime();
    const { tenant } = this.actor.address();
    const isErasing = rows.some(({ entries }) => entries.some((entry) => this.actor.isErasure(entry)));
    if (isErasing) await this.#replace(log, upTo);
    // The log refuses publications from before the replacement.
    const publications = this.#publications(rows, upTo + 1);
    let published = upTo;
    for (const publication of publications) {
      if (!runtime.exists) return published;
      const expected = publication.from + publication.entries.length - 1;
      published = await log.publish(tenant, publication);
      if (published !== expected) break;
    }
    if (published === upTo) throw new Error(`The log of events has entry ${upTo} and takes no other.`);
    return published;
  }

  /** Replaces the entries up to a number by their present state. */
  async #replace(log: EventLogWriter, upTo: number): Promise<void> {
    const runtime = this.actor.runtime();
    // The log notes the replacement, so it refuses a first publication that arrives late.
    if (upTo === 0)
      await log.replace(this.actor.address().tenant, { ...this.actor.head(), from: 1, entries: [] });
    for (let from = 1; from <= upTo; ) {
      if (!runtime.exists) return;
      const rows = runtime.store.journal.forward(from, SLICE);
      const last = rows.at(-1);
      if (last === undefined) return;
      for (const publication of this.#publications(rows, from))
        if (runtime.exists) await log.replace(this.actor.address().tenant, publication);
      from = lastSeq(last) + 1;
    }
  }

  #publications(rows: readonly JournalRowOf<Entry>[], from: number): Publication[] {
    const head = this.actor.head();
    const publishedEntry = this.actor.entries();
    const publications: (Publication & { entries: PublishedEntry[] })[] = [];
    let [length, texts] = [0, 0];
    for (const { seq, at, entries } of rows) {
      for (const [index, entry] of entries.entries()) {
        if (seq + index < from) continue;
        const published = publishedEntry(entry, seq + index, at);
        const size = JSON.stringify(published).length;
        const count = published.texts?.length ?? 0;
        length += size;
        texts += count;
        const last = publications.at(-1);
        if (last !== undefined && length <= MAX_LENGTH && texts <= MAX_TEXTS) {
          last.entries.push(published);
          continue;
        }
        [length, texts] = [size, count];
        publications.push({ ...head, from: seq + index, entries: [published] });
      }
    }
    return publications;
  }
}

/** A code of errors. Other texts could be words of people (LOGGED-3). */
const CODE = /^[A-Z][A-Z0-9_]{0,63}$/;

export function loggedCode(code: string | undefined): Pick<PublishedEntry, "code"> {
  return code !== undefined && CODE.test(code) ? { code } : {};
}

export function loggedData(data: PublishedEntry["data"]): Pick<PublishedEntry, "data" | "dataOmitted"> {
  if (data === undefined) return {};
  return JSON.stringify(data).length <= MAX_LOGGED_DATA ? { data } : { dataOmitted: true };
}
