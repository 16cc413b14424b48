/** Planning the end of side calls before their reply. Pure. */
import { defined } from "../../../../shared/defined.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { FailureText } from "../facts/fact.ts";
import { placeOfCall, type SideCallPlace, sideCalls } from "../side-calls.ts";
import type { ConversationState } from "../state.ts";

/** Ends the running calls that `isMeant` selects, with the records of their attempts. */
export function stopSideCalls(
  state: ConversationState,
  { sideCallInProgress }: Pick<PlanInput, "sideCallInProgress">,
  isMeant: (running: SideCallPlace) => boolean = () => true,
  message = "The conversation was stopped.",
): AgentDecision[] {
  const error: FailureText = { code: "CANCELLED", message };
  return sideCalls(state)
    .filter(isMeant)
    .map((running) => {
      const facts = sideCallInProgress?.(running);
      const made = facts && { facts, category: "canceled" as const };
      return { type: "STOP_SIDE_CALL", ...placeOfCall(running), error, ...defined({ made }) };
    });
}
