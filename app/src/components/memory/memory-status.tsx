/** The state of an agent's memory: its size, its embedder, and the pending work of its stores. */
import type { MemoryStatus } from "../../../../src/client/index.ts";
import { countText, embedderText, pendingText } from "../../memory/memory-texts.ts";

export function MemoryStatusLine({ status }: { status: MemoryStatus }) {
  const pending = pendingText(status.pending, new Date());
  return (
    <div data-testid="memory-status" className="space-y-1 px-1 text-xs text-muted">
      <p className="wrap-anywhere">
        {countText(status)}. {embedderText(status.embedder)}.
      </p>
      {pending !== undefined && (
        <p
          data-testid="memory-pending"
          className={`wrap-anywhere ${status.pending.error === undefined ? "" : "text-caution"}`}
        >
          {pending}
        </p>
      )}
    </div>
  );
}
