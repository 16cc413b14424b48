/** An action that needs a second click, with a note about its consequences, and the error of a refusal. */
import { useState } from "react";
import { problemText } from "../format.ts";
import { ConfirmedButton } from "./confirmed-button.tsx";
import { ErrorNote } from "./error-note.tsx";

interface ConfirmedActionProps {
  texts: { idle: string; asking: string; working: string };
  className: string;
  testId: string;
  /** The consequences. */
  note: string;
  /** Rejects if the action is refused. */
  onConfirm: () => Promise<unknown>;
}

export function ConfirmedAction({ texts, className, testId, note, onConfirm }: ConfirmedActionProps) {
  const [error, setError] = useState<unknown>(undefined);
  return (
    <div className="space-y-2">
      <ConfirmedButton
        texts={texts}
        needsSecond={true}
        className={className}
        testId={testId}
        onConfirm={onConfirm}
        onError={setError}
      />
      <p className="text-xs text-muted">{note}</p>
      {error !== undefined && <ErrorNote text={problemText(error)} />}
    </div>
  );
}
