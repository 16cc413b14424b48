/** A button below a turn that answers its message again. The answers so far stay readable as earlier versions. */
import { useState } from "react";
import { Icon } from "./icon.tsx";
import { ACTION } from "./turn-button.tsx";

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
      <button type="button" onClick={ask} disabled={isAsking} data-testid="answer-again" className={ACTION}>
        <Icon name="retry" className="size-3.5" />
        Answer again
      </button>
      {problem !== undefined && (
        <p role="alert" className="text-xs text-danger">
          {problem}
        </p>
      )}
    </>
  );
}
