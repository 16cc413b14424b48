/** The mark of a turn that was stopped, with a button to send its message again. */
import { Icon } from "./icon.tsx";

/** `onRetry` is absent if the message cannot be sent again now. */
export function TurnStopped({ onRetry }: { onRetry: (() => void) | undefined }) {
  return (
    <div data-testid="turn-stopped" className="flex items-center gap-1 text-sm text-muted">
      <Icon name="stop" className="mr-1 size-3 fill-current" />
      <p>Stopped</p>
      {onRetry !== undefined && (
        <button
          type="button"
          onClick={onRetry}
          className="ml-2 flex items-center gap-1.5 rounded-lg px-2 py-1.5 font-medium hover:bg-sunken hover:text-ink"
        >
          <Icon name="retry" />
          Try again
        </button>
      )}
    </div>
  );
}
