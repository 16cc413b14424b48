/** The incidents of a turn, each with its causes. */
import { useCallback } from "react";
import type { Incident, TurnView } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { messageOf } from "../../format.ts";
import { type PageOptions, usePages } from "../../hooks/use-pages.ts";
import { KIND_TEXT } from "../../inspector/incident-texts.ts";
import { ErrorNote } from "../error-note.tsx";
import { LoadMore } from "../load-more.tsx";
import { Loading } from "../loading.tsx";
import { EntryRow } from "./entry-row.tsx";

export function IncidentsView({ turn: { conversationId, id, createdAt } }: { turn: TurnView }) {
  const load = useCallback(
    async (page: PageOptions) => {
      const { incidents, ...rest } = await client.conversations.incidents(conversationId, {
        turn: id,
        ...page,
      });
      return { items: incidents, ...rest };
    },
    [conversationId, id],
  );
  const { value: incidents, error, more, loadMore, reload } = usePages<Incident>(load);
  if (error !== undefined) return <ErrorNote text={messageOf(error)} onRetry={reload} />;
  if (incidents === undefined) return <Loading label="Loading incidents" />;
  return (
    <section aria-label="Incidents" data-testid="incidents" className="space-y-2">
      {incidents.length === 0 && !more && (
        <p className="px-1 py-2 text-sm text-muted">No incidents: no failure, retry, refusal or stop.</p>
      )}
      {incidents.length > 0 && (
        <ol aria-label="Incidents" className="divide-y divide-line rounded-xl border border-line bg-surface">
          {incidents.map((incident) => (
            <EntryRow
              key={incident.seq}
              entry={incident}
              conversationId={conversationId}
              from={createdAt}
              mark={KIND_TEXT[incident.kind] ?? incident.kind}
            />
          ))}
        </ol>
      )}
      {more && <LoadMore text="Search older entries, too" onClick={loadMore} />}
    </section>
  );
}
