/**
 * The editor of a message. Enter sends, Shift+Enter starts a new line, Escape stops the answers in progress. A message that
 * fails to send returns to the editor.
 */
import {
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
} from "react";
import type { Draft } from "../content.ts";
import { useDraft } from "../hooks/use-draft.ts";
import { ChosenFiles } from "./chosen-files.tsx";
import { Icon } from "./icon.tsx";
import { StopButton } from "./stop-button.tsx";

interface ComposerProps {
  /** Names the composer, for its draft. */
  place: string;
  /** Sends the draft. Resolves to `false` if that fails; the draft then returns to the editor. */
  onSend: (draft: Draft) => boolean | Promise<boolean>;
  /** Absent if no answer is in progress. */
  answering?: { count: number; stopping: boolean; onStop: () => void } | undefined;
  disabled?: boolean;
  placeholder?: string;
  note?: string | undefined;
  /** The rest of the conversation's budget. */
  budget?: string | undefined;
  /** Returns a line that names the agent that will answer a text, or `null` if the agent is obvious. */
  addressee?: (text: string) => ReactNode;
}

const EMPTY: Draft = { text: "", files: [] };

export function Composer(props: ComposerProps) {
  const { onSend, answering, disabled = false, note, budget, addressee } = props;
  const { placeholder = answering === undefined ? "Write a message" : "Write another message" } = props;
  const [{ text, files }, setDraft] = useDraft(props.place);
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);
  const empty = text.trim() === "" && files.length === 0;

  /** Puts the cursor into the editor, but not on a phone: the keyboard would cover the page. */
  const focus = useCallback(() => {
    if (window.matchMedia("(pointer: fine)").matches) field.current?.focus();
  }, []);

  useEffect(() => {
    // If a person types in another field, for example the search, the focus stays there.
    if (!disabled && !document.activeElement?.matches("input, textarea, select")) focus();
  }, [disabled, focus]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text.
  useLayoutEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight}px`;
  }, [text]);

  const write = (written: string) => setDraft((draft) => ({ ...draft, text: written }));
  const add = (chosen: Iterable<File>) =>
    setDraft((draft) => ({ ...draft, files: [...draft.files, ...chosen] }));
  const remove = (file: File) =>
    setDraft((draft) => ({ ...draft, files: draft.files.filter((other) => other !== file) }));

  async function submit() {
    if (empty || disabled) return;
    setDraft(() => EMPTY);
    if (await onSend({ text: text.trim(), files })) return;
    setDraft((newer) => (newer.text === "" && newer.files.length === 0 ? { text, files } : newer));
  }

  function stop() {
    if (answering === undefined || answering.stopping) return;
    answering.onStop();
    focus();
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape") stop();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void submit();
  }

  function onPaste(event: ClipboardEvent) {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  }

  function onDrop(event: DragEvent) {
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    add(event.dataTransfer.files);
  }

  return (
    <form
      className="mx-auto w-full max-w-3xl shrink-0 px-4 pt-2 pb-[max(1rem,env(safe-area-inset-bottom))]"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={onDrop}
    >
      <div className="rounded-2xl border border-line bg-surface p-2 shadow-xs focus-within:border-accent">
        <ChosenFiles files={files} onRemove={remove} />
        <div className="flex items-end gap-2">
          <input
            ref={chooser}
            type="file"
            multiple
            hidden
            data-testid="files"
            onChange={(event) => {
              add(event.target.files ?? []);
              event.target.value = "";
            }}
          />
          <button
            type="button"
            disabled={disabled}
            onClick={() => chooser.current?.click()}
            aria-label="Attach files"
            className="flex size-9 shrink-0 items-center justify-center rounded-xl text-muted hover:bg-sunken disabled:opacity-50"
          >
            <Icon name="clip" className="size-5" />
          </button>
          <textarea
            ref={field}
            rows={1}
            value={text}
            disabled={disabled}
            onChange={(event) => write(event.target.value)}
            onKeyDown={onKeyDown}
            onPaste={onPaste}
            placeholder={placeholder}
            aria-label="Message"
            aria-describedby="composer-help"
            enterKeyHint="send"
            data-testid="composer"
            className="max-h-48 min-h-9 flex-1 resize-none bg-transparent px-2 py-1.5 outline-none placeholder:text-muted"
          />
          {answering !== undefined && (
            <StopButton
              label={answering.count === 1 ? "Stop" : `Stop all ${answering.count} turns`}
              stopping={answering.stopping}
              onStop={stop}
            />
          )}
          {(answering === undefined || !empty) && (
            <button
              type="submit"
              disabled={empty || disabled}
              aria-label="Send"
              data-testid="send"
              className="flex size-9 shrink-0 items-center justify-center rounded-xl bg-accent text-on-accent disabled:bg-line disabled:text-muted"
            >
              <Icon name="send" className="size-5" />
            </button>
          )}
        </div>
      </div>
      {!disabled && addressee?.(text)}
      {budget !== undefined && (
        <p data-testid="budget" className="mt-1.5 px-2 text-xs text-muted sm:float-right">
          {budget}
        </p>
      )}
      <p id="composer-help" className={`mt-1.5 px-2 text-xs text-muted ${disabled ? "invisible" : ""}`}>
        {note ?? (
          <span className="pointer-coarse:hidden">
            <kbd className="font-sans">Enter</kbd> to send, <kbd className="font-sans">Shift+Enter</kbd> for a
            new line
            {answering !== undefined && (
              <>
                , <kbd className="font-sans">Esc</kbd> to stop
              </>
            )}
          </span>
        )}
      </p>
    </form>
  );
}
