/** Stops the answers in progress. It is disabled until they have ended. */
import { Icon } from "./icon.tsx";

interface StopButtonProps {
  label: string;
  stopping: boolean;
  onStop: () => void;
}

export function StopButton({ label, stopping, onStop }: StopButtonProps) {
  const name = stopping ? "Stopping…" : label;
  return (
    <button
      type="button"
      disabled={stopping}
      onClick={onStop}
      aria-label={name}
      title={name}
      data-testid="stop"
      className="flex size-9 shrink-0 items-center justify-center rounded-xl bg-ink text-canvas disabled:bg-line disabled:text-muted"
    >
      {stopping ? (
        <Icon name="spinner" className="spin size-5" />
      ) : (
        <Icon name="stop" className="size-4 fill-current" />
      )}
    </button>
  );
}
