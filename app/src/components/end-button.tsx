/** Ends a conversation for good, after a second click, and says that it has ended. */
import { useState } from "react";
import { messageOf } from "../format.ts";
import { ConfirmedButton } from "./confirmed-button.tsx";
import { ErrorNote } from "./error-note.tsx";

interface EndButtonProps {
  /** Rejects if the conversation cannot be ended. */
  onEnd: () => Promise<unknown>;
}

export function EndButton({ onEnd }: EndButtonProps) {
  const [error, setError] = useState<unknown>(undefined);
  return (
    <div className="mt-1 space-y-1 border-t border-line px-3 pt-3 pb-2">
      <ConfirmedButton
        texts={{ idle: "End conversation", asking: "End it for good?", working: "Ending…" }}
        needsSecond={true}
        className="text-caution"
        testId="end"
        onConfirm={onEnd}
        onError={setError}
      />
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
