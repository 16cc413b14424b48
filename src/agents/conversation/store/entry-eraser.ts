/**
 * Removes the content of erased entries from a conversation's tables, in the transaction of the commit.
 *
 * ERASE-3  The content of an erased entry is removed from turns, events, long texts and the journal. Numbers and order stay. The journal
 *          also loses the results and the quoted failures of the turn's hooks.
 * ERASE-4  Summaries from after the start of the entry's turn are dropped, and also texts for agents that joined after it. Until the next
 *          summary, the agents use the full history without the entry.
 */
import type { EventStore } from "../../../memory/session/event-store.ts";
import { EventAction } from "../../../memory/session/session-event.ts";
import type { KeyValue } from "../../../ports/key-value.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { operationId } from "../../../protocol/ids.ts";
import type { Erasure } from "../core/erase-entry.ts";
import { ERASED } from "../core/erasure.ts";
import { withoutInputs } from "../core/replacement.ts";
import type { Turn } from "../core/turn.ts";
import { turnEvents } from "../core/turn-events.ts";
import type { Journal } from "./journal.ts";
import type { TurnTable } from "./turns.ts";

const SINCE = `SELECT session_id, seq, id, action, created_at FROM cf_agents_events
  WHERE created_at >= ?1 AND (action = 'compaction' OR action = 'supersession' OR id LIKE 'handoff\\_%' ESCAPE '\\' OR id = ?2)`;
const NAMING = `SELECT 1 AS found FROM cf_agents_events
  WHERE instr(coalesce(metadata, ''), ?1) > 0 OR instr(coalesce(content, ''), ?1) > 0
  UNION ALL SELECT 1 FROM turns WHERE instr(body, ?1) > 0 LIMIT 1`;
const TABLE = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = ?";
const NAMING_TEXT = "SELECT 1 AS found FROM cf_agents_long_text WHERE instr(text, ?) > 0 LIMIT 1";
const NAMING_SIGNAL = "SELECT 1 AS found FROM signals WHERE instr(body, ?) > 0 LIMIT 1";
const QUOTING = `SELECT n FROM turns WHERE status <> 'active' AND n > ?1
  AND (instr(body, ?2) > 0 OR instr(body, '"concurrentNote"') > 0) ORDER BY n`;

/** The key prefixes of notes about data that an erasure must still remove elsewhere. */
export const TO_REMOVE = {
  attachment: "erasing:attachment:",
  conversation: "erasing:conversation:",
  /** Runs with workspaces to delete. */
  run: "erasing:run:",
  /** The results of a call that the workspace keeps. */
  call: "erasing:call:",
} as const;

type Noted = { session_id: string; seq: number; id: string; action: string; created_at: number };

export interface ErasedStores {
  database: SqlDatabase;
  keyValue: KeyValue;
  turns: TurnTable;
  events: EventStore;
  journal: Journal;
}

export function quotingTurns(database: SqlDatabase, n: number, id: string): number[] {
  return database.all<{ n: number }>(QUOTING, n, id).map((row) => row.n);
}

/** Removes the content of an entry. Call it in a transaction. */
export function eraseEntry(stores: ErasedStores, erasure: Erasure): void {
  const { database, events, journal, keyValue } = stores;
  const { turn: n, item, turns, formerTitles, attachments, results, conversations, runs } = erasure;
  const own = turns.find((turn) => turn.n === n);
  if (own === undefined) throw new Error(`The erasure of an entry of turn ${n} lacks that turn.`);
  for (const turn of turns) rewrite(stores, turn);
  for (const noted of database.all<Noted>(SINCE, own.createdAt, `late_${operationId(own, item)}`)) {
    const { session_id: sessionId, seq, id, action, created_at: timestamp } = noted;
    const [event] = events.load(sessionId, { from: seq, before: seq + 1, limit: 1, tail: false });
    events.deleteRange(sessionId, seq, seq + 1);
    if (action === EventAction.COMPACTION) continue;
    if (event?.action === EventAction.SUPERSESSION) {
      events.append(sessionId, seq, [{ ...event, content: withoutInputs(event.content) }]);
      continue;
    }
    events.append(sessionId, seq, [
      {
        ...{ id, sessionId, seq, timestamp },
        content: ERASED,
        action: EventAction.SYSTEM_INSTRUCTION,
        metadata: { origin: "platform", note: true },
      },
    ]);
  }
  journal.redact(own.firstSeq, n, item);
  if (formerTitles.length > 0) journal.removeTitles(formerTitles);
  for (const attachment of attachments)
    if (!isNamed(database, attachment)) keyValue.put(TO_REMOVE.attachment + attachment, 1);
  for (const result of results) keyValue.put(TO_REMOVE.attachment + result, 1);
  for (const conversation of conversations) keyValue.put(TO_REMOVE.conversation + conversation, 1);
  for (const run of runs) keyValue.put(TO_REMOVE.run + run, 1);
  if (own.operations.some((operation) => operation.item === item))
    keyValue.put(TO_REMOVE.call + operationId(own, item), 1);
}

function rewrite({ turns, events }: ErasedStores, turn: Turn): void {
  if (turn.events !== undefined) {
    const { from, count } = turn.events;
    const rewritten = turnEvents(turn);
    if (rewritten.length !== count)
      throw new Error(`Turn ${turn.n} has ${rewritten.length} events, not ${count}.`);
    events.deleteRange(turn.agentId, from, from + count);
    events.append(turn.agentId, from, rewritten);
  }
  turns.replace(turn);
}

/** Reports whether the conversation still contains a text, such as the id of an attachment. */
function isNamed(database: SqlDatabase, text: string): boolean {
  const has = (table: string) => database.all(TABLE, table).length > 0;
  return (
    database.all(NAMING, text).length > 0 ||
    (has("cf_agents_long_text") && database.all(NAMING_TEXT, text).length > 0) ||
    (has("signals") && database.all(NAMING_SIGNAL, text).length > 0)
  );
}
