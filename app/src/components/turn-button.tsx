/** A button below a turn that opens a dialog about it. */
import { type ReactNode, useCallback, useState } from "react";

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
        className="rounded-lg py-1 text-xs text-accent underline pointer-coarse:py-2.5"
      >
        {text}
        <span className="sr-only"> {about}</span>
      </button>
      {open && dialog(close)}
    </div>
  );
}
