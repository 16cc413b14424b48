/**
 * The copies of a conversation's journal and messages in the log of its tenant.
 *
 * LOGGED-1  The log has each entry of the journal, and the messages of each turn: the first with the begin of the turn, its answers with its
 *           end. So a withdrawn answer is never in the log.
 * LOGGED-2  An erasure replaces all entries that the log has of the conversation before it adds its own entry. A failure repeats both.
 * LOGGED-3  An entry that is an incident has the code of its error. Messages of errors stay in the conversation.
 */
import {
  MAX_LOGGED_DATA,
  MAX_SEARCHED_ANSWERS,
  MAX_SEARCHED_TEXT,
  type Publication,
  type PublishedEntry,
  type PublishedText,
} from "../../../protocol/event-log.ts";
import { messageId, turnId } from "../../../protocol/ids.ts";
import { plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { cut } from "../../../shared/text.ts";
import type { EventLogWriter } from "../../base/lookup/event-logs.ts";
import type { ActorContext } from "../context.ts";
import { userOf } from "../core/called-workflow.ts";
import { isErased } from "../core/erasure.ts";
import { type JournalEntry, type JournalRow, lastSeq } from "../core/journal-entry.ts";
import type { Numbered } from "../core/record/fold.ts";
import { incidentOf, mayBeIncident } from "../core/record/incidents.ts";
import type { ConversationIdentity } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import { agentReplies } from "../core/turn-operations.ts";
import { timelineEntry } from "../reads/projections.ts";
import { journalEntryView } from "../reads/views.ts";
import type { JournalCopyContext, JournalTarget } from "./journal-projection.ts";

type EventsContext = JournalCopyContext & Pick<ActorContext, "events">;

/** Length of the entries and texts in one publication, unless one entry has more. */
const MAX_LENGTH = 128 * 1024;
/** Most messages of a publication. */
const MAX_TEXTS = 64;
/** Rows of the journal in one read. */
const SLICE = 64;

export class EventsTarget implements JournalTarget<EventLogWriter> {
  constructor(private readonly context: EventsContext) {}

  readonly find = () => this.context.events();

  async published(log: EventLogWriter): Promise<number> {
    const { tenant, id } = this.context.runtime.state.record;
    return log.published(tenant, id);
  }

  async put(log: EventLogWriter, rows: readonly JournalRow[], upTo: number): Promise<number> {
    const { runtime } = this.context;
    const { tenant } = runtime.state.record;
    const publications = this.#publications(rows, upTo + 1);
    const isErasing = rows.some(({ entries }) => entries.some(({ type }) => type === "entry.erased"));
    if (isErasing) await this.#replace(log, upTo);
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
    const { runtime } = this.context;
    for (let from = 1; from <= upTo; ) {
      if (!runtime.exists) return;
      const rows = runtime.store.journal.forward(from, SLICE);
      const last = rows.at(-1);
      if (last === undefined) return;
      for (const publication of this.#publications(rows, from))
        if (runtime.exists) await log.replace(runtime.state.record.tenant, publication);
      from = lastSeq(last) + 1;
    }
  }

  /** Returns the publications of rows from an entry on. */
  #publications(rows: readonly JournalRow[], from: number): Publication[] {
    const { state } = this.context.runtime;
    const { id: conversationId, projectId, participants, listed } = state.record;
    const people = participants.flatMap(({ type, id }) => (type === "user" ? [id] : []));
    const readers = listed === false ? [] : people.sort();
    const turns = new Map<number, Turn | null>();
    const publications: (Publication & { entries: PublishedEntry[] })[] = [];
    let [length, texts] = [0, 0];
    for (const { seq, at, entries } of rows) {
      for (const [index, entry] of entries.entries()) {
        if (seq + index < from) continue;
        const published = this.#entry(entry, seq + index, at, turns);
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
        const place = { from: seq + index, newest: state.seq };
        publications.push({ conversationId, projectId, readers, ...place, entries: [published] });
      }
    }
    return publications;
  }

  #entry(entry: JournalEntry, seq: number, at: number, turns: Map<number, Turn | null>): PublishedEntry {
    const { runtime } = this.context;
    const n = entry.turn;
    if (n !== undefined && !turns.has(n)) turns.set(n, runtime.turn(n));
    const turn = (n === undefined ? null : turns.get(n)) ?? undefined;
    const { seq: _seq, time: _time, data, ...view } = journalEntryView(entry, seq, at, turn);
    const isShort = data === undefined || JSON.stringify(data).length <= MAX_LOGGED_DATA;
    const code = codeOf({ entry, seq, at }, runtime.state.record, turn);
    const texts = turn === undefined ? [] : textsOf(runtime.state.record, turn, entry.type);
    return {
      ...{ ...view, at, ...defined({ agentId: turn?.agentId, data: isShort ? data : undefined, code }) },
      ...(isShort ? {} : { dataOmitted: true as const }),
      ...(texts.length === 0 ? {} : { texts }),
    };
  }
}

/** A code of errors. Other texts could be words of people (LOGGED-3). */
const CODE = /^[A-Z][A-Z0-9_]{0,63}$/;

/** Returns the code of an entry that is an incident. */
function codeOf(
  numbered: Numbered,
  record: ConversationIdentity,
  turn: Turn | undefined,
): string | undefined {
  const { type } = numbered.entry;
  if (!mayBeIncident(type)) return undefined;
  const { data } = timelineEntry(numbered, { record, turnOf: () => turn });
  // SAFETY: the data of a view are plain data.
  const { code } = incidentOf(type, data as Json | undefined) ?? {};
  return code !== undefined && CODE.test(code) ? code : undefined;
}

/** Returns the messages that an entry completes. */
function textsOf(record: ConversationIdentity, turn: Turn, type: JournalEntry["type"]): PublishedText[] {
  const message = (role: PublishedText["role"], item: number, at: number, text: string): PublishedText[] =>
    isErased(turn, item) || text.trim() === ""
      ? []
      : [
          {
            ...{ turnId: turnId(turn), messageId: messageId(turn, item), agentId: turn.agentId },
            ...{ ...defined({ userId: userOf(record, turn) }), role, at, text: cut(text, MAX_SEARCHED_TEXT) },
          },
        ];
  if (type === "turn.started") {
    const role = turn.caller.type === "agent" ? "agent" : "user";
    return message(role, 0, turn.createdAt, plainText(turn.input));
  }
  if (type !== "turn.completed" && type !== "turn.failed") return [];
  return agentReplies(turn)
    .slice(-MAX_SEARCHED_ANSWERS)
    .flatMap(({ item, at, text }) => message("agent", item, at, text));
}
