/** The entries of a turn in the journal, with their content. */
import { useState } from "react";
import type { JournalEntryView, TurnView } from "../../../../src/client/index.ts";
import { messageOf } from "../../format.ts";
import { useTurnEntries } from "../../hooks/use-turn-entries.ts";
import { ErrorNote } from "../error-note.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";
import { EntryRow } from "./entry-row.tsx";

/** Entries that the button adds at a time. */
const PAGE_ROWS = 100;

export function JournalView({ turn: { conversationId, id, createdAt } }: { turn: TurnView }) {
  const { value, error, reload, searchMore } = useTurnEntries(conversationId, id, createdAt);
  const [shown, setShown] = useState(PAGE_ROWS);
  if (error !== undefined) return <ErrorNote text={messageOf(error)} onRetry={reload} />;
  if (value === undefined) return <Loading label="Loading the journal" />;
  const { entries, more } = value;
  return (
    <section aria-label="Journal" data-testid="journal" className="space-y-2">
      {more && <LoadMore text="Search older entries, too" onClick={searchMore} />}
      <EntryList entries={entries.slice(0, shown)} conversationId={conversationId} from={createdAt} />
      {entries.length > shown && (
        <LoadMore
          text={`Show ${Math.min(PAGE_ROWS, entries.length - shown)} more of ${entries.length} entries`}
          onClick={() => setShown(shown + PAGE_ROWS)}
        />
      )}
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
