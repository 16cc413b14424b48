/** Where a message is written. Enter sends, Shift+Enter begins a line; a message that could not be taken stays. */
import { type KeyboardEvent, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Icon } from "./icon.tsx";

interface ComposerProps {
  /** `false`: not taken, the text stays. */
  onSend: (text: string) => boolean | Promise<boolean>;
  disabled?: boolean;
  note?: string | undefined;
}

export function Composer({ onSend, disabled = false, note }: ComposerProps) {
  const [text, setText] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);
  const empty = text.trim() === "";

  useEffect(() => {
    if (!disabled && window.matchMedia("(pointer: fine)").matches) field.current?.focus();
  }, [disabled]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text.
  useLayoutEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${element.scrollHeight}px`;
  }, [text]);

  async function submit() {
    if (empty || disabled) return;
    setText("");
    if (!(await onSend(text.trim()))) setText((newer) => (newer === "" ? text : newer));
  }

  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void submit();
  }

  return (
    <form
      className="mx-auto w-full max-w-3xl shrink-0 px-4 pt-2 pb-[max(1rem,env(safe-area-inset-bottom))]"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div className="flex items-end gap-2 rounded-2xl border border-line bg-surface p-2 shadow-xs focus-within:border-accent">
        <textarea
          ref={field}
          rows={1}
          value={text}
          disabled={disabled}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={onKeyDown}
          placeholder="Write a message"
          aria-label="Message"
          aria-describedby="composer-help"
          enterKeyHint="send"
          data-testid="composer"
          className="max-h-48 min-h-9 flex-1 resize-none bg-transparent px-2 py-1.5 outline-none placeholder:text-muted"
        />
        <button
          type="submit"
          disabled={empty || disabled}
          aria-label="Send"
          data-testid="send"
          className="flex size-9 shrink-0 items-center justify-center rounded-xl bg-accent text-on-accent disabled:bg-line disabled:text-muted"
        >
          <Icon name="send" className="size-5" />
        </button>
      </div>
      <p id="composer-help" className="mt-1.5 px-2 text-xs text-muted">
        {note ?? (
          <span className="pointer-coarse:hidden">
            <kbd className="font-sans">Enter</kbd> sends, <kbd className="font-sans">Shift+Enter</kbd> begins
            a new line
          </span>
        )}
      </p>
    </form>
  );
}
