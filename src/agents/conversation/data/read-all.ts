/**
 * Runs all reads of an imported conversation before it becomes visible.
 *
 * BACKUP-15  An imported conversation becomes visible only if all its reads succeed: turns by id, pages of messages and of the journal, the
 *            spans of its trace, and its snapshot.
 */
import { z } from "zod";
import { contentSchema } from "../../../shared/content.ts";
import type { Page, PageOptions } from "../../../shared/page.ts";
import { type ConversationState, nextEvent } from "../core/state.ts";
import type { ConversationQueries } from "../reads/queries.ts";
import { spanViews } from "../reads/trace-reader.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";

/** Items of a page. */
const LIMIT = 100;
/** Attempts of an operation: more than any ever had. */
const MAX_ATTEMPTS = 1_000;

/** The members of a turn that readers count with, or take apart. The content of an erased message may have no parts. */
const turnSchema = z.looseObject({
  input: z.union([contentSchema, z.array(z.never())]),
  operations: z.array(z.looseObject({ name: z.string(), attempt: z.int().min(0).max(MAX_ATTEMPTS) })),
  replies: z.array(z.looseObject({ text: z.string() })),
});

/** Reads all of a conversation. Throws the errors of the reads, and an `Error` if lines are missing. */
export function readAll(
  store: ConversationDatabase,
  queries: ConversationQueries,
  state: ConversationState,
): void {
  let turns = 0;
  for (const { id } of pages((options) => queries.turns(options))) {
    const turn = queries.requireTurn(state, id);
    turnSchema.parse(turn);
    queries.view(state, turn);
    // A trace of many turns consists of the parts of each turn.
    spanViews(state.record, turn);
    turns += 1;
  }
  const { forkedFrom } = state.record;
  if (turns + (forkedFrom?.omitted ?? 0) !== state.turns) throw new Error("Turns are missing.");
  for (const _ of pages((options) => queries.messages(state, options)));
  for (const _ of pages((options) => queries.journal(state, options)));
  queries.snapshot(state, []);
  for (const { id: session } of state.record.agents)
    if (store.events.nextNumber(session) !== nextEvent(state.sessions, session))
      throw new Error(`Events of the session "${session}" are missing.`);
}

function* pages<Item>(read: (options: PageOptions) => Page<Item>): Generator<Item> {
  for (let cursor: string | undefined; ; ) {
    const page = read({ limit: LIMIT, order: "asc", ...(cursor === undefined ? {} : { cursor }) });
    yield* page.items;
    if (page.nextCursor === undefined) return;
    cursor = page.nextCursor;
  }
}
