/** The state of an active turn beside others: what it waits for, and a button that stops it alone. */
import { Icon } from "./icon.tsx";

interface TurnProgressProps {
  /** Turns that this one waits for; 0 if it runs. */
  waitsFor: number;
  /** The turn has answered, and its work in the background goes on. */
  inBackground: boolean;
  stopping: boolean;
  onStop: () => void;
}

export function TurnProgress({ waitsFor, inBackground, stopping, onStop }: TurnProgressProps) {
  const waits = waitsFor > 0;
  return (
    <div
      className={`-mt-2 flex items-center gap-1 text-xs text-muted ${waits ? "-mr-2 justify-end" : "-ml-2"}`}
    >
      {waits && (
        <p data-testid="queued" className="flex items-center gap-1.5">
          <Icon name="clock" className="size-3.5" />
          {waitsFor === 1 ? "Waits for 1 turn before it" : `Waits for ${waitsFor} turns before it`}
        </p>
      )}
      {inBackground && (
        <p data-testid="background" className="ml-2 flex items-center gap-1.5">
          <Icon name="clock" className="size-3.5" />
          Works in the background
        </p>
      )}
      <button
        type="button"
        disabled={stopping}
        onClick={onStop}
        aria-label={waits ? "Stop this message" : inBackground ? "Stop this work" : "Stop this answer"}
        className="flex items-center gap-1.5 rounded-lg px-2 py-1.5 font-medium pointer-coarse:py-2.5 enabled:hover:bg-sunken enabled:hover:text-ink"
      >
        {!waits && !inBackground && <Icon name="stop" className="size-3 fill-current" />}
        {stopping ? "Stopping…" : "Stop"}
      </button>
    </div>
  );
}
