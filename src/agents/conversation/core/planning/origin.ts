/** The origin of a change of the conversation's gate that came as a signal. Pure. */
import { defined } from "../../../../shared/defined.ts";
import type { AgentDecision } from "../decisions.ts";
import type { Stop } from "../stop-signals.ts";

/** Adds a signal's origin to its decisions. A signal without a change is not remembered. */
export function withOrigin(decisions: AgentDecision[], { caller, origin }: Stop): AgentDecision[] {
  if (origin === undefined || decisions.length === 0) return decisions;
  const { id, supplied, correlationId } = origin;
  const marked = decisions.map((decision) =>
    decision.type === "SET_GATE" ? { ...decision, correlationId, ...defined({ causeId: id }) } : decision,
  );
  if (id === undefined) return marked;
  return [...marked, { type: "SEE_SIGNAL", caller, key: id, ...defined({ correlationId: supplied }) }];
}
