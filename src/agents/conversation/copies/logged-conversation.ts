/**
 * The journal and the messages of a conversation, as the log of its tenant has them.
 *
 * LOGGED-1  The log has each entry of the journal, and the messages of each turn: the first with the begin of the turn, its answers with its
 *           end. So a withdrawn answer is never in the log.
 * LOGGED-3  An entry that is an incident has the code of its error. Messages of errors stay in the conversation.
 */
import {
  MAX_SEARCHED_ANSWERS,
  MAX_SEARCHED_TEXT,
  type PublishedEntry,
  type PublishedText,
} from "../../../protocol/event-log.ts";
import { messageId, turnId } from "../../../protocol/ids.ts";
import { plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { cut } from "../../../shared/text.ts";
import { type LoggedActor, loggedCode, loggedData } from "../../base/copies/events-target.ts";
import type { CopiedActor } from "../../base/copies/journal-copy.ts";
import type { ActorContext, StoredConversation } from "../context.ts";
import { userOf } from "../core/called-workflow.ts";
import { isErased } from "../core/erasure.ts";
import type { JournalEntry, JournalRow } from "../core/journal-entry.ts";
import type { Numbered } from "../core/record/fold.ts";
import { incidentOf, mayBeIncident } from "../core/record/incidents.ts";
import type { ConversationIdentity } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import { agentReplies } from "../core/turn-operations.ts";
import { timelineEntry } from "../reads/projections.ts";
import { journalEntryView } from "../reads/views.ts";

export type CopiedConversation = StoredConversation &
  CopiedActor<JournalRow> & { readonly store: { readonly turns: { erasedFrom(n: number): number[] } } };

export function loggedConversation(
  context: Pick<ActorContext, "eventLog"> & { runtime: CopiedConversation },
): LoggedActor<JournalEntry> {
  return {
    runtime: () => context.runtime,
    events: context.eventLog,
    address: () => context.runtime.state.record,
    head: () => {
      const { record, seq } = context.runtime.state;
      const { id: conversationId, projectId, participants, listed } = record;
      const people = participants.flatMap(({ type, id }) => (type === "user" ? [id] : []));
      const readers = listed === false ? [] : people.sort();
      return { conversationId, projectId, readers, newest: seq };
    },
    entries: () => {
      const { runtime } = context;
      const turns = new Map<number, Turn | null>();
      return (entry, seq, at) => {
        const n = entry.turn;
        if (n !== undefined && !turns.has(n)) turns.set(n, runtime.turn(n));
        const turn = (n === undefined ? null : turns.get(n)) ?? undefined;
        return publishedEntry(runtime.state.record, turn, { entry, seq, at });
      };
    },
    isErasure: ({ type }) => type === "entry.erased",
  };
}

function publishedEntry(
  record: ConversationIdentity,
  turn: Turn | undefined,
  numbered: Numbered,
): PublishedEntry {
  const { entry, seq, at } = numbered;
  const { seq: _seq, time: _time, data, ...view } = journalEntryView(entry, seq, at, turn);
  const texts = turn === undefined ? [] : textsOf(record, turn, entry.type);
  return {
    ...{ ...view, at, ...defined({ agentId: turn?.agentId }), ...loggedData(data) },
    ...loggedCode(codeOf(numbered, record, turn)),
    ...(texts.length === 0 ? {} : { texts }),
  };
}

function codeOf(
  numbered: Numbered,
  record: ConversationIdentity,
  turn: Turn | undefined,
): string | undefined {
  const { type } = numbered.entry;
  if (!mayBeIncident(type)) return undefined;
  const { data } = timelineEntry(numbered, { record, turnOf: () => turn });
  // SAFETY: the data of a view are plain data.
  return incidentOf(type, data as Json | undefined)?.code;
}

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
