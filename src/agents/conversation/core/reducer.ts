/** The reducer: applies decisions to the state. Pure. */
import type { AgentDecision, TurnDecision } from "./decisions.ts";
import { type Change, type TurnChange, TurnStep } from "./facts/fact.ts";
import { CONVERSATION_FACTS, TURN_FACTS } from "./facts/families.ts";
import type { Transition } from "./transition.ts";

export function reduce(transition: Transition, decisions: readonly AgentDecision[], now: number): Transition {
  return decisions.reduce((current, decision) => applyDecision(current, decision, now), transition);
}

function applyDecision(transition: Transition, decision: AgentDecision, now: number): Transition {
  const { type, ...data } = decision;
  if (isOfTurn(decision)) {
    const turn = transition.state.active.get(decision.turn);
    // SAFETY: the function of a type takes the data of its decisions.
    const change = TURN_FACTS[decision.type] as TurnChange<typeof data>;
    return turn === undefined ? transition : change(new TurnStep(transition, turn, now), data);
  }
  // SAFETY: as above.
  const change = CONVERSATION_FACTS[decision.type] as Change<typeof data>;
  return change(transition, data, now);
}

function isOfTurn(decision: AgentDecision): decision is TurnDecision {
  return Object.hasOwn(TURN_FACTS, decision.type);
}
