/** Cancels a run, after a second click. */
import { useState } from "react";

interface CancelRunProps {
  /** Rejects if the run cannot be cancelled. */
  onCancel: () => Promise<unknown>;
  onError: (error: unknown) => void;
}

export function CancelRun({ onCancel, onError }: CancelRunProps) {
  const [phase, setPhase] = useState<"idle" | "asking" | "cancelling">("idle");

  async function cancel() {
    if (phase === "idle") return setPhase("asking");
    setPhase("cancelling");
    try {
      await onCancel();
    } catch (error) {
      onError(error);
      setPhase("idle");
    }
  }

  return (
    <button
      type="button"
      disabled={phase === "cancelling"}
      onClick={() => void cancel()}
      onBlur={() => setPhase((now) => (now === "asking" ? "idle" : now))}
      data-testid="cancel-run"
      className="shrink-0 rounded-lg border border-line px-3 py-1.5 text-sm font-medium text-caution disabled:text-muted"
    >
      {phase === "idle" ? "Cancel run" : phase === "asking" ? "Cancel it for good?" : "Cancelling…"}
    </button>
  );
}
