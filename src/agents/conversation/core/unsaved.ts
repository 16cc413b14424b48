/** The measurements of calls with outcomes that are not committed yet. Pure. */
import { isAt, type RunningSideCall } from "./side-calls.ts";
import type { AttemptFacts, Signal } from "./signals.ts";
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

/** Returns the measurements of a side call with an `unsaved` outcome. */
export function unsavedSideCall(
  unsaved: readonly Signal[],
  running: RunningSideCall,
): AttemptFacts | undefined {
  for (const signal of unsaved) {
    if (!("session" in signal) || !isAt(signal, running)) continue;
    if (signal.begunBy === running.turn && signal.attempt === running.call.attempt) return signal.facts;
  }
  return undefined;
}
