/**
 * The ledger of a conversation: the use of its calls, and the reservations of running calls. Pure.
 *
 * LEDGER-1  The amounts of a conversation are the sums of its turns' calls and its side calls. Every request to a provider counts,
 *           including failed, stopped and interrupted requests.
 * LEDGER-2  Tokens that the provider did not count are estimated: the input, and the received output. A request that the provider refused
 *           is free.
 * LEDGER-4  The use of a called agent also counts for its caller, once, when the call ends. So the amounts of a conversation cover the
 *           whole tree of calls below it.
 * LEDGER-3  A request that a crash interrupted is charged with its input and its maximum output, because the received output is unknown.
 * BUDGET-7  The budget of a persona limits only the use of its own agent in the conversation. The use of other agents counts for the
 *           conversation's own budget only.
 */
import { profileAt } from "../../../library/definitions/version-chain.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import {
  type Amounts,
  addAmounts,
  amountsOf,
  NOTHING,
  subtractAmounts,
  type TokenEstimate,
} from "../../../model/spending.ts";
import {
  AMOUNT,
  amountOf,
  BUDGET_LIMITS,
  type Budget,
  inUnits,
  spendingView,
} from "../../../protocol/budget.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import type { SpendingView } from "../../../protocol/usage-schemas.ts";
import { defined } from "../../../shared/defined.ts";
import type { Operation } from "./operation.ts";
import type { AttemptFacts } from "./signals.ts";
import {
  type BaseState,
  type ConversationAgent,
  type ConversationState,
  leaseOf,
  primaryAgent,
} from "./state.ts";
import type { CallRecord, Turn } from "./turn.ts";
import { openCalls } from "./turn-operations.ts";

function spentByCalls(calls: readonly CallRecord[] = [], chain: VersionChain): Amounts {
  return calls.reduce<Amounts>((sum, { usage, estimate, profile: index, attempts, crashed = 0 }) => {
    const profile = profileAt(chain, index);
    const counted = addAmounts(sum, amountsOf(usage, profile));
    return addAmounts(counted, { ...amountsOf(estimate, profile), modelCalls: attempts + crashed });
  }, NOTHING);
}

export function spentByTurn(
  { calls, toolCalls = 0, delegated = NOTHING }: Pick<Turn, "calls" | "toolCalls" | "delegated">,
  chain: VersionChain,
): Amounts {
  return addAmounts(addAmounts(spentByCalls(calls, chain), { toolCalls }), delegated);
}

export function turnSpending(
  chain: VersionChain,
  turn: Pick<Turn, "calls" | "toolCalls" | "delegated">,
): SpendingView {
  const isEstimated = turn.calls?.some(({ estimate }) => estimate !== undefined);
  return { ...spendingView(spentByTurn(turn, chain)), ...(isEstimated ? { estimated: true } : {}) };
}

/** Returns the usage of a turn's calls between two states. */
export function movedSpending(
  before: Pick<Turn, "calls">,
  after: Pick<Turn, "calls">,
  chain: VersionChain,
): Amounts {
  return subtractAmounts(spentByCalls(after.calls, chain), spentByCalls(before.calls, chain));
}

export function spentByRequest(
  { usage, estimate }: Pick<AttemptFacts, "usage" | "estimate">,
  profile: ModelProfile,
): Amounts {
  const counted = addAmounts({ ...NOTHING, ...amountsOf(usage, profile) }, amountsOf(estimate, profile));
  return { ...counted, modelCalls: 1 };
}

export function addEstimates(
  one: TokenEstimate | undefined,
  other: TokenEstimate | undefined,
): TokenEstimate | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    inputTokens: one.inputTokens + other.inputTokens,
    outputTokens: one.outputTokens + other.outputTokens,
  };
}

/** Returns the smallest limits of a conversation: its own and its primary agent's; `null` without limits. */
export function conversationBudget({
  record,
  budget = {},
}: Pick<ConversationState, "record" | "budget">): Budget | null {
  const persona = record.agents[0].chain.persona.definition.budget ?? {};
  const smallest = (limit: keyof Budget) => {
    const limits = [budget[limit], persona[limit]].filter((given) => given !== undefined);
    return limits.length === 0 ? undefined : Math.min(...limits);
  };
  const limits = defined({
    tokens: smallest("tokens"),
    usd: smallest("usd"),
    toolCalls: smallest("toolCalls"),
    modelCalls: smallest("modelCalls"),
  });
  return Object.keys(limits).length === 0 ? null : limits;
}

/**
 * Returns the rest of a conversation's limits: its own, and its primary agent's. Reservations of running calls are not subtracted. Returns
 * `null` without limits.
 */
export function budgetLeft(
  state: Pick<ConversationState, "record" | "budget" | "spent" | "spentBy">,
): Budget | null {
  const limits = conversationBudget(state);
  if (limits === null) return null;
  const { id, chain } = primaryAgent(state.record);
  const applied = [
    { budget: state.budget, spent: state.spent },
    { budget: chain.persona.definition.budget, spent: spentByAgent(state, id) },
  ];
  const left = (limit: keyof Budget) => {
    if (limits[limit] === undefined) return undefined;
    const rests = applied.map(({ budget, spent }) => {
      const allowed = budget?.[limit];
      return allowed === undefined
        ? Number.POSITIVE_INFINITY
        : amountOf(allowed, limit) - spent[AMOUNT[limit]];
    });
    return inUnits(Math.max(0, Math.min(...rests)), limit);
  };
  return defined({
    tokens: left("tokens"),
    usd: left("usd"),
    toolCalls: left("toolCalls"),
    modelCalls: left("modelCalls"),
  });
}

/** Returns the maximum usage of a turn's running calls. */
export function reservedByCalls(turn: Pick<Turn, "operations">): Amounts {
  return openCalls(turn).reduce((sum, call) => addAmounts(sum, partOf(call)), NOTHING);
}

function partOf({ status, agent }: Operation): Partial<Amounts> {
  const { budget } = agent ?? {};
  if (status !== "dispatched" || budget === undefined) return {};
  return Object.fromEntries(
    BUDGET_LIMITS.flatMap((limit) => {
      const part = budget[limit];
      return part === undefined ? [] : [[AMOUNT[limit], amountOf(part, limit)]];
    }),
  );
}

type Spending = Pick<BaseState, "spent" | "spentBy">;

/** Returns the use of an agent. An agent without its own count is the only agent so far, or has no budget. */
export function spentByAgent({ spent, spentBy }: Spending, agentId: string): Amounts {
  return countOf(spentBy, agentId) ?? spent;
}

/** Returns the amounts after an agent has used up more. */
export function withSpending(
  { spent, spentBy }: Spending,
  agentId: string,
  amounts: Partial<Amounts>,
): Spending {
  const own = countOf(spentBy, agentId);
  return {
    spent: addAmounts(spent, amounts),
    ...(spentBy === undefined
      ? {}
      : { spentBy: own === undefined ? spentBy : { ...spentBy, [agentId]: addAmounts(own, amounts) } }),
  };
}

/** Returns the amounts and the leases after the model calls of an agent have used up more. */
export function withCharge(
  state: ConversationState,
  agentId: string,
  amounts: Amounts,
): Spending & Pick<BaseState, "leases"> {
  const spending = withSpending(state, agentId, amounts);
  const lease = leaseOf(state, agentId);
  if (lease === undefined) return spending;
  const spent = addAmounts(lease.spent, { ...amounts, toolCalls: 0 });
  return { ...spending, leases: { ...state.leases, [agentId]: { ...lease, spent } } };
}

/** Returns the counts of the agents with a persona budget after another agent joins; `{}` without such budgets. */
export function countsWith(
  { record, spent, spentBy }: Pick<ConversationState, "record"> & Spending,
  newcomer: ConversationAgent,
): Pick<BaseState, "spentBy"> {
  const counts = Object.fromEntries([
    ...record.agents
      .filter(isLimited)
      .map(({ id }) => [id, spentByAgent({ spent, ...(spentBy && { spentBy }) }, id)]),
    ...(isLimited(newcomer) ? [[newcomer.id, NOTHING]] : []),
  ]);
  return Object.keys(counts).length === 0 ? {} : { spentBy: counts };
}

function isLimited({ chain }: ConversationAgent): boolean {
  return chain.persona.definition.budget !== undefined;
}

/** Ids may equal names that every object has, such as `constructor`. */
function countOf(spentBy: BaseState["spentBy"], agentId: string): Amounts | undefined {
  return spentBy !== undefined && Object.hasOwn(spentBy, agentId) ? spentBy[agentId] : undefined;
}
