/** States that the conversation is stopped, with a button to resume it. Screen readers announce it when it appears. */
import { Icon } from "./icon.tsx";

interface StoppedBarProps {
  stopped: boolean;
  resuming: boolean;
  onResume: () => void;
}

export function StoppedBar({ stopped, resuming, onResume }: StoppedBarProps) {
  return (
    <div className="mx-auto w-full max-w-3xl shrink-0 px-4">
      <div
        className={
          stopped
            ? "mt-2 flex items-center gap-3 rounded-2xl border border-line bg-sunken p-3 pl-4 text-sm"
            : ""
        }
      >
        <div role="status" className="min-w-0 flex-1">
          {stopped && (
            <p className="flex items-start gap-2.5">
              <Icon name="stop" className="mt-1 size-3 fill-current" />
              <span>
                <span className="font-medium">This conversation is stopped.</span> Resume it to send messages.
              </span>
            </p>
          )}
        </div>
        {stopped && (
          <button
            type="button"
            disabled={resuming}
            onClick={onResume}
            data-testid="resume"
            className="shrink-0 rounded-xl bg-accent px-4 py-2 font-medium text-on-accent disabled:bg-line disabled:text-muted"
          >
            {resuming ? "Resuming…" : "Resume"}
          </button>
        )}
      </div>
    </div>
  );
}
