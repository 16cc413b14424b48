/** The actions that change the place of a conversation in the lists: rename, pin and archive. Pins and the archive are the reader's own. */
import { type FormEvent, useEffect, useState } from "react";
import type { ConversationSummary } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { problemText } from "../format.ts";
import { ErrorNote } from "./error-note.tsx";
import { FIELD, Field } from "./field.tsx";

/** The newest archived conversations that the page knows. */
const MAX_ARCHIVED = 200;

interface ListingActionsProps {
  id: string;
  /** The row of the open list; `null` if its pages do not have it, `undefined` while it loads. */
  listed: ConversationSummary | null | undefined;
  title: string;
  /** Renames the conversation; absent if it has ended, or an agent opened it. */
  onRename: ((title: string) => Promise<unknown>) | undefined;
  /** Called when the lists have changed. */
  onChanged: () => void;
}

export function ListingActions({ id, listed, title, onRename, onChanged }: ListingActionsProps) {
  const [error, setError] = useState<unknown>(undefined);
  const run = async (action: () => Promise<unknown>) => {
    setError(undefined);
    try {
      await action();
      onChanged();
    } catch (reason) {
      setError(reason);
    }
  };
  const { conversations } = client;
  const isPinned = listed?.pinned === true;
  const isArchived = useIsArchived(id, listed === null);
  return (
    <div className="space-y-3 px-3 py-3">
      {onRename !== undefined && (
        <TitleForm key={title} title={title} onRename={(next) => run(() => onRename(next))} />
      )}
      <div className="flex gap-2">
        <ListButton
          testId="pin"
          text={isPinned ? "Unpin" : "Pin"}
          onClick={() => run(() => (isPinned ? conversations.unpin(id) : conversations.pin(id)))}
        />
        <ListButton
          testId="archive"
          text={isArchived ? "Remove from archive" : "Archive"}
          onClick={() => run(() => (isArchived ? conversations.unarchive(id) : conversations.archive(id)))}
        />
      </div>
      <p className="text-xs text-muted">
        Only your list changes. An archived conversation returns with its next message.
      </p>
      {error !== undefined && <ErrorNote text={problemText(error)} />}
    </div>
  );
}

/** Reports whether the reader archived the conversation. Open lists omit it then, so it is read only if they do not have it. */
function useIsArchived(id: string, isMissing: boolean): boolean {
  const [isArchived, setArchived] = useState(false);
  useEffect(() => {
    setArchived(false);
    if (!isMissing) return;
    const controller = new AbortController();
    const { signal } = controller;
    client.conversations.list({ archived: true, sort: "activity", limit: MAX_ARCHIVED, signal }).then(
      ({ conversations }) => setArchived(conversations.some((one) => one.id === id)),
      // The list shows its own errors.
      () => undefined,
    );
    return () => controller.abort();
  }, [id, isMissing]);
  return isArchived;
}

function TitleForm({ title, onRename }: { title: string; onRename: (title: string) => Promise<void> }) {
  const [text, setText] = useState(title);
  const next = text.trim();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (next !== "" && next !== title) void onRename(next);
  };
  return (
    <form onSubmit={submit}>
      <Field label="Title">
        {(control) => (
          <div className="flex gap-2">
            <input
              {...control}
              className={FIELD}
              value={text}
              maxLength={200}
              data-testid="title"
              onChange={({ target }) => setText(target.value)}
            />
            <button
              type="submit"
              disabled={next === "" || next === title}
              className="shrink-0 rounded-lg border border-line px-3 text-sm hover:border-accent disabled:text-muted"
            >
              Rename
            </button>
          </div>
        )}
      </Field>
    </form>
  );
}

function ListButton({ text, testId, onClick }: { text: string; testId: string; onClick: () => void }) {
  return (
    <button
      type="button"
      onClick={onClick}
      data-testid={testId}
      className="rounded-lg border border-line px-3 py-1.5 text-sm hover:border-accent pointer-coarse:py-2.5"
    >
      {text}
    </button>
  );
}
