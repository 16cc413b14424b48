/**
 * Writes of a log.
 *
 * EVLOG-1  The log has each published entry of a conversation once, in the order of its journal. A repeated or late publication changes
 *        nothing. Numbers of the log ascend, and are never used again.
 * EVLOG-2  A batch of entries costs one row, a row for each label, and the rows of the index of words. Types of nearly every turn have no label.
 * EVLOG-3  Replaced, removed and erased texts leave the segments of the index in the same transaction (`secure-delete`).
 * EVLOG-4  Only people who may read a conversation at its newest publication find its messages.
 */
import { TOKENIZER } from "../../memory/corpus/full-text.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { Publication, PublishedEntry, PublishedText } from "../../protocol/event-log.ts";
import type { EntryType } from "../../protocol/journal.ts";
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
  REMOVE_BATCH,
  REMOVE_LABELS,
  REPLACE_CONTENT,
  REPLACED_KEY,
  SECURE_DELETE,
  TABLES,
  UNINDEX_WORDS,
} from "./log-tables.ts";
import { LATE, wordsOfMessage } from "./words.ts";

/** Most messages of a batch. */
export const MAX_BATCH_TEXTS = 64;
/** A batch with an entry that is older at its arrival is late, in milliseconds. */
export const LATE_MS = 3_600_000;
/** Batches of one step of a removal. */
const SLICE = 100;

/** Types of entries that nearly every turn has. */
const COMMON: ReadonlySet<string> = new Set<EntryType>([
  "turn.started",
  "turn.completed",
  "turn.finalized",
  "message.user",
  "message.started",
  "message.completed",
]);

/** An entry in a batch. */
export type StoredEntry = Omit<PublishedEntry, "texts">;
/** A message in a batch. `entry` is the place of its entry, `words` are its words in the index. */
export type StoredText = PublishedText & { entry: number; words: string };

/** Returns the label of a filter. */
export const labelOf = {
  conversation: (id: string) => `c:${id}`,
  agent: (id: string) => `a:${id}`,
  correlation: (id: string) => `r:${id}`,
  /** `undefined` for a type without labels. */
  type: (type: string) => (COMMON.has(type) ? undefined : `t:${type}`),
  late: LATE,
};

export class LogStore {
  readonly #record: VersionedRecord<{ createdAt: number }>;
  readonly #database: SqlDatabase;
  #exists = false;

  constructor(
    private readonly stores: { database: SqlDatabase; keyValue: KeyValue },
    private readonly now: () => number,
  ) {
    this.#database = stores.database;
    this.#record = new VersionedRecord(LOG_SCHEMA, stores, LOG_KEY);
  }

  /** Reports whether the log has ever had an entry. Throws `UNAVAILABLE` for storage of a newer release. */
  get exists(): boolean {
    this.#exists ||= this.#record.get() !== undefined;
    return this.#exists;
  }

  /** The number of the last event; 0 for an empty log. */
  get last(): number {
    if (!this.exists) return 0;
    const [newest] = this.#database.all<{ seq: number; count: number }>(NEWEST);
    return newest === undefined ? 0 : newest.seq + newest.count - 1;
  }

  /** Returns the last entry of a conversation; 0 if there is none. */
  published(conversationId: string): number {
    const newest = this.#newestOf(conversationId);
    return newest === undefined ? 0 : newest.first + newest.count - 1;
  }

  /** As `EventLogApi.publish`. */
  publish(publication: Publication): number {
    return this.#database.transaction(() => {
      this.#create();
      const { conversationId, readers, from, entries } = publication;
      const newest = this.#newestOf(conversationId);
      const upTo = newest === undefined ? 0 : newest.first + newest.count - 1;
      if (from !== upTo + 1 || entries.length === 0) return upTo;
      const readable = JSON.stringify(readers);
      if (newest !== undefined && newest.readers !== readable) this.#changeReaders(conversationId, readers);
      this.#append(publication, readable);
      return upTo + entries.length;
    });
  }

  /** As `EventLogApi.replace`. */
  replace({ conversationId, newest, from, entries }: Publication): void {
    if (!this.exists) return;
    const { keyValue } = this.stores;
    this.#database.transaction(() => {
      const key = REPLACED_KEY + conversationId;
      if (newest < (keyValue.get<number>(key) ?? 0)) return;
      keyValue.put(key, newest);
      for (const batch of this.#batchesOf(conversationId)) {
        if (batch.first + batch.count <= from || batch.first >= from + entries.length) continue;
        const before = restored(batch);
        const after = before.map((entry, index) => entries[batch.first + index - from] ?? entry);
        this.#rewrite(batch, after, JSON.parse(batch.readers));
      }
    });
  }

  /** As `EventLogApi.empty`. */
  empty(conversationId: string): boolean {
    if (!this.exists) return false;
    return this.#database.transaction(() => {
      const batches = this.#database.all<BatchRow>(
        BATCHES_OF,
        labelOf.conversation(conversationId),
        0,
        SLICE,
      );
      const [newest] = this.#database.all<{ seq: number }>(NEWEST);
      for (const { seq, labels, texts } of batches) {
        this.#unindex(seq, textsOf(texts));
        this.#database.run(REMOVE_LABELS, seq, labels);
        this.#database.run(seq === newest?.seq ? BLANK_BATCH : REMOVE_BATCH, seq);
      }
      if (batches.length === SLICE) return true;
      this.stores.keyValue.delete(REPLACED_KEY + conversationId);
      return false;
    });
  }

  #create(): void {
    if (this.exists) return;
    for (const statement of TABLES) this.#database.run(statement);
    this.#database.run(createIndex(TOKENIZER));
    if (this.#database.all(IS_SECURE).length === 0) this.#database.run(SECURE_DELETE);
    this.#record.put({ createdAt: this.now() });
  }

  #append({ conversationId, projectId, readers, from, entries }: Publication, readable: string): void {
    const [newest] = this.#database.all<{ seq: number; received: number; count: number }>(NEWEST);
    const seq = newest === undefined ? 1 : newest.seq + newest.count;
    const oldest = entries.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY);
    const latest = entries.reduce((most, { at }) => Math.max(most, at), 0);
    // Searches for a time need ascending times.
    const received = Math.max(this.now(), newest?.received ?? 0, latest);
    const isLate = oldest < received - LATE_MS;
    const labels = JSON.stringify(labelsOf(conversationId, entries, isLate));
    const texts = storedTexts(entries, readers, isLate);
    this.#database.run(
      ADD_BATCH,
      ...[seq, received, conversationId, projectId, from, entries.length],
      ...[readable, labels, JSON.stringify(entries.map(withoutTexts)), textsJson(texts)],
    );
    this.#database.run(ADD_LABELS, seq, labels);
    this.#index(seq, texts);
  }

  #changeReaders(conversationId: string, readers: readonly string[]): void {
    for (const batch of this.#batchesOf(conversationId)) this.#rewrite(batch, restored(batch), readers);
  }

  /** Replaces the content of a batch, with the words of its messages. */
  #rewrite(
    { seq, texts, labels }: BatchRow,
    entries: readonly PublishedEntry[],
    readers: string[] | readonly string[],
  ): void {
    const isLate = (JSON.parse(labels) as string[]).includes(labelOf.late);
    const after = storedTexts(entries, readers, isLate);
    this.#unindex(seq, textsOf(texts));
    this.#database.run(
      REPLACE_CONTENT,
      ...[seq, JSON.stringify(readers), JSON.stringify(entries.map(withoutTexts)), textsJson(after)],
    );
    this.#index(seq, after);
  }

  #index(seq: number, texts: readonly StoredText[]): void {
    for (const [place, { words }] of texts.entries())
      this.#database.run(INDEX_WORDS, seq * MAX_BATCH_TEXTS + place, words);
  }

  #unindex(seq: number, texts: readonly StoredText[]): void {
    for (const [place, { words }] of texts.entries())
      this.#database.run(UNINDEX_WORDS, seq * MAX_BATCH_TEXTS + place, words);
  }

  #newestOf(conversationId: string): Pick<BatchRow, "first" | "count" | "readers"> | undefined {
    if (!this.exists) return undefined;
    const label = labelOf.conversation(conversationId);
    return this.#database.all<Pick<BatchRow, "first" | "count" | "readers">>(NEWEST_OF, label)[0];
  }

  *#batchesOf(conversationId: string): Generator<BatchRow> {
    for (let after = 0; ; ) {
      const rows = this.#database.all<BatchRow>(
        BATCHES_OF,
        labelOf.conversation(conversationId),
        after,
        SLICE,
      );
      yield* rows;
      if (rows.length < SLICE) return;
      after = rows.at(-1)?.seq ?? after;
    }
  }
}

/** Returns the messages of a batch. */
export function textsOf(texts: string | null): StoredText[] {
  // SAFETY: only `LogStore` writes this column.
  return texts === null ? [] : (JSON.parse(texts) as StoredText[]);
}

/** Returns the entries of a batch. */
export function entriesOf(entries: string): StoredEntry[] {
  // SAFETY: only `LogStore` writes this column.
  return JSON.parse(entries) as StoredEntry[];
}

/** Returns the entries of a batch as they were published. */
function restored({ entries, texts }: BatchRow): PublishedEntry[] {
  const messages = textsOf(texts);
  return entriesOf(entries).map((entry, index) => ({
    ...entry,
    texts: messages.flatMap(({ entry: of, words: _words, ...text }) => (of === index ? [text] : [])),
  }));
}

function storedTexts(
  entries: readonly PublishedEntry[],
  readers: readonly string[],
  isLate: boolean,
): StoredText[] {
  return entries
    .flatMap(({ texts = [] }, entry) =>
      texts.map((text) => ({ ...text, entry, words: wordsOfMessage(text, readers, isLate) })),
    )
    .slice(0, MAX_BATCH_TEXTS);
}

function textsJson(texts: readonly StoredText[]): string | null {
  return texts.length === 0 ? null : JSON.stringify(texts);
}

function withoutTexts({ texts: _texts, ...entry }: PublishedEntry): StoredEntry {
  return entry;
}

function labelsOf(conversationId: string, entries: readonly PublishedEntry[], isLate: boolean): string[] {
  const labels = entries.flatMap(({ agentId, correlationId, type }) =>
    Object.values(
      defined({
        agent: agentId === undefined ? undefined : labelOf.agent(agentId),
        correlation: correlationId === undefined ? undefined : labelOf.correlation(correlationId),
        type: labelOf.type(type),
      }),
    ),
  );
  return [...new Set([labelOf.conversation(conversationId), ...labels, ...(isLate ? [labelOf.late] : [])])];
}
