/** A button that may need a second click. */
import { useState } from "react";

interface ConfirmedButtonProps {
  texts: { idle: string; asking: string; working: string };
  /** Without it one click suffices. */
  needsSecond: boolean;
  className: string;
  testId: string;
  /** Rejects if the action is refused. */
  onConfirm: () => Promise<unknown>;
  /** Gets the error of a refused action, and `undefined` when the action begins. */
  onError: (error: unknown) => void;
}

export function ConfirmedButton({
  texts,
  needsSecond,
  className,
  testId,
  onConfirm,
  onError,
}: ConfirmedButtonProps) {
  const [phase, setPhase] = useState<"idle" | "asking" | "working">("idle");

  async function click() {
    if (needsSecond && phase === "idle") return setPhase("asking");
    setPhase("working");
    onError(undefined);
    try {
      await onConfirm();
    } catch (error) {
      onError(error);
      setPhase("idle");
    }
  }

  return (
    <button
      type="button"
      disabled={phase === "working"}
      onClick={() => void click()}
      onBlur={() => setPhase((now) => (now === "asking" ? "idle" : now))}
      data-testid={testId}
      className={`shrink-0 rounded-lg border border-line px-3 py-1.5 text-sm font-medium disabled:text-muted ${className}`}
    >
      {texts[phase]}
    </button>
  );
}
