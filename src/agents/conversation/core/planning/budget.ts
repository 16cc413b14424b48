/**
 * Budgets: whether the next model call, and how many tool calls, may still run. Pure.
 *
 * BUDGET-1  A model call reserves its estimated input and its maximal output in the commit that calls for it. If that does not fit a
 *           budget, no model is called, and its turn fails with `BUDGET_EXCEEDED`. Each attempt has its own reservation.
 * BUDGET-2  The budgets of the turn, of the conversation and of its agent's persona all apply, so the smallest decides. The budgets of
 *           conversation and persona limit all use since the conversation began, plus the reservations of running calls.
 * BUDGET-3  The tool calls of a reply are reserved together. Calls beyond a budget get the result `BUDGET_EXCEEDED` and do not run. The
 *           others run.
 * BUDGET-4  A budget in dollars requires prices of every model that may be called.
 * BUDGET-6  A conversation does not begin with a budget that is smaller than one reply: no call would ever fit.
 * BUDGET-5  A summary or a title that does not fit a budget is not made. Turns continue without it.
 */
import { contextTokens, profileAt } from "../../../../library/definitions/version-chain.ts";
import { requestWithOutputLimit, withOutputLimit } from "../../../../model/output-limit.ts";
import type { ModelProfile } from "../../../../model/profile.ts";
import { type Amounts, addAmounts, amountsOf, maxOutputTokens, NOTHING } from "../../../../model/spending.ts";
import { AMOUNT, amountOf, type Budget, type BudgetExcess, inUnits } from "../../../../protocol/budget.ts";
import { defined } from "../../../../shared/defined.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { runningExtractions } from "../hooks.ts";
import type { LeaseRefusal } from "../lease.ts";
import { reservedByCalls, spentByAgent, spentByTurn } from "../ledger.ts";
import { placeOfCall, type RunningSideCall, sideCalls, sideProfile } from "../side-calls.ts";
import { type ConversationState, chainOf, leaseOf } from "../state.ts";
import { reservedByTasks } from "../task-spending.ts";
import type { CallingTurn, Turn } from "../turn.ts";
import { failTurn } from "./cancel.ts";
import { placeOf } from "./lease.ts";
import { sideReservation } from "./side-call.ts";

/** A budget that applies, and the use that counts against it. */
export interface Limit {
  scope: BudgetExcess["scope"];
  budget: Budget;
  used: Amounts;
}

/**
 * Reserves for one call that needs a reservation; returns `[]` without such a call. A call that does not fit ends its turn, or the
 * side call. Call it after every change, until it returns `[]`.
 */
export function planReservation(state: ConversationState, input: PlanInput): AgentDecision[] {
  for (const turn of state.active.values()) {
    const { call } = turn;
    if (call === null || call.reserved !== undefined || isAsking(state, turn.agentId, call)) continue;
    const limits = limitsOf(state, turn);
    const isLimited = limits.length > 0 || leaseOf(state, turn.agentId) !== undefined;
    if (isLimited) return reserve(state, { ...turn, call }, limits, input);
  }
  for (const running of sideCalls(state)) {
    const { session, call } = running;
    if (call.reserved !== undefined || isAsking(state, session, call)) continue;
    const limits = sharedLimits(state, session);
    const isLimited = limits.length > 0 || leaseOf(state, session) !== undefined;
    if (isLimited) return reserveSideCall(state, running, limits, input);
  }
  return [];
}

function reserve(
  state: ConversationState,
  turn: CallingTurn,
  limits: readonly Limit[],
  input: PlanInput,
): AgentDecision[] {
  const { n, call } = turn;
  const chain = chainOf(state.record, turn.agentId);
  const profile = profileAt(chain, call.profile ?? 0) ?? chain.modelProfile.definition;
  const reserved = reservationOf(state, turn, input);
  const request = requestOf(reserved, profile);
  const excess = excessOf(limits, request);
  const place = placed(state, turn.agentId, { excess, request }, turn);
  if (place.type === "held") return [{ type: "RESERVE", turn: n, reserved }, ...place.changes];
  if (place.type === "waits") return [{ type: "AWAIT_LEASE", turn: n }, ...place.changes];
  const { refusal } = place;
  const error = "error" in refusal ? refusal.error : exceeded(state, refusal.excess);
  const { facts, shown } = input.inProgress?.(turn) ?? { shown: "" };
  // The text of an earlier attempt was withdrawn. The text of a paused reply stays.
  const isShown = facts !== undefined || turn.paused !== undefined;
  const quiet = { ...input, inProgress: () => ({ shown: isShown ? shown : "", ...defined({ facts }) }) };
  return [
    ...(facts === undefined
      ? []
      : [{ type: "RECORD_ATTEMPT" as const, turn: n, facts, category: "canceled" as const, isLast: true }]),
    ...("excess" in refusal ? [{ type: "EXCEED_BUDGET" as const, turn: n, excess: refusal.excess }] : []),
    failTurn(turn, error, quiet),
  ];
}

/** Returns the tokens to reserve for a turn's model call: its own reservation, if it has one. */
export function reservationOf(
  state: ConversationState,
  turn: CallingTurn,
  { requestTokens, ended }: Pick<PlanInput, "requestTokens" | "ended">,
) {
  const { reserved, profile: index = 0 } = turn.call;
  if (reserved !== undefined) return reserved;
  const chain = chainOf(state.record, turn.agentId);
  const profile = profileAt(chain, index) ?? chain.modelProfile.definition;
  return {
    inputTokens: requestTokens?.(state, turn, ended) ?? contextTokens(chain, profile),
    // The request of a context hook is sent verbatim, so its own limit applies, and not the profile's.
    outputTokens: maxOutputTokens(
      turn.request === undefined
        ? withOutputLimit(profile, turn.maxOutputTokens)
        : { parameters: requestWithOutputLimit(turn.request, profile, turn.maxOutputTokens) },
    ),
  };
}

function reserveSideCall(
  state: ConversationState,
  running: RunningSideCall,
  limits: readonly Limit[],
  { sideCallInProgress }: PlanInput,
): AgentDecision[] {
  const reserved = sideReservation(state, running);
  const request = requestOf(reserved, sideProfile(state.record, running));
  const excess = excessOf(limits, request);
  const at = placeOfCall(running);
  const place = placed(state, at.session, { excess, request }, running);
  if (place.type === "held") return [{ type: "RESERVE_SIDE_CALL", ...at, reserved }, ...place.changes];
  if (place.type === "waits") return [{ type: "AWAIT_SIDE_CALL_LEASE", ...at }, ...place.changes];
  const { refusal } = place;
  const { code, message } = "error" in refusal ? refusal.error : exceeded(state, refusal.excess);
  const facts = sideCallInProgress?.(running);
  const made = facts && { facts, category: "canceled" as const };
  return [{ type: "GIVE_UP_SIDE_CALL", ...at, error: { code, message }, ...defined({ made }) }];
}

/** Reports whether a call waits for its agent's answer. */
export function isAsking(
  state: ConversationState,
  agentId: string,
  { leasing }: { leasing?: boolean },
): boolean {
  return leasing === true && leaseOf(state, agentId)?.asked !== undefined;
}

/** The place of a call in the lease of its agent, with the changes of the lease. */
export type Placed =
  | { type: "held"; changes: AgentDecision[] }
  | { type: "waits"; changes: AgentDecision[] }
  | { type: "refused"; refusal: LeaseRefusal };

/** Reserves a call in the lease of its agent, unless another budget refuses it. An agent without a budget needs no lease. */
export function placed(
  state: ConversationState,
  agentId: string,
  { excess, request }: { excess: BudgetExcess | null; request: Amounts },
  { n, call }: { n?: number; call: { leasing?: boolean } },
): Placed {
  if (excess !== null) return { type: "refused", refusal: { excess } };
  const lease = leaseOf(state, agentId);
  if (lease === undefined) return { type: "held", changes: [] };
  const reserved = reservedBeside(state, n, agentId);
  const place = placeOf(lease, reserved, request, call.leasing === true);
  if (place.type === "refused") return place;
  const { type, next } = place;
  return { type, changes: next === undefined ? [] : [{ type: "SET_LEASE", agentId, lease: next }] };
}

/** Returns how many more tool calls a turn may run. */
export function toolCallsLeft(state: ConversationState, turn: Turn): number {
  const left = limitsOf(state, turn).map(
    ({ budget: { toolCalls = Number.POSITIVE_INFINITY }, used }) => toolCalls - used.toolCalls,
  );
  return Math.max(0, Math.min(Number.POSITIVE_INFINITY, ...left));
}

/** Returns the limits of a turn's calls, with the use that counts against each. */
function limitsOf(state: ConversationState, turn: Turn): Limit[] {
  const shared = sharedLimits(state, turn.agentId, turn);
  if (turn.budget === undefined) return shared;
  return [{ scope: "turn", budget: turn.budget, used: usedByTurn(state, turn) }, ...shared];
}

function usedByTurn({ record }: ConversationState, turn: Turn): Amounts {
  return addAmounts(spentByTurn(turn, chainOf(record, turn.agentId)), reservedByOperations(turn));
}

/** As `limitsOf`, but also subtracts the reservation of the turn's own model call. */
export function limitsBesideModel(state: ConversationState, turn: Turn): Limit[] {
  const shared = sharedLimits(state, turn.agentId);
  if (turn.budget === undefined) return shared;
  const used = addAmounts(usedByTurn(state, turn), reservedByModel(state, turn));
  return [{ scope: "turn", budget: turn.budget, used }, ...shared];
}

/** Returns the limits that all turns of a conversation share. The reservation of `own` does not count as used. */
export function sharedLimits(state: ConversationState, agentId: string, own?: Turn): Limit[] {
  const { budget: persona } = chainOf(state.record, agentId).persona.definition;
  const { budget } = state;
  if (budget === undefined && persona === undefined) return [];
  const limits: Limit[] = [];
  if (budget !== undefined) {
    const used = addAmounts(state.spent, reservedInAll(state, own?.n));
    limits.push({ scope: "conversation", budget, used });
  }
  if (persona !== undefined) {
    const used = addAmounts(spentByAgent(state, agentId), reservedInAll(state, own?.n, agentId));
    limits.push({ scope: "persona", budget: persona, used });
  }
  return limits;
}

/** Returns the amounts of `reservedBeside`, plus the budgets of called agents. */
function reservedInAll(state: ConversationState, own?: number, agentId?: string): Amounts {
  const turns = [...state.active.values()].filter(
    (turn) => agentId === undefined || turn.agentId === agentId,
  );
  return turns.map(reservedByCalls).reduce(addAmounts, reservedBeside(state, own, agentId));
}

/** Returns the maximum usage of a turn's calls of agents and tasks. */
function reservedByOperations(turn: Turn): Amounts {
  return addAmounts(reservedByCalls(turn), reservedByTasks(turn));
}

/**
 * Returns the reservations of tasks and hooks of all turns, and of all running model calls except `own`. With an agent, it counts only this
 * agent.
 */
function reservedBeside(state: ConversationState, own?: number, agentId?: string): Amounts {
  let sum = NOTHING;
  for (const turn of state.active.values()) {
    if (agentId !== undefined && turn.agentId !== agentId) continue;
    sum = addAmounts(sum, reservedByTasks(turn));
    if (turn.n !== own) sum = addAmounts(sum, reservedByModel(state, turn));
  }
  for (const [, run] of runningExtractions(state))
    if (agentId === undefined || run.agentId === agentId) sum = addAmounts(sum, run.reserved ?? {});
  for (const running of sideCalls(state)) {
    const { reserved } = running.call;
    if (reserved === undefined || (agentId !== undefined && running.session !== agentId)) continue;
    sum = addAmounts(sum, requestOf(reserved, sideProfile(state.record, running)));
  }
  return sum;
}

/** Returns the reservation of a turn's running model call. */
function reservedByModel({ record }: ConversationState, { agentId, call }: Turn): Amounts {
  if (call?.reserved === undefined) return NOTHING;
  return requestOf(call.reserved, profileAt(chainOf(record, agentId), call.profile ?? 0));
}

function requestOf(
  reserved: { inputTokens: number; outputTokens: number },
  profile: ModelProfile | undefined,
) {
  return { ...NOTHING, ...amountsOf(reserved, profile), modelCalls: 1 };
}

/** The limits that a model call can exceed. */
export const CALL_LIMITS = ["modelCalls", "tokens", "usd"] as const;

/** Returns the first limit that a request would exceed; `null` if it fits. */
export function excessOf(limits: readonly Limit[], request: Amounts): BudgetExcess | null {
  for (const { scope, budget, used } of limits) {
    for (const limit of CALL_LIMITS) {
      const allowed = budget[limit];
      if (allowed === undefined) continue;
      const amount = AMOUNT[limit];
      if (used[amount] + request[amount] <= amountOf(allowed, limit)) continue;
      return {
        scope,
        limit,
        allowed,
        used: inUnits(used[amount], limit),
        needed: inUnits(request[amount], limit),
      };
    }
  }
  return null;
}

const UNITS = {
  tokens: "tokens",
  usd: "US dollars",
  toolCalls: "tool calls",
  modelCalls: "model calls",
} as const satisfies Record<keyof Budget, string>;

/** Returns an amount with its unit, such as `1 model call`. */
function withUnit(amount: number, limit: keyof Budget): string {
  return `${amount} ${amount === 1 ? UNITS[limit].slice(0, -1) : UNITS[limit]}`;
}

/** Returns the error of a call that exceeds a limit. */
export function exceeded(
  { record }: ConversationState,
  { scope, limit, allowed, used, needed, leased = 0 }: BudgetExcess,
  asked: "call" | "task" = "call",
): ErrorData {
  if (used - leased + needed <= allowed) {
    const message = `The budget of the agent is ${withUnit(allowed, limit)}. Reserved by its other conversations: ${leased}. Try again when their turns have ended.`;
    return { code: "BUDGET_EXCEEDED", message, retriable: true };
  }
  const isPart = scope === "conversation" && record.call !== undefined;
  const owner = scope === "persona" ? "the agent's persona" : `the ${scope}`;
  const whose = isPart ? "this call, a share of its caller's remaining budget," : owner;
  const [what, where] =
    asked === "call"
      ? ["The next model call needs", "in the model profile"]
      : ["The models of this task need", "and texts by maxOutputTokens and maxInputTokens"];
  const message = `The budget of ${whose} is ${withUnit(allowed, limit)}. Used or reserved: ${used}. ${what} up to ${needed}. ${isPart ? "Call fewer agents at once, raise the caller's budget" : "Raise the budget"}, or limit the length of replies ${where}.`;
  return { code: "BUDGET_EXCEEDED", message, retriable: false };
}
