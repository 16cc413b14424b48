/** Finds active turns that are stuck. Pure. */
import type { ConversationState } from "../../src/agents/conversation/core/state.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { openOperations } from "../../src/agents/conversation/core/turn-operations.ts";
import { waitOf } from "../../src/agents/conversation/core/waits.ts";

/** Returns the numbers of stuck turns: active turns without work, an operation, a deadline or a turn to wait for. */
export function unnamedWaits({ active }: ConversationState): number[] {
  const turns = [...active.values()];
  return turns.filter((turn) => !isAccountedFor(turn, turns)).map(({ n }) => n);
}

function isAccountedFor(turn: Turn, turns: readonly Turn[]): boolean {
  if (turn.queued) return turns.some(({ n, queued }) => n !== turn.n && !queued);
  if (turn.call !== null || turn.assembly !== undefined) return true;
  // The next cycle waits for other turns.
  if (waitOf(turn) === "cycle") return turns.some((other) => other !== turn);
  const open = openOperations(turn);
  return (
    open.length > 0 &&
    open.every(({ target, status, deadline }) => {
      return deadline !== undefined || (target === "code" && status === "pending");
    })
  );
}
