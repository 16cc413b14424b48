/** Applies decisions about leases to the state. Pure. */
import { type Amounts, addAmounts } from "../../../model/spending.ts";
import { inUnits } from "../../../protocol/budget.ts";
import type { JsonObject } from "../../../shared/json.ts";
import type { LeaseDecision } from "./decisions.ts";
import type { JournalEntry } from "./journal-entry.ts";
import type { LeaseState } from "./lease.ts";
import { type ConversationState, leaseOf, type Standing } from "./state.ts";
import type { Transition } from "./transition.ts";

export function reduceLease(transition: Transition, { type, agentId, lease }: LeaseDecision): Transition {
  const state = { ...transition.state, leases: { ...transition.state.leases, [agentId]: lease } };
  if (type === "SET_LEASE") return { ...transition, state };
  const entry: JournalEntry = { type: "budget.leased", data: { agentId, ...dataOf(lease) } };
  return { ...transition, state, entries: [...transition.entries, entry] };
}

function dataOf({ granted, refusal }: LeaseState): JsonObject {
  const { tokens, nanoDollars, modelCalls } = granted;
  return {
    tokens,
    usd: inUnits(nanoDollars, "usd"),
    modelCalls,
    ...(refusal === undefined ? {} : { refused: true }),
  };
}

/** Returns the leases after use by calls of an agent, as a member; `{}` for an agent without a lease. */
export function leasesAfter(
  state: ConversationState,
  agentId: string,
  amounts: Amounts,
): Pick<Standing, "leases"> {
  const lease = leaseOf(state, agentId);
  if (lease === undefined) return {};
  const spent = addAmounts(lease.spent, { ...amounts, toolCalls: 0 });
  return { leases: { ...state.leases, [agentId]: { ...lease, spent } } };
}
