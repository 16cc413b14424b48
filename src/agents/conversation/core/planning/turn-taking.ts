/**
 * Agents that take turns: an agent's answer that mentions another agent starts a turn of that agent. Pure.
 *
 * TALK-1  An answer that mentions agents among the participants, `@agent-id`, starts a turn of each, in the commit of the answer: its
 *         message is the answer, its caller the answering agent. An answer that is data starts no turn. An agent's mention of itself is
 *         ignored.
 * TALK-2  The message of a user has at most `MAX_AGENT_TURNS` turns, or as many as the application sets. The first turn and all following
 *         turns of all agents count. A mention beyond that is recorded in an entry and in the issues of the answering turn. Crashes and
 *         other turns do not change the count.
 * TALK-3  A turn that another agent started belongs to the user message that it follows. It has the correlation id of that message, and its
 *         agent counts as having answered that user. The turns that one answer starts share the rest of its turn's budget equally. The
 *         shares of open calls are deducted first. If the calling turn continues, it keeps one of the equal parts. The new turn interrupts
 *         no other turn. If turns are queued, it waits for its place.
 */
import { checkPrices } from "../../../../library/registry/prices.ts";
import { addAmounts } from "../../../../model/spending.ts";
import { joinTaints, type Taint } from "../../../../model/taint.ts";
import { AMOUNT, amountOf, BUDGET_LIMITS, type Budget, inUnits } from "../../../../protocol/budget.ts";
import type { Caller } from "../../../../protocol/caller-schemas.ts";
import { MAX_TURN_NUMBER, messageId, turnId } from "../../../../protocol/ids.ts";
import type { Content } from "../../../../shared/content.ts";
import { defined } from "../../../../shared/defined.ts";
import { withAttempt } from "../calls.ts";
import { activeLength, lengthOf } from "../content-size.ts";
import { MAX_ACTIVE_CONTENT, MAX_ACTIVE_TURNS, MAX_AGENT_TURNS } from "../conversation-limits.ts";
import { correlationOf } from "../correlation.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { exchangeOf, turnsOfExchange } from "../exchange.ts";
import type { UnaskedReason } from "../facts/turn.ts";
import { reservedByCalls, spentByTurn } from "../ledger.ts";
import { type ConversationState, chainOf } from "../state.ts";
import { turnTraceparent } from "../trace.ts";
import type { CallingTurn, RunInvitation, Turn } from "../turn.ts";
import { backgroundOperations } from "../turn-operations.ts";
import { blocksQueue } from "../waits.ts";
import { mentionedIn, presentAgents } from "./address.ts";

/** The turns that agents start in one step. */
interface Started {
  /** Before the decision that ends the turn of their caller. */
  before: AgentDecision[];
  after: AgentDecision[];
}

export type RecordedAttempt = Extract<AgentDecision, { type: "RECORD_ATTEMPT" }>;

/** Plans the turns of the agents that an answer mentions. `record` is the decision that records the call which gave it. */
export function planMentions(
  state: ConversationState,
  turn: CallingTurn,
  { text, record }: { text: string; record: RecordedAttempt },
  input: PlanInput,
): Started {
  const asked = turn.output === undefined ? askedIn(state, turn, text) : [];
  if (asked.length === 0) return { before: [], after: [] };
  // A turn with open background work continues, and keeps a part of the budget.
  const goesOn = backgroundOperations(turn).length > 0;
  const budget = turnBudgetLeft(state, withAttempt(turn, record), asked.length + (goesOn ? 1 : 0));
  const message = messageId(turn, turn.call.item);
  const inputTaint = joinTaints(turn.taint, record.facts.taint);
  const started = startTurns(
    state,
    turn,
    asked.map((agentId) => ({ agentId, content: text, message, inputTaint, ...defined({ budget }) })),
    { ...input, isCallerOver: true },
  );
  if (!goesOn || turn.budget === undefined || budget === undefined) return started;
  const given = started.after.filter(({ type }) => type === "START_TURN");
  const own = given.reduce((left) => without(left, budget), turn.budget);
  return { ...started, before: [...started.before, { type: "LOWER_BUDGET", turn: turn.n, budget: own }] };
}

export function without(budget: Budget, part: Budget): Budget {
  const left: Budget = {};
  for (const limit of BUDGET_LIMITS) {
    const allowed = budget[limit];
    if (allowed !== undefined) left[limit] = Math.max(0, allowed - (part[limit] ?? 0));
  }
  return left;
}

/** Returns the agents that a text mentions, without its author. */
function askedIn({ record }: ConversationState, { agentId }: Turn, text: string): string[] {
  const present = presentAgents(record);
  if (present.length === 1) return [];
  const others = new Set(present.map(({ id }) => id).filter((id) => id !== agentId));
  return [...new Set(mentionedIn(text))].filter((id) => others.has(id));
}

/** A turn that an agent or a run starts: `message` is the id of its message, if the transcript has it. */
export interface Call {
  agentId: string;
  content: Content;
  /** As in `Turn`. */
  inputTaint?: Taint;
  message?: string;
  budget?: Budget;
  /** The place of the turn in the trace; the calling turn's place if absent. */
  traceparent?: string;
  /** The node of a run that starts the turn. */
  by?: Extract<Caller, { type: "workflow" }>;
  invited?: RunInvitation;
}

/**
 * Starts turns of agents that take part, called by the agent of a turn unless `by` names a run that this turn has started. `isCallerOver`: the
 * cycle of the turn that calls them ends in this step.
 */
export function startTurns(
  state: ConversationState,
  turn: Turn,
  calls: readonly Call[],
  { isCallerOver, ...input }: PlanInput & { isCallerOver: boolean },
): Started {
  const { of, by } = exchangeOf(turn);
  const caller = { type: "agent", agentId: turn.agentId, turnId: turnId(turn) } as const;
  const started: Started = { before: [], after: [] };
  let left = (input.agentTurns ?? MAX_AGENT_TURNS) - turnsOfExchange(state, of);
  let length = activeLength(state);
  let n = state.turns;
  let isBlocked = isQueueBlocked(state, isCallerOver ? turn.n : undefined);
  for (const { agentId, content, inputTaint = [], message, budget, traceparent, by: run, invited } of calls) {
    const reason = refusal(state, { agentId, left, length: length + lengthOf(content), n, budget });
    if (reason !== null) {
      started.before.push({ type: "LEAVE_UNASKED", turn: turn.n, agentId, reason });
      continue;
    }
    n += 1;
    left -= 1;
    length += lengthOf(content);
    const isQueued = isBlocked && invited?.passes === undefined;
    started.after.push({
      type: "START_TURN",
      turn: n,
      stem: newStem(input),
      agentId,
      caller: run ?? caller,
      correlationId: correlationOf(turn),
      input: content,
      ...(inputTaint.length === 0 ? {} : { inputTaint }),
      exchange: { of, by, ...defined({ message }) },
      traceparent: traceparent ?? turnTraceparent(turn),
      ...defined({ budget, invited }),
      ...(isQueued ? {} : { begins: "at once" as const }),
    });
    if (isQueued) started.after.push({ type: "QUEUE_TURN", turn: n });
    isBlocked ||= state.order === "queued";
  }
  return started;
}

/** Reports whether a turn that starts now waits in the queue. The turn `over` does not count. */
function isQueueBlocked({ order, active }: ConversationState, over: number | undefined): boolean {
  return order === "queued" && [...active.values()].some((other) => other.n !== over && blocksQueue(other));
}

function refusal(
  state: ConversationState,
  {
    agentId,
    left,
    length,
    n,
    budget,
  }: { agentId: string; left: number; length: number; n: number; budget: Budget | undefined },
): UnaskedReason | null {
  if (left <= 0) return "bound";
  const started = n - state.turns;
  const isFull = state.active.size + started >= MAX_ACTIVE_TURNS || n >= MAX_TURN_NUMBER;
  if (isFull || length > MAX_ACTIVE_CONTENT) return "busy";
  return budget === undefined || hasPrices(state, agentId, budget) ? null : "budget";
}

/** Reports whether the models of an agent can keep a budget (BUDGET-4). */
function hasPrices({ record }: ConversationState, agentId: string, budget: Budget): boolean {
  try {
    checkPrices(chainOf(record, agentId), budget);
    return true;
  } catch {
    return false;
  }
}

/** Returns one of `count` equal parts of the rest of a turn's budget; `undefined` without a budget. */
export function turnBudgetLeft(
  { record }: Pick<ConversationState, "record">,
  turn: Turn,
  count: number,
): Budget | undefined {
  const { budget } = turn;
  if (budget === undefined) return undefined;
  const spent = addAmounts(spentByTurn(turn, chainOf(record, turn.agentId)), reservedByCalls(turn));
  const share = (limit: keyof Budget) => {
    const allowed = budget[limit];
    if (allowed === undefined) return undefined;
    const rest = Math.max(0, amountOf(allowed, limit) - spent[AMOUNT[limit]]);
    return inUnits(Math.floor(rest / count), limit);
  };
  return defined({
    tokens: share("tokens"),
    usd: share("usd"),
    toolCalls: share("toolCalls"),
    modelCalls: share("modelCalls"),
  });
}

function newStem({ newStem: make }: PlanInput): string {
  if (make === undefined) throw new Error("A turn that an agent starts needs a stem.");
  return make();
}
