/** One entry of the journal. Open, it shows its data and the chain of its causes. */
import { useCallback, useState } from "react";
import type { JournalEntryView } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { durationText, messageOf } from "../../format.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { entryPreview, KIND_TEXT } from "../../inspector/incident-texts.ts";
import { ErrorNote } from "../error-note.tsx";
import { JsonView } from "../json-view.tsx";

/** Entries of a chain that are shown. */
const MAX_CAUSES = 12;

interface EntryRowProps {
  entry: JournalEntryView;
  conversationId: string;
  /** The beginning of the turn. */
  from: string;
  /** A word before the type, such as the kind of an incident. */
  mark?: string;
}

export function EntryRow({ entry, conversationId, from, mark }: EntryRowProps) {
  const [open, setOpen] = useState(false);
  const { seq, type, time } = entry;
  const isStop = mark === KIND_TEXT.stop;
  const isBad = !isStop && /failed|refused|exceeded|interrupted|denied/.test(type);
  return (
    <li data-testid="entry" data-type={type}>
      <details
        onToggle={(event) => {
          if (event.target === event.currentTarget) setOpen(event.currentTarget.open);
        }}
        className="px-3 text-xs"
      >
        <summary className="grid grid-cols-[3rem_minmax(0,1fr)_auto] items-baseline gap-x-3 py-1.5 sm:grid-cols-[3rem_minmax(0,16rem)_minmax(0,1fr)_auto] pointer-coarse:py-2.5 [&::-webkit-details-marker]:hidden">
          <span className="text-muted tabular-nums">{seq}</span>
          <span className={`min-w-0 font-mono wrap-anywhere ${isBad ? "text-danger" : ""}`}>
            {mark !== undefined && (
              <span className={`mr-2 font-sans font-medium ${isStop ? "text-muted" : "text-danger"}`}>
                {mark}
              </span>
            )}
            {type}
          </span>
          <span className="min-w-0 truncate text-muted max-sm:order-last max-sm:col-span-2 max-sm:col-start-2 max-sm:empty:hidden">
            {entryPreview(entry)}
          </span>
          <time dateTime={time} title={time} className="text-right text-muted tabular-nums">
            +{durationText(Math.max(0, Date.parse(time) - Date.parse(from)))}
          </time>
        </summary>
        {open && (
          <div className="space-y-3 pb-3 sm:pl-15">
            {type.startsWith("policy.") && <p className="wrap-anywhere">{entryPreview(entry)}</p>}
            <JsonView label="Entry" value={entry} />
            <Causes conversationId={conversationId} seq={seq} />
          </div>
        )}
      </details>
    </li>
  );
}

function Causes({ conversationId, seq }: { conversationId: string; seq: number }) {
  const load = useCallback(
    (signal: AbortSignal) => client.conversations.causes(conversationId, seq, { limit: MAX_CAUSES, signal }),
    [conversationId, seq],
  );
  const { value, error, reload } = useResource(load);
  if (error !== undefined) return <ErrorNote text={messageOf(error)} onRetry={reload} />;
  if (value === undefined || value.entries.length < 2) return null;
  return (
    <figure data-testid="causes">
      <figcaption className="mb-1 font-medium text-muted">Causes, the nearest first</figcaption>
      <ol className="space-y-0.5">
        {value.entries.slice(1).map((cause) => (
          <li key={cause.seq} className="grid grid-cols-[2.5rem_minmax(0,1fr)] gap-x-2">
            <span className="text-muted tabular-nums">{cause.seq}</span>
            <span className="min-w-0 wrap-anywhere">
              <span className="font-mono">{cause.type}</span>{" "}
              <span className="text-muted">{entryPreview(cause).slice(0, 200)}</span>
            </span>
          </li>
        ))}
      </ol>
    </figure>
  );
}
