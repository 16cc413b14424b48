/** Retries a failed run. If effects may happen twice, it needs a second click. */
import type { RunView } from "../../../src/client/index.ts";
import { ConfirmedButton } from "./confirmed-button.tsx";

interface RetryRunProps {
  retry: NonNullable<RunView["retry"]>;
  /** Rejects if the run cannot be retried. */
  onRetry: (options: { repeatOnce: boolean }) => Promise<unknown>;
  onError: (error: unknown) => void;
}

export function RetryRun({ retry: { repeatsOnce }, onRetry, onError }: RetryRunProps) {
  const repeatOnce = repeatsOnce.length > 0;
  return (
    <ConfirmedButton
      texts={{
        idle: "Retry run",
        asking: `Repeat the effects of ${namesText(repeatsOnce)}?`,
        working: "Retrying…",
      }}
      needsSecond={repeatOnce}
      className="text-accent"
      testId="retry-run"
      onConfirm={() => onRetry({ repeatOnce })}
      onError={onError}
    />
  );
}

function namesText([first = "", ...others]: readonly string[]): string {
  return others.length === 0 ? first : `${first} and ${others.length} more`;
}
