/** The storage of a thread: its record, the events of the last 45 days, and the posts that wait. */
import type { ChannelInput, ChannelText } from "../../protocol/channels.ts";
import type { Json } from "../../shared/json.ts";
import { type ActorSchema, type ActorStores, VersionedRecord } from "../base/storage/schema-upgrade.ts";
import type { Post } from "./core/posts.ts";

const SCHEMA: ActorSchema = { of: "channel", first: 1, steps: [] };
const KEY = "channel";
/** Platforms repeat an event for hours. A mail may come again after days, and a turn may wait for 30 days. */
const KEPT_MS = 45 * 86_400_000;

const TABLES = [
  `CREATE TABLE IF NOT EXISTS channel_inputs (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at INTEGER NOT NULL,
    subject TEXT NOT NULL, surface TEXT NOT NULL, is_answer INTEGER NOT NULL, body TEXT, conversation_id TEXT, turn_id TEXT, previews TEXT,
    is_trying INTEGER NOT NULL, attempts INTEGER NOT NULL, due INTEGER NOT NULL)`,
  "CREATE INDEX IF NOT EXISTS channel_inputs_by_turn ON channel_inputs (turn_id) WHERE turn_id IS NOT NULL",
  "CREATE INDEX IF NOT EXISTS channel_inputs_open ON channel_inputs (is_answer DESC, seq) WHERE body IS NOT NULL",
  `CREATE TABLE IF NOT EXISTS channel_posts (seq INTEGER PRIMARY KEY AUTOINCREMENT, surface TEXT NOT NULL, body TEXT NOT NULL,
    turn_id TEXT, message_id TEXT, reference TEXT, is_sending INTEGER NOT NULL, attempts INTEGER NOT NULL, due INTEGER NOT NULL)`,
];

/** The events that may be next: each answer, and the oldest message. */
const NEXT_INPUTS = `SELECT * FROM (SELECT * FROM channel_inputs WHERE body IS NOT NULL AND is_answer = 1 ORDER BY seq)
  UNION ALL SELECT * FROM (SELECT * FROM channel_inputs WHERE body IS NOT NULL AND is_answer = 0 ORDER BY seq LIMIT 1)`;
const NEXT_DUE = `SELECT min(due) AS due FROM (
  SELECT due FROM (${NEXT_INPUTS}) UNION ALL SELECT * FROM (SELECT due FROM channel_posts ORDER BY seq LIMIT 1))`;

export interface ChannelRecord {
  channel: string;
  tenant: string;
  agentId: string;
  thread: string;
  /** Changes when a conversation of the thread is over. */
  generation: number;
  /** The conversation, and the user who began it. Absent until it exists. */
  conversation?: { id: string; owner: string };
}

export interface WaitingInput {
  seq: number;
  id: string;
  subject: string;
  surface: Json;
  body: Pick<ChannelInput, "agentId" | "text" | "answer" | "untrusted">;
  /** The conversation of the attempt that may have started the turn. */
  conversationId?: string;
  /** Attempts with a result. A crash is no result. */
  attempts: number;
}

export interface Preview {
  messageId: string;
  reference: string;
}

/** In place of the id of a message: the last message of the turn with a preview and without a complete text. */
export const OPEN_PREVIEW = "*";

type InputRow = {
  seq: number;
  id: string;
  subject: string;
  surface: string;
  body: string;
  conversation_id: string | null;
  attempts: number;
};

type PostRow = {
  seq: number;
  surface: string;
  body: string;
  turn_id: string | null;
  message_id: string | null;
  reference: string | null;
  is_sending: number;
  attempts: number;
  due: number;
};

export class ChannelStore {
  readonly #record: VersionedRecord<ChannelRecord>;

  constructor(private readonly stores: ActorStores) {
    this.#record = new VersionedRecord(SCHEMA, stores, KEY);
  }

  /** Throws `UNAVAILABLE` for storage of a newer release. */
  find(): ChannelRecord | undefined {
    return this.#record.get();
  }

  put(record: ChannelRecord): void {
    if (this.find() === undefined) for (const table of TABLES) this.#run(table);
    this.#record.put(record);
  }

  /** Begins another conversation with the next message. */
  renew({ conversation: _, ...record }: ChannelRecord): void {
    this.put({ ...record, generation: record.generation + 1 });
  }

  /** Deletes all data of a deleted conversation, except the ids of its events. */
  forget(conversationId: string): void {
    this.#run(
      "DELETE FROM channel_posts WHERE turn_id IN (SELECT turn_id FROM channel_inputs WHERE conversation_id = ?)",
      conversationId,
    );
    this.#run(
      "UPDATE channel_inputs SET subject = '', surface = 'null', conversation_id = NULL, turn_id = NULL, previews = NULL WHERE conversation_id = ? AND body IS NULL",
      conversationId,
    );
  }

  /** Adds an event, unless it is known. Deletes some old events. */
  addInput({ id, subject, surface, agentId, text, answer, untrusted }: ChannelInput, now: number): void {
    const body = JSON.stringify({ agentId, text, answer, untrusted });
    this.#run(
      `INSERT INTO channel_inputs (id, at, subject, surface, is_answer, body, is_trying, attempts, due) VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?)
        ON CONFLICT (id) DO NOTHING`,
      ...[id, now, subject, JSON.stringify(surface), answer === undefined ? 0 : 1, body, now],
    );
    this.#run(
      "DELETE FROM channel_inputs WHERE seq IN (SELECT seq FROM channel_inputs ORDER BY seq LIMIT 20) AND body IS NULL AND at < ?",
      now - KEPT_MS,
    );
  }

  /** Returns the time of the next attempt, in milliseconds since the epoch. */
  get dueAt(): number | undefined {
    const [row] = this.stores.database.all<{ due: number | null }>(NEXT_DUE);
    return row?.due ?? undefined;
  }

  /** An event may have started a turn of the conversation that is not stored yet. */
  mayHaveBegunIn(conversationId: string): boolean {
    const sql = "SELECT 1 AS one FROM channel_inputs WHERE body IS NOT NULL AND conversation_id = ? LIMIT 1";
    return this.stores.database.all(sql, conversationId).length > 0;
  }

  get waiting(): number {
    const [row] = this.stores.database.all<{ n: number }>(
      "SELECT count(*) AS n FROM channel_inputs WHERE body IS NOT NULL",
    );
    return row?.n ?? 0;
  }

  /** Returns the next event that is due: an answer, which passes the messages, or the oldest message. An attempt of an earlier life is over. */
  dueInput(now: number): WaitingInput | undefined {
    const [row] = this.stores.database.all<InputRow>(
      `SELECT * FROM (${NEXT_INPUTS}) WHERE is_trying = 1 OR due <= ? ORDER BY is_answer DESC, seq LIMIT 1`,
      now,
    );
    if (row === undefined) return undefined;
    const { seq, id, subject, attempts, conversation_id: conversationId } = row;
    return {
      ...{ seq, id, subject, attempts, surface: JSON.parse(row.surface), body: JSON.parse(row.body) },
      ...(conversationId !== null && { conversationId }),
    };
  }

  beginInput(seq: number, due: number): void {
    this.#run("UPDATE channel_inputs SET is_trying = 1, due = ? WHERE seq = ?", due, seq);
  }

  /** Stores the conversation of the next attempt; `null` after a refusal, which has started no turn. */
  placeInput(seq: number, conversationId: string | null): void {
    this.#run("UPDATE channel_inputs SET conversation_id = ? WHERE seq = ?", conversationId, seq);
  }

  /** Stores the failed attempts, and the time of the next attempt. */
  delayInput(seq: number, attempts: number, due: number): void {
    this.#run(
      "UPDATE channel_inputs SET is_trying = 0, attempts = ?, due = ? WHERE seq = ?",
      ...[attempts, due, seq],
    );
  }

  /** Ends an event. Its text is deleted. Of an answer to a request only the id stays. */
  endInput(seq: number, turnId: string | null): void {
    this.#run(
      "UPDATE channel_inputs SET body = NULL, turn_id = ?, subject = iif(is_answer, '', subject), surface = iif(is_answer, 'null', surface) WHERE seq = ?",
      ...[turnId, seq],
    );
  }

  /** Returns where the answers of a turn go, and the references of its previews by message; `undefined` if no event of this thread started it. */
  placeOf(
    turnId: string,
  ): { surface: Json; conversationId: string; previews: Record<string, string> } | undefined {
    const [row] = this.stores.database.all<{
      surface: string;
      conversation_id: string;
      previews: string | null;
    }>(
      "SELECT surface, conversation_id, previews FROM channel_inputs WHERE turn_id = ? ORDER BY seq DESC LIMIT 1",
      turnId,
    );
    if (row === undefined) return undefined;
    const { surface, conversation_id: conversationId, previews } = row;
    return { conversationId, surface: JSON.parse(surface), previews: JSON.parse(previews ?? "{}") };
  }

  /** Returns the conversations of the thread, the newest first. */
  conversations(): string[] {
    const sql =
      "SELECT conversation_id AS id FROM channel_inputs WHERE conversation_id IS NOT NULL GROUP BY conversation_id ORDER BY max(seq) DESC";
    return this.stores.database.all<{ id: string }>(sql).map(({ id }) => id);
  }

  putPreview(turnId: string, { messageId, reference }: Preview): void {
    const previews = { ...this.placeOf(turnId)?.previews, [messageId]: reference };
    this.#run("UPDATE channel_inputs SET previews = ? WHERE turn_id = ?", JSON.stringify(previews), turnId);
  }

  addPost(
    surface: Json,
    body: ChannelText,
    { turnId, messageId }: { turnId?: string | undefined; messageId?: string | undefined },
    now: number,
  ): void {
    this.#run(
      "INSERT INTO channel_posts (surface, body, turn_id, message_id, is_sending, attempts, due) VALUES (?, ?, ?, ?, 0, 0, ?)",
      ...[JSON.stringify(surface), JSON.stringify(body), turnId ?? null, messageId ?? null, now],
    );
  }

  /** Returns the oldest post that waits, its turn, and whether an attempt has begun. */
  nextPost(): (Post & { due: number; isSending: boolean; turnId?: string; messageId?: string }) | undefined {
    const [row] = this.stores.database.all<PostRow>("SELECT * FROM channel_posts ORDER BY seq LIMIT 1");
    if (row === undefined) return undefined;
    const { seq, attempts, due, turn_id: turnId, message_id: messageId } = row;
    const previews = turnId === null ? {} : (this.placeOf(turnId)?.previews ?? {});
    const ofMessage = messageId === OPEN_PREVIEW ? Object.values(previews).at(-1) : previews[messageId ?? ""];
    const replaces = row.reference ?? ofMessage;
    return {
      ...{ seq, attempts, due, isSending: row.is_sending === 1 },
      ...{ surface: JSON.parse(row.surface), body: JSON.parse(row.body) },
      ...(replaces !== undefined && { replaces }),
      ...(turnId !== null && { turnId }),
      ...(messageId !== null && { messageId }),
    };
  }

  /** Marks that an attempt begins, or that the next attempt may begin at `due`. */
  markPost(seq: number, isSending: boolean, attempts: number, due: number): void {
    this.#run(
      "UPDATE channel_posts SET is_sending = ?, attempts = ?, due = ? WHERE seq = ?",
      ...[isSending ? 1 : 0, attempts, due, seq],
    );
  }

  putPlaceholder(seq: number, reference: string): void {
    this.#run("UPDATE channel_posts SET reference = ? WHERE seq = ?", reference, seq);
  }

  /** Deletes a post, and forgets the previews that it has replaced. */
  removePost({
    seq,
    turnId = "",
    messageId = "",
  }: {
    seq: number;
    turnId?: string;
    messageId?: string;
  }): void {
    const previews = this.placeOf(turnId)?.previews ?? {};
    const { [messageId]: replaced, ...others } = previews;
    const rest = messageId === OPEN_PREVIEW ? {} : others;
    if (replaced !== undefined || (messageId === OPEN_PREVIEW && Object.keys(previews).length > 0))
      this.#run("UPDATE channel_inputs SET previews = ? WHERE turn_id = ?", JSON.stringify(rest), turnId);
    this.#run("DELETE FROM channel_posts WHERE seq = ?", seq);
  }

  #run(sql: string, ...values: (string | number | null)[]): void {
    this.stores.database.run(sql, ...values);
  }
}
