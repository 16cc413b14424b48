/** Ends a conversation for good, after a second click, and says that it has ended. */
import { useState } from "react";
import { messageOf } from "../format.ts";
import { ErrorNote } from "./error-note.tsx";

interface EndButtonProps {
  /** Rejects if the conversation cannot be ended. */
  onEnd: () => Promise<unknown>;
}

export function EndButton({ onEnd }: EndButtonProps) {
  const [phase, setPhase] = useState<"idle" | "asking" | "ending">("idle");
  const [error, setError] = useState<unknown>(undefined);

  async function end() {
    if (phase === "idle") return setPhase("asking");
    setPhase("ending");
    setError(undefined);
    try {
      await onEnd();
    } catch (reason) {
      setError(reason);
      setPhase("idle");
    }
  }

  return (
    <div className="mt-1 border-t border-line px-3 pt-3 pb-2">
      <button
        type="button"
        disabled={phase === "ending"}
        onClick={() => void end()}
        onBlur={() => setPhase((now) => (now === "asking" ? "idle" : now))}
        data-testid="end"
        className="text-sm font-medium text-caution disabled:text-muted"
      >
        {phase === "idle" ? "End conversation" : phase === "asking" ? "End it for good?" : "Ending…"}
      </button>
      <p className="text-xs text-muted">Answers in progress stop. You can still read it.</p>
      {error !== undefined && <ErrorNote text={messageOf(error)} />}
    </div>
  );
}

export function EndedNote() {
  return (
    <div className="mx-auto w-full max-w-3xl shrink-0 px-4">
      <p role="status" className="mt-2 rounded-2xl bg-sunken p-3 pl-4 text-sm text-muted" data-testid="ended">
        This conversation has ended. Start a new one to go on.
      </p>
    </div>
  );
}
