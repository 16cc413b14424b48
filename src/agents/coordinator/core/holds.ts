/**
 * Waits of a run for people, including its sub-workflows and agents. Pure.
 *
 * HOLD-1  A run is held while one of its gates is open, or work below it is held. Its caller learns when the hold begins and ends, so time
 *         limits above the run exclude the hold.
 * HOLD-2  Of the messages about the same work, the message with the highest `seq` wins.
 */
import type { Draft } from "./draft.ts";
import type { RunWaits } from "./signals.ts";
import type { RunState } from "./state.ts";
import { workOf } from "./work.ts";

/** Reports whether a run waits for a person (HOLD-1). */
export function waitsForPerson({ record, tokens, time }: RunState): boolean {
  if (time?.isAsked === true) return true;
  for (const token of tokens.values()) {
    const { phase } = token;
    if (phase.kind !== "working") continue;
    if (phase.wait?.isHeld === true || workOf(record, token)?.kind === "gate") return true;
  }
  return false;
}

/** Applies a wait message from the work of a token. */
export function takeWait(draft: Draft, { token: id, attempt, wait }: RunWaits): void {
  const token = draft.working(id, attempt);
  if (token === undefined) return;
  const { phase } = token;
  if (wait.seq <= (phase.wait?.seq ?? -1)) return;
  draft.change(id, { phase: { ...phase, wait } });
  const isAtRest = wait.isAtRest === true;
  const isHoldChanged = wait.isHeld !== (phase.wait?.isHeld ?? false);
  if (isHoldChanged) draft.noteOf(token, wait.isHeld ? "work.held" : "work.released");
  // Each commit has an entry, so a message that overtook another message has one too.
  if (!isHoldChanged || isAtRest !== (phase.wait?.isAtRest ?? false))
    draft.noteOf(token, "run.rested", { isAtRest });
}
