/** An error message, with a button to try again if that is possible, and a button to hide it. */
import { Icon } from "./icon.tsx";

interface ErrorNoteProps {
  text: string;
  onRetry?: () => void;
  onClose?: () => void;
}

export function ErrorNote({ text, onRetry, onClose }: ErrorNoteProps) {
  return (
    <div role="alert" className="flex items-start gap-3 rounded-xl bg-danger-tint p-4 text-sm text-danger">
      <Icon name="alert" className="mt-0.5" />
      <p className="min-w-0 flex-1 whitespace-pre-line wrap-anywhere">{text}</p>
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry} className="font-medium underline underline-offset-2">
          Try again
        </button>
      )}
      {onClose !== undefined && (
        <button type="button" onClick={onClose} aria-label="Hide this error" className="-m-2 rounded-lg p-2">
          <Icon name="cross" />
        </button>
      )}
    </div>
  );
}
