/** What else is to be known of a turn: attempts that failed, and what went wrong without stopping it. */
import type { TurnState } from "../../../src/client/index.ts";
import { Icon } from "./icon.tsx";

export function TurnNotes({ turn }: { turn: TurnState }) {
  const { retrying, retries, status, issues } = turn;
  const last = retries.at(-1);
  if (retrying && last !== undefined) {
    return (
      <p
        data-testid="retry-notice"
        className="flex items-start gap-2 rounded-xl bg-caution-tint px-4 py-3 text-sm text-caution"
      >
        <Icon name="spinner" className="spin mt-0.5" />
        <span className="min-w-0 wrap-anywhere">Retrying… {last.message}</span>
      </p>
    );
  }
  const notes = [
    ...(retries.length > 0 && status !== "failed"
      ? [`Answered after ${count(retries.length, "retry", "retries")}`]
      : []),
    ...(issues?.toolFailures ? [count(issues.toolFailures, "tool call failed", "tool calls failed")] : []),
    ...(issues?.memoryExtractionFailed === true ? ["Nothing was kept in memory: extraction failed"] : []),
  ];
  return notes.length === 0 || status === "active" ? null : (
    <p className="text-xs text-muted">{notes.join(" · ")}</p>
  );
}

function count(n: number, one: string, many: string): string {
  return `${n} ${n === 1 ? one : many}`;
}
