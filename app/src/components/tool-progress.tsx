/** The second line of a running tool's card: its progress, its attempt, and the deadline of its result. */
import type { OperationState } from "../../../src/client/index.ts";
import { momentOf, progressOf } from "../format.ts";

export function ToolProgress({ operation }: { operation: OperationState }) {
  const { name, progress, attempt = 1, deferredUntil } = operation;
  const { text, fraction } = progressOf(progress);
  if (text === "" && attempt === 1 && deferredUntil === undefined) return null;
  return (
    <span
      data-testid="tool-progress"
      className="flex w-full min-w-0 flex-wrap items-center gap-x-3 gap-y-1 pl-6 text-xs text-muted"
    >
      {fraction !== undefined && (
        <progress
          value={fraction}
          max={1}
          aria-label={`Progress of ${name}`}
          className="h-1.5 min-w-16 flex-1 basis-24 appearance-none overflow-hidden rounded-full bg-line sm:max-w-48 [&::-moz-progress-bar]:bg-accent [&::-webkit-progress-bar]:bg-line [&::-webkit-progress-value]:bg-accent"
        />
      )}
      {text !== "" && <span className="max-w-full truncate">{text}</span>}
      {attempt > 1 && <span>Attempt {attempt}</span>}
      {deferredUntil !== undefined && (
        <span>
          until <time dateTime={deferredUntil}>{momentOf(deferredUntil, new Date())}</time>
        </span>
      )}
    </span>
  );
}
