/** A button below a turn that opens a dialog about it. */
import { type ReactNode, useCallback, useState } from "react";

/** The look of the actions below a turn. */
export const ACTION =
  "inline-flex items-center gap-1 rounded-lg px-1.5 py-1 text-xs text-muted hover:bg-sunken hover:text-ink disabled:opacity-60 pointer-coarse:py-2.5";

interface TurnButtonProps {
  text: string;
  /** Completes the text for screen readers. */
  about: string;
  testId: string;
  /** Returns the dialog. */
  dialog: (onClose: () => void) => ReactNode;
}

export function TurnButton({ text, about, testId, dialog }: TurnButtonProps) {
  const [open, setOpen] = useState(false);
  const close = useCallback(() => setOpen(false), []);
  return (
    <div aria-live="off">
      <button
        type="button"
        onClick={() => setOpen(true)}
        aria-haspopup="dialog"
        data-testid={testId}
        className={ACTION}
      >
        {text}
        <span className="sr-only"> {about}</span>
      </button>
      {open && dialog(close)}
    </div>
  );
}
