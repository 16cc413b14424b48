/** The editor of a sent message. Saving it begins a new version of its turn. */
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { messageOf } from "../format.ts";
import { ErrorNote } from "./error-note.tsx";

interface EditMessageProps {
  text: string;
  /** Resolves when the new turn has begun; rejects with an error to show. */
  onSave: (text: string) => Promise<unknown>;
  onClose: () => void;
}

export function EditMessage({ text: before, onSave, onClose }: EditMessageProps) {
  const [text, setText] = useState(before);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => field.current?.focus(), []);

  async function save() {
    if (text.trim() === "" || isBusy) return;
    setBusy(true);
    setError("");
    try {
      await onSave(text.trim());
      onClose();
    } catch (reason) {
      setError(messageOf(reason));
      setBusy(false);
    }
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") onClose();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void save();
  }

  return (
    <div data-testid="edit-message" className="ml-auto w-full max-w-[85%] space-y-2">
      <textarea
        ref={field}
        rows={3}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        aria-label="Edit message"
        className="block w-full rounded-2xl border border-accent bg-surface px-4 py-2.5 text-base leading-relaxed sm:text-sm"
      />
      <p className="text-xs text-muted">The answer and everything after it stay as an earlier version.</p>
      <div className="flex justify-end gap-2">
        <button
          type="button"
          onClick={onClose}
          className="rounded-lg border border-line px-3 py-1.5 text-sm hover:bg-sunken"
        >
          Cancel
        </button>
        <button
          type="button"
          disabled={text.trim() === "" || isBusy}
          onClick={() => void save()}
          className="rounded-lg bg-accent px-3 py-1.5 text-sm font-medium text-on-accent disabled:bg-line disabled:text-muted"
        >
          {isBusy ? "Sending…" : "Send"}
        </button>
      </div>
      {error !== "" && <ErrorNote text={error} />}
    </div>
  );
}
