/**
 * Writes of a log.
 *
 * EVLOG-1  The log has each published entry of a conversation or a run once, in the order of its journal. A repeated or late publication
 *        changes nothing. A publication that was made before the newest replacement changes nothing. Numbers of the log ascend, and are never
 *        used again.
 * EVLOG-2  A batch of entries costs one row, a row for each label, and the rows of the index of words. Types of nearly every turn or run have
 *        no label.
 * EVLOG-3  Replaced, removed and erased texts leave the segments of the index in the same transaction (`secure-delete`).
 * EVLOG-4  A search uses the readers of the newest publication. It checks each message that it finds. The index gets new
 *        readers in slices, so they find earlier messages a moment later.
 */
import { TOKENIZER } from "../../memory/corpus/full-text.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import {
  type LoggedType,
  loggedId,
  type Publication,
  type PublishedEntry,
  type PublishedText,
} from "../../protocol/event-log.ts";
import { defined } from "../../shared/defined.ts";
import { VersionedRecord } from "../base/storage/schema-upgrade.ts";
import {
  ADD_BATCH,
  ADD_LABELS,
  BATCHES_OF,
  type BatchRow,
  BLANK_BATCH,
  createIndex,
  INDEX_WORDS,
  IS_SECURE,
  LOG_KEY,
  LOG_SCHEMA,
  NEWEST,
  NEWEST_OF,
  NEXT_OF,
  READERS_KEY,
  REMOVE_BATCH,
  REMOVE_LABELS,
  REPLACE_CONTENT,
  REPLACED_KEY,
  SECURE_DELETE,
  TABLES,
  UNINDEX_WORDS,
} from "./log-tables.ts";
import { LATE, wordsOfMessage, wordsOfReaders } from "./words.ts";

/** Most messages of a batch. */
export const MAX_BATCH_TEXTS = 64;
/** A batch with an entry that is older at its arrival is late, in milliseconds. */
export const LATE_MS = 3_600_000;
/** Times of entries that are further ahead do not count for the time of a batch, in milliseconds. Otherwise all later batches would be late. */
const MAX_AHEAD_MS = LATE_MS / 2;
/** Batches of one step of a removal, and of one step of `indexReaders`. */
const SLICE = 100;

/** Types of entries that nearly every turn or run has. */
const COMMON: ReadonlySet<string> = new Set<LoggedType>([
  "turn.started",
  "turn.completed",
  "turn.finalized",
  "message.user",
  "message.started",
  "message.completed",
  "workflow.started",
  "workflow.completed",
  "token.created",
  "token.completed",
  "transition.fired",
]);

export type StoredEntry = Omit<PublishedEntry, "texts">;
/** A message in a batch. `entry` is the place of its entry, `words` are its words in the index without the words for its readers. */
export type StoredText = PublishedText & { entry: number; words: string };

export const labelOf = {
  /** `id`: of a conversation or of a run. */
  journal: (id: string) => `c:${id}`,
  agent: (id: string) => `a:${id}`,
  correlation: (id: string) => `r:${id}`,
  /** `undefined` for a type without labels. */
  type: (type: string) => (COMMON.has(type) ? undefined : `t:${type}`),
  late: LATE,
};

export class LogStore {
  readonly #record: VersionedRecord<{ createdAt: number }>;
  readonly #database: SqlDatabase;
  /** The log exists in committed storage. */
  #exists = false;

  constructor(
    private readonly stores: { database: SqlDatabase; keyValue: KeyValue },
    private readonly now: () => number,
    /** Arms the wake-up that calls `indexReaders`. */
    private readonly armIndexing: () => void,
  ) {
    this.#database = stores.database;
    this.#record = new VersionedRecord(LOG_SCHEMA, stores, LOG_KEY);
  }

  /** Reports whether the log has ever had an entry. Throws `UNAVAILABLE` for storage of a newer release. */
  get exists(): boolean {
    return this.#exists || this.#record.get() !== undefined;
  }

  /** The number of the last event; 0 for an empty log. */
  get last(): number {
    if (!this.exists) return 0;
    const [newest] = this.#database.all<{ seq: number; count: number }>(NEWEST);
    return newest === undefined ? 0 : newest.seq + newest.count - 1;
  }

  /** Returns the last entry of a conversation or a run; 0 if there is none. */
  published(id: string): number {
    const newest = this.#newestOf(id);
    return newest === undefined ? 0 : newest.first + newest.count - 1;
  }

  /** As `EventLogApi.publish`. */
  publish(publication: Publication): number {
    return this.#change(() => {
      const upTo = this.#publish(publication);
      if (this.stores.keyValue.list(READERS_KEY, 1).length > 0) this.armIndexing();
      return upTo;
    });
  }

  /** Changes the log in one transaction, which creates the log if there is none. */
  #change<Value>(act: () => Value): Value {
    const value = this.#database.transaction(() => {
      this.#create();
      return act();
    });
    this.#exists = true;
    return value;
  }

  #publish(publication: Publication): number {
    const { readers, newest: made, from, entries } = publication;
    const id = loggedId(publication);
    const newest = this.#newestOf(id);
    const upTo = newest === undefined ? 0 : newest.first + newest.count - 1;
    if (from !== upTo + 1 || entries.length === 0 || made < this.#replacedAt(id)) return upTo;
    const readable = JSON.stringify(readers);
    if (newest !== undefined && newest.readers !== readable) this.stores.keyValue.put(READERS_KEY + id, 0);
    this.#append(publication, readable);
    return upTo + entries.length;
  }

  /** As `EventLogApi.replace`. */
  replace(publication: Publication): void {
    const { keyValue } = this.stores;
    const { newest, from, entries } = publication;
    const id = loggedId(publication);
    this.#change(() => {
      if (newest < this.#replacedAt(id)) return;
      keyValue.put(REPLACED_KEY + id, newest);
      for (const batch of this.#batchesOf(id, this.#batchBefore(id, from))) {
        if (batch.first >= from + entries.length) break;
        if (batch.first + batch.count <= from) continue;
        const before = restored(batch);
        const after = before.map((entry, index) => entries[batch.first + index - from] ?? entry);
        this.#rewrite(batch, after, readersIn(batch.readers));
      }
    });
  }

  /** As `EventLogApi.empty`. */
  empty(conversationId: string): boolean {
    if (!this.exists) return false;
    return this.#database.transaction(() => {
      const batches = this.#slice(conversationId, 0);
      const [newest] = this.#database.all<{ seq: number }>(NEWEST);
      for (const { seq, labels, texts, readers } of batches) {
        this.#unindex(seq, textsOf(texts), readersIn(readers));
        this.#database.run(REMOVE_LABELS, seq, labels);
        this.#database.run(seq === newest?.seq ? BLANK_BATCH : REMOVE_BATCH, seq);
      }
      if (batches.length === SLICE) return true;
      for (const key of [REPLACED_KEY, READERS_KEY]) this.stores.keyValue.delete(key + conversationId);
      return false;
    });
  }

  /** Returns the people who may read a conversation at its newest publication. */
  readersOf(conversationId: string): string[] {
    return readersIn(this.#newestOf(conversationId)?.readers ?? "[]");
  }

  /** Gives the newest readers to a slice of the messages that were published before these readers. Returns whether more are left. */
  indexReaders(): boolean {
    if (!this.exists) return false;
    const { keyValue } = this.stores;
    return this.#database.transaction(() => {
      const [pending, next] = keyValue.list<number>(READERS_KEY, 2);
      if (pending === undefined) return false;
      const [key, after] = pending;
      const conversationId = key.slice(READERS_KEY.length);
      const readers = this.readersOf(conversationId);
      const batches = this.#slice(conversationId, after);
      for (const batch of batches) this.#rewrite(batch, restored(batch), readers);
      const last = batches.at(-1);
      if (last === undefined || batches.length < SLICE) keyValue.delete(key);
      else keyValue.put(key, last.seq);
      return next !== undefined || batches.length === SLICE;
    });
  }

  /** Returns the number of the journal's newest entry at the newest replacement; 0 if there was none. */
  #replacedAt(id: string): number {
    return this.stores.keyValue.get<number>(REPLACED_KEY + id) ?? 0;
  }

  #create(): void {
    if (this.exists) return;
    for (const statement of TABLES) this.#database.run(statement);
    this.#database.run(createIndex(TOKENIZER));
    if (this.#database.all(IS_SECURE).length === 0) this.#database.run(SECURE_DELETE);
    this.#record.put({ createdAt: this.now() });
  }

  #append(publication: Publication, readable: string): void {
    const { projectId, readers, from, entries } = publication;
    const id = loggedId(publication);
    const [newest] = this.#database.all<{ seq: number; received: number; count: number }>(NEWEST);
    const seq = newest === undefined ? 1 : newest.seq + newest.count;
    const oldest = entries.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY);
    const latest = entries.reduce((most, { at }) => Math.max(most, at), 0);
    // Searches for a time need ascending times.
    const now = this.now();
    const received = Math.max(now, newest?.received ?? 0, Math.min(latest, now + MAX_AHEAD_MS));
    const isLate = oldest < received - LATE_MS;
    const labels = JSON.stringify(labelsOf(id, entries, isLate));
    const texts = storedTexts(entries, isLate);
    this.#database.run(
      ADD_BATCH,
      ...[seq, received, id, projectId, from, entries.length],
      ...[readable, labels, JSON.stringify(entries.map(withoutTexts)), textsJson(texts)],
    );
    this.#database.run(ADD_LABELS, seq, labels);
    this.#index(seq, texts, readers);
  }

  /** Replaces the content of a batch, with the words of its messages. Equal content costs no write. */
  #rewrite(
    { seq, texts, labels, ...before }: BatchRow,
    entries: readonly PublishedEntry[],
    readers: readonly string[],
  ): void {
    const isLate = (JSON.parse(labels) as string[]).includes(labelOf.late);
    const after = storedTexts(entries, isLate);
    const content = [JSON.stringify(readers), JSON.stringify(entries.map(withoutTexts)), textsJson(after)];
    const stored = [before.readers, before.entries, texts];
    if (content.every((part, index) => part === stored[index])) return;
    this.#unindex(seq, textsOf(texts), readersIn(before.readers));
    this.#database.run(REPLACE_CONTENT, seq, ...content);
    this.#index(seq, after, readers);
  }

  #index(seq: number, texts: readonly StoredText[], readers: readonly string[]): void {
    const ofReaders = wordsOfReaders(readers);
    for (const [place, { words }] of texts.entries())
      this.#database.run(INDEX_WORDS, seq * MAX_BATCH_TEXTS + place, words + ofReaders);
  }

  #unindex(seq: number, texts: readonly StoredText[], readers: readonly string[]): void {
    const ofReaders = wordsOfReaders(readers);
    for (const [place, { words }] of texts.entries())
      this.#database.run(UNINDEX_WORDS, seq * MAX_BATCH_TEXTS + place, words + ofReaders);
  }

  #newestOf(id: string): Pick<BatchRow, "first" | "count" | "readers"> | undefined {
    if (!this.exists) return undefined;
    const label = labelOf.journal(id);
    return this.#database.all<Pick<BatchRow, "first" | "count" | "readers">>(NEWEST_OF, label)[0];
  }

  /** Returns a number of the log from which the batches of a conversation or a run have its entries from `entry` on. */
  #batchBefore(id: string, entry: number): number {
    const label = labelOf.journal(id);
    let [low, high] = [0, this.last];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [next] = this.#database.all<{ seq: number; first: number; count: number }>(
        NEXT_OF,
        label,
        middle,
      );
      if (next === undefined || next.first + next.count > entry) high = middle;
      else low = next.seq;
    }
    return low;
  }

  *#batchesOf(id: string, from = 0): Generator<BatchRow> {
    for (let after = from; ; ) {
      const rows = this.#slice(id, after);
      yield* rows;
      if (rows.length < SLICE) return;
      after = rows.at(-1)?.seq ?? after;
    }
  }

  #slice(id: string, after: number): BatchRow[] {
    return this.#database.all<BatchRow>(BATCHES_OF, labelOf.journal(id), after, SLICE);
  }
}

function readersIn(readers: string): string[] {
  // SAFETY: only `LogStore` writes this column.
  return JSON.parse(readers) as string[];
}

export function textsOf(texts: string | null): StoredText[] {
  // SAFETY: only `LogStore` writes this column.
  return texts === null ? [] : (JSON.parse(texts) as StoredText[]);
}

export function entriesOf(entries: string): StoredEntry[] {
  // SAFETY: only `LogStore` writes this column.
  return JSON.parse(entries) as StoredEntry[];
}

function restored({ entries, texts }: BatchRow): PublishedEntry[] {
  const messages = textsOf(texts);
  return entriesOf(entries).map((entry, index) => ({
    ...entry,
    texts: messages.flatMap(({ entry: of, words: _words, ...text }) => (of === index ? [text] : [])),
  }));
}

function storedTexts(entries: readonly PublishedEntry[], isLate: boolean): StoredText[] {
  return entries
    .flatMap(({ texts = [] }, entry) =>
      texts.map((text) => ({ ...text, entry, words: wordsOfMessage(text, isLate) })),
    )
    .slice(0, MAX_BATCH_TEXTS);
}

function textsJson(texts: readonly StoredText[]): string | null {
  return texts.length === 0 ? null : JSON.stringify(texts);
}

function withoutTexts({ texts: _texts, ...entry }: PublishedEntry): StoredEntry {
  return entry;
}

function labelsOf(id: string, entries: readonly PublishedEntry[], isLate: boolean): string[] {
  const labels = entries.flatMap(({ agentId, correlationId, type }) =>
    Object.values(
      defined({
        agent: agentId === undefined ? undefined : labelOf.agent(agentId),
        correlation: correlationId === undefined ? undefined : labelOf.correlation(correlationId),
        type: labelOf.type(type),
      }),
    ),
  );
  return [...new Set([labelOf.journal(id), ...labels, ...(isLate ? [labelOf.late] : [])])];
}
