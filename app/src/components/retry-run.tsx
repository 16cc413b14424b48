/** Retries a failed run. Where effects may happen twice, after a second click. */
import { useState } from "react";
import type { RunView } from "../../../src/client/index.ts";

interface RetryRunProps {
  retry: NonNullable<RunView["retry"]>;
  /** Rejects if the run cannot be retried. */
  onRetry: (options: { repeatOnce: boolean }) => Promise<unknown>;
  onError: (error: unknown) => void;
}

export function RetryRun({ retry: { repeatsOnce }, onRetry, onError }: RetryRunProps) {
  const [phase, setPhase] = useState<"idle" | "asking" | "retrying">("idle");
  const repeatOnce = repeatsOnce.length > 0;

  async function retry() {
    if (repeatOnce && phase === "idle") return setPhase("asking");
    setPhase("retrying");
    try {
      await onRetry({ repeatOnce });
    } catch (error) {
      onError(error);
      setPhase("idle");
    }
  }

  return (
    <button
      type="button"
      disabled={phase === "retrying"}
      onClick={() => void retry()}
      onBlur={() => setPhase((now) => (now === "asking" ? "idle" : now))}
      data-testid="retry-run"
      className="shrink-0 rounded-lg border border-line px-3 py-1.5 text-sm font-medium text-accent disabled:text-muted"
    >
      {phase === "idle"
        ? "Retry run"
        : phase === "asking"
          ? `Repeat the effects of ${namesText(repeatsOnce)}?`
          : "Retrying…"}
    </button>
  );
}

function namesText([first = "", ...others]: readonly string[]): string {
  return others.length === 0 ? first : `${first} and ${others.length} more`;
}
