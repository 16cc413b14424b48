/** The measurements of calls with outcomes that are not committed yet. Pure. */
import type { AttemptFacts, Signal } from "./signals.ts";
import type { SessionInCompaction } from "./state.ts";
import type { CallingTurn } from "./turn.ts";

/** Returns the measurements of a turn's model call with an `unsaved` outcome. */
export function unsavedFacts(
  unsaved: readonly Signal[],
  { n, call }: Pick<CallingTurn, "n" | "call">,
): AttemptFacts | undefined {
  for (const signal of unsaved) {
    const isModel = signal.type === "conversation.llm.completed" || signal.type === "conversation.llm.failed";
    if (isModel && signal.turn === n && signal.item === call.item && signal.attempt === call.attempt)
      return signal.facts;
  }
  return undefined;
}

/** Returns the measurements of a call for a summary with an `unsaved` outcome. */
export function unsavedSummary(
  unsaved: readonly Signal[],
  { session, compaction: { turn, call } }: SessionInCompaction,
): AttemptFacts | undefined {
  for (const signal of unsaved) {
    if (!("session" in signal) || signal.session !== session) continue;
    if (signal.begunBy === turn && signal.attempt === call.attempt) return signal.facts;
  }
  return undefined;
}
