/** A button below a turn that answers its message again. The answers so far stay readable as earlier versions. */
import { useState } from "react";
import { IconButton } from "./icon-button.tsx";

/** Resolves when the new turn has begun; rejects with an error to show. */
export function AnswerAgain({ onRegenerate }: { onRegenerate: () => Promise<unknown> }) {
  const [isAsking, setIsAsking] = useState(false);
  const [problem, setProblem] = useState<string>();
  const ask = () => {
    setIsAsking(true);
    setProblem(undefined);
    onRegenerate()
      .catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)))
      .finally(() => setIsAsking(false));
  };
  return (
    <>
      <IconButton
        icon="retry"
        name="Answer again"
        onClick={ask}
        disabled={isAsking}
        data-testid="answer-again"
      />
      {problem !== undefined && (
        <p role="alert" className="w-full text-xs text-danger wrap-anywhere">
          {problem}
        </p>
      )}
    </>
  );
}
