/** The error of a failed turn, with a button to try again if that can help. */
import type { WireError } from "../../../src/client/index.ts";
import { Icon } from "./icon.tsx";

interface TurnErrorProps {
  error: WireError;
  /** Sends the message again; absent if the message is not loaded, or another client sent it. */
  onRetry: (() => void) | undefined;
}

export function TurnError({ error, onRetry }: TurnErrorProps) {
  return (
    <div
      data-testid="turn-error"
      data-retriable={error.retriable}
      className="flex flex-wrap items-start gap-3 rounded-xl bg-danger-tint px-4 py-3 text-sm text-danger sm:flex-nowrap"
    >
      <Icon name="alert" className="mt-0.5" />
      <div className="min-w-0 flex-1 basis-3/4 sm:basis-0">
        <p className="font-medium wrap-anywhere">{error.message}</p>
        <p className="mt-0.5">
          <span className="font-mono text-xs">{error.code}</span>
          {error.retriable ? " · You can retry." : " · Fix the cause before you retry."}
        </p>
      </div>
      {error.retriable && onRetry !== undefined && (
        <button
          type="button"
          onClick={onRetry}
          className="ml-7 flex shrink-0 items-center gap-1.5 rounded-lg border border-current/30 px-3 py-1.5 font-medium hover:border-current sm:ml-0"
        >
          <Icon name="retry" />
          Try again
        </button>
      )}
    </div>
  );
}
