/** Commits the files of a conversation with a message. Its outcome stays until the next commit. */
import { type FormEvent, useEffect, useRef, useState } from "react";
import { client } from "../../client.ts";
import { shortOid } from "../../files/commits.ts";
import { count, problemText } from "../../format.ts";
import { ErrorNote } from "../error-note.tsx";
import { FIELD, Field } from "../field.tsx";

interface CommitFormProps {
  conversationId: string;
  repo: string;
  /** Number of uncommitted files. */
  uncommitted: number;
  onCommitted: () => void;
}

export function CommitForm({ conversationId, repo, uncommitted, onCommitted }: CommitFormProps) {
  const [message, setMessage] = useState("");
  const [working, setWorking] = useState(false);
  const [error, setError] = useState<unknown>(undefined);
  const [done, setDone] = useState("");
  const outcome = useRef<HTMLParagraphElement>(null);
  // The form leaves the page, so the outcome gets the focus.
  useEffect(() => {
    if (done !== "") outcome.current?.focus();
  }, [done]);

  async function commit(event: FormEvent) {
    event.preventDefault();
    if (working) return;
    setWorking(true);
    setError(undefined);
    setDone("");
    try {
      const { commit, changes, note } = await client.workspaces.commit(conversationId, message.trim(), {
        repo,
      });
      setDone(note ?? `Committed ${count(changes.length, "file", "files")} as ${shortOid(commit ?? "")}.`);
      setMessage("");
      onCommitted();
    } catch (reason) {
      setError(reason);
    }
    setWorking(false);
  }

  return (
    <>
      {uncommitted > 0 && (
        <form
          onSubmit={(event) => void commit(event)}
          data-testid="commit-form"
          className="space-y-3 rounded-xl border border-line bg-surface p-4"
        >
          <h2 className="text-sm font-medium">{count(uncommitted, "file is", "files are")} not committed</h2>
          <Field label="Message of the commit">
            {(control) => (
              <textarea
                {...control}
                value={message}
                onChange={({ target }) => setMessage(target.value)}
                required
                maxLength={10_000}
                rows={2}
                placeholder="A short line, then details"
                className={FIELD}
              />
            )}
          </Field>
          <button
            type="submit"
            disabled={working || message.trim() === ""}
            className="rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent disabled:bg-line disabled:text-muted"
          >
            {working ? "Committing…" : `Commit ${count(uncommitted, "file", "files")}`}
          </button>
        </form>
      )}
      {error !== undefined && <ErrorNote text={problemText(error)} />}
      <p
        ref={outcome}
        tabIndex={-1}
        role="status"
        data-testid="committed"
        className="rounded-lg px-1 text-sm text-accent empty:hidden"
      >
        {done}
      </p>
    </>
  );
}
