/** The state of an active turn: the reason for its wait, and a button that stops only this turn. */
import type { Wait } from "../turns.ts";
import { Icon } from "./icon.tsx";

interface TurnProgressProps {
  /** Number of turns that this turn waits for; 0 if it runs. */
  waitsFor: number;
  /** The turn waits only for operations. */
  wait: Wait | null;
  stopping: boolean;
  onStop: () => void;
}

const waits = {
  background: { text: "Works in the background", stop: "Stop this work" },
  approval: { text: "Waits for approval", stop: "Stop waiting for this approval" },
  person: { text: "Waits for a person", stop: "Stop waiting for this person" },
  result: { text: "Waits for a result", stop: "Stop waiting for this result" },
};

export function TurnProgress({ waitsFor, wait, stopping, onStop }: TurnProgressProps) {
  const isQueued = waitsFor > 0;
  const shown = wait === null ? undefined : waits[wait];
  return (
    <div
      className={`-mt-2 flex items-center gap-1 text-xs text-muted ${isQueued ? "-mr-2 justify-end" : "-ml-2"}`}
    >
      {isQueued && (
        <p data-testid="queued" className="flex items-center gap-1.5">
          <Icon name="clock" className="size-3.5" />
          {waitsFor === 1 ? "Waits for 1 turn before it" : `Waits for ${waitsFor} turns before it`}
        </p>
      )}
      {shown !== undefined && (
        <p data-testid={wait} className="ml-2 flex items-center gap-1.5">
          <Icon name="clock" className="size-3.5" />
          {shown.text}
        </p>
      )}
      <button
        type="button"
        disabled={stopping}
        onClick={onStop}
        aria-label={isQueued ? "Stop this message" : (shown?.stop ?? "Stop this answer")}
        className="flex items-center gap-1.5 rounded-lg px-2 py-1.5 font-medium pointer-coarse:py-2.5 enabled:hover:bg-sunken enabled:hover:text-ink"
      >
        {!isQueued && shown === undefined && <Icon name="stop" className="size-3 fill-current" />}
        {stopping ? "Stopping…" : "Stop"}
      </button>
    </div>
  );
}
