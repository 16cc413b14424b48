/**
 * The tables of a log.
 *
 * A batch has entries of one conversation or one run, which have consecutive numbers in the journal and in the log. `conversation` is the
 * id of either. `labels` finds the batches of a conversation, a run, an agent, a correlation or a type that is rare. The words of messages are in an FTS5 table without content: a batch keeps
 * the indexed words of its messages, so they can be removed.
 */
import type { ActorSchema } from "../base/storage/schema-upgrade.ts";

export const LOG_SCHEMA: ActorSchema = { of: "log", first: 1, steps: [] };
export const LOG_KEY = "log";
/** Prefix of the keys with the newest replacement of each conversation. */
export const REPLACED_KEY = "replaced:";
/** Prefix of the keys of conversations with new readers. The value is the last number of the log whose message has them in the index. */
export const READERS_KEY = "readers:";

export const TABLES = [
  `CREATE TABLE IF NOT EXISTS batches (seq INTEGER PRIMARY KEY, received INTEGER NOT NULL, conversation TEXT NOT NULL,
  project TEXT NOT NULL, first INTEGER NOT NULL, count INTEGER NOT NULL, readers TEXT NOT NULL, labels TEXT NOT NULL,
  entries TEXT NOT NULL, texts TEXT)`,
  "CREATE TABLE IF NOT EXISTS labels (label TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (label, seq)) WITHOUT ROWID",
];

export function createIndex(tokenizer: string): string {
  return `CREATE VIRTUAL TABLE IF NOT EXISTS message_words USING fts5(words, content = '', columnsize = 0, tokenize = "${tokenizer}")`;
}
export const IS_SECURE = "SELECT 1 FROM message_words_config WHERE k = 'secure-delete'";
export const SECURE_DELETE = "INSERT INTO message_words (message_words, rank) VALUES ('secure-delete', 1)";

export const NEWEST = "SELECT seq, received, count FROM batches ORDER BY seq DESC LIMIT 1";
export const NEWEST_OF = `SELECT batches.first, batches.count, batches.readers FROM labels CROSS JOIN batches ON batches.seq = labels.seq
  WHERE labels.label = ?1 ORDER BY labels.seq DESC LIMIT 1`;
export const NEXT_OF = `SELECT labels.seq, batches.first, batches.count FROM labels CROSS JOIN batches ON batches.seq = labels.seq
  WHERE labels.label = ?1 AND labels.seq > ?2 ORDER BY labels.seq LIMIT 1`;
export const BATCHES_OF = `SELECT batches.* FROM labels CROSS JOIN batches ON batches.seq = labels.seq
  WHERE labels.label = ?1 AND labels.seq > ?2 ORDER BY labels.seq LIMIT ?3`;
export const ADD_BATCH = "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
export const ADD_LABELS = "INSERT INTO labels SELECT value, ?1 FROM json_each(?2)";
export const REMOVE_LABELS = "DELETE FROM labels WHERE (label, seq) IN (SELECT value, ?1 FROM json_each(?2))";
export const REPLACE_CONTENT = "UPDATE batches SET readers = ?2, entries = ?3, texts = ?4 WHERE seq = ?1";
export const REMOVE_BATCH = "DELETE FROM batches WHERE seq = ?";
/** A number is never used again. So the newest row stays, without content. */
export const BLANK_BATCH = `UPDATE batches SET conversation = '', project = '', first = 0, readers = '[]', labels = '[]', entries = '[]', texts = NULL
  WHERE seq = ?`;
export const INDEX_WORDS = "INSERT INTO message_words (rowid, words) VALUES (?, ?)";
export const UNINDEX_WORDS =
  "INSERT INTO message_words (message_words, rowid, words) VALUES ('delete', ?, ?)";

const READ = "SELECT seq, conversation, project, first, count, entries FROM batches";
/** The batch of an event is the last batch that begins at or before it. */
export const BEGIN_OF = "SELECT max(seq) AS seq FROM batches WHERE seq <= ?";
export const ASCENDING = `${READ} WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3`;
export const DESCENDING = `${READ} WHERE seq >= ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT ?3`;
const LABELLED = "SELECT seq FROM labels WHERE label = ?1 AND seq >= ?2 AND seq <= ?3 ORDER BY seq";
export const LABELLED_ASCENDING = `${LABELLED} LIMIT ?4`;
export const LABELLED_DESCENDING = `${LABELLED} DESC LIMIT ?4`;
export const READ_BATCH = `${READ} WHERE seq = ?`;
export const RECEIVED_FROM = "SELECT seq, received FROM batches WHERE seq >= ? ORDER BY seq LIMIT 1";
export const MATCHES = `SELECT rowid AS place FROM message_words WHERE message_words MATCH ?1 AND rowid >= ?2 AND rowid <= ?3
  ORDER BY rowid DESC LIMIT ?4`;
export const READ_TEXTS = "SELECT conversation, texts FROM batches WHERE seq = ?";

export type EntriesRow = {
  seq: number;
  conversation: string;
  project: string;
  first: number;
  count: number;
  entries: string;
};

export type BatchRow = EntriesRow & {
  received: number;
  readers: string;
  labels: string;
  texts: string | null;
};
