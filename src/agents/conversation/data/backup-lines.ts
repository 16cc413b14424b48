/** The lines of a conversation, as exports and forks write them. Each generator reads pages, so that memory holds one page at a time. */
import type { Head } from "../core/state.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";

/** Rows of one read. */
export const PAGE = 50;

/** A commit: the lines contain the conversation as of it. */
export interface Cut extends Pick<Head, "turns" | "sessions" | "active"> {
  /** The commit's last journal entry. */
  readonly seq: number;
}

/** Yields the rows of the journal, as they are stored. Calls `check` before each read. */
export function* journalLines(
  store: ConversationDatabase,
  { seq: newest }: Pick<Cut, "seq">,
  check: () => void,
) {
  for (let seq = 1; seq <= newest; ) {
    check();
    const rows = store.journal.raw(seq, PAGE).filter((row) => row.seq <= newest);
    for (const row of rows) yield { journal: row };
    const last = rows.at(-1);
    if (last === undefined) return;
    seq = last.seq + last.body.length - 1;
  }
}

export function* turnLines(store: ConversationDatabase, { turns, active }: Pick<Cut, "turns" | "active">) {
  const open = new Set(active);
  for (let n = 1; n <= turns; n++) {
    const found = open.has(n) ? null : store.turns.get(n);
    if (found !== null) yield { turn: found.turn };
  }
}

/** Yields the events of a session. Calls `check` before each read. */
export function* eventLines(
  store: ConversationDatabase,
  sessionId: string,
  { sessions }: Pick<Cut, "sessions">,
  check: () => void,
) {
  const before = Object.hasOwn(sessions, sessionId) ? sessions[sessionId] : 0;
  for (let from = 0; before !== undefined; ) {
    check();
    const events = store.events.load(sessionId, { from, before, limit: PAGE, tail: false });
    for (const event of events) yield { event };
    const last = events.at(-1);
    if (last === undefined) return;
    from = last.seq + 1;
  }
}
