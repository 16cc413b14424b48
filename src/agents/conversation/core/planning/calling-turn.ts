/** Which turn a report on a model call is for. */
import type { EffectSignal } from "../signals.ts";
import type { ConversationState, Turn } from "../state.ts";

type ModelSignal = Extract<EffectSignal, { item: number; attempt: number }>;

/** The turn whose present attempt this signal answers. */
export function callingTurn(state: ConversationState, signal: ModelSignal): Turn | undefined {
  const turn = state.active.get(signal.turn);
  const matches = turn?.call?.item === signal.item && turn.call.attempt === signal.attempt;
  return matches ? turn : undefined;
}
