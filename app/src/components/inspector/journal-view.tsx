/** The entries of a turn in the journal, with their content. */
import { useCallback } from "react";
import type { JournalEntryView, TurnView } from "../../../../src/client/index.ts";
import { defined } from "../../../../src/shared/defined.ts";
import { client } from "../../client.ts";
import { messageOf } from "../../format.ts";
import { type PageOptions, usePages } from "../../hooks/use-pages.ts";
import { ErrorNote } from "../error-note.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";
import { EntryRow } from "./entry-row.tsx";

/** Entries that the button adds at a time. */
const PAGE_ROWS = 100;

export function JournalView({ turn: { conversationId, id, createdAt } }: { turn: TurnView }) {
  const load = useCallback(
    async (page: PageOptions) => {
      const { entries, nextCursor } = await client.conversations.projection(conversationId, "timeline", {
        ...page,
        ...{ turn: id, limit: PAGE_ROWS, order: "asc" },
      });
      return { items: entries, ...defined({ nextCursor }) };
    },
    [conversationId, id],
  );
  const { value: entries, error, more, loadMore, reload } = usePages<JournalEntryView>(load);
  if (error !== undefined) return <ErrorNote text={messageOf(error)} onRetry={reload} />;
  if (entries === undefined) return <Loading label="Loading the journal" />;
  return (
    <section aria-label="Journal" data-testid="journal" className="space-y-2">
      <EntryList entries={entries} conversationId={conversationId} from={createdAt} />
      {more && <LoadMore onClick={loadMore} />}
    </section>
  );
}

interface EntryListProps {
  entries: readonly JournalEntryView[];
  conversationId: string;
  /** The beginning of the turn. */
  from: string;
}

function EntryList({ entries, conversationId, from }: EntryListProps) {
  if (entries.length === 0) return <p className="px-1 py-2 text-sm text-muted">No entries.</p>;
  return (
    <ol aria-label="Entries" className="divide-y divide-line rounded-xl border border-line bg-surface">
      {entries.map((entry) => (
        <EntryRow key={entry.seq} entry={entry} conversationId={conversationId} from={from} />
      ))}
    </ol>
  );
}
