/** Cancels a run, after a second click. */
import { ConfirmedButton } from "./confirmed-button.tsx";

interface CancelRunProps {
  /** Rejects if the run cannot be cancelled. */
  onCancel: () => Promise<unknown>;
  onError: (error: unknown) => void;
}

export function CancelRun({ onCancel, onError }: CancelRunProps) {
  return (
    <ConfirmedButton
      texts={{ idle: "Cancel run", asking: "Cancel it for good?", working: "Cancelling…" }}
      needsSecond={true}
      className="text-caution"
      testId="cancel-run"
      onConfirm={onCancel}
      onError={onError}
    />
  );
}
