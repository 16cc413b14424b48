/** Ends a conversation permanently. A note states that it has ended. */
import { ConfirmedAction } from "./confirmed-action.tsx";

interface EndButtonProps {
  /** Rejects if the conversation cannot be ended. */
  onEnd: () => Promise<unknown>;
}

export function EndButton({ onEnd }: EndButtonProps) {
  return (
    <ConfirmedAction
      texts={{ idle: "End conversation", asking: "End it for good?", working: "Ending…" }}
      className="text-caution"
      testId="end"
      note="Answers in progress stop. You can still read it."
      onConfirm={onEnd}
    />
  );
}

export function EndedNote() {
  return (
    <div className="mx-auto w-full max-w-3xl shrink-0 px-4">
      <p role="status" className="mt-2 rounded-2xl bg-sunken p-3 pl-4 text-sm text-muted" data-testid="ended">
        This conversation has ended. Start a new conversation to continue.
      </p>
    </div>
  );
}
