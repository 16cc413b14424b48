/**
 * Sending calls of other agents and starts of runs on their way, each call of an agent with its part of the caller's budget. Pure.
 *
 * INHERIT-1  A call gets a share of the rest of its caller's limits (turn, conversation and persona), after reservations of running model
 *            calls. Calls that begin together and the caller get equal shares. It is reserved until the call ends, so the limits hold for
 *            the whole tree of calls.
 * DELEGATE-12  If the actor's outbox is full, a call fails as retriable and is not sent. So a reply that calls agents can always be
 *              committed.
 */
import { AMOUNT, amountOf, BUDGET_LIMITS, type Budget, inUnits } from "../../../../protocol/budget.ts";
import type { ToolResult } from "../../../../protocol/executor-api.ts";
import { defined } from "../../../../shared/defined.ts";
import { callBytes } from "../call-envelopes.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { Operation } from "../operation.ts";
import { type ConversationState, chainOf } from "../state.ts";
import type { Transition } from "../transition.ts";
import type { Turn } from "../turn.ts";
import { sentCalls } from "../turn-operations.ts";
import { type Limit, limitsBesideModel } from "./budget.ts";
import { partOfCall, USUAL_LIMITS } from "./call-guards.ts";
import { nextAttemptAt, resume } from "./results.ts";
import { failure } from "./tool-call.ts";

/** Sends the calls of one turn that may begin; returns `[]` without such calls. Call it after every change, until it returns `[]`. */
export function planCalls(
  transition: Pick<Transition, "state" | "entries">,
  { now, calls: limits, outboxRoom }: Pick<PlanInput, "now" | "calls" | "outboxRoom">,
): AgentDecision[] {
  const { state } = transition;
  for (const turn of state.active.values()) {
    const due = sentCalls(turn).filter(
      ({ status, notBefore = now }) => status === "pending" && notBefore <= now,
    );
    if (due.length === 0) continue;
    const beyond = outboxRoom === undefined ? [] : withoutRoom(transition, turn, due, outboxRoom());
    if (beyond.length > 0) return failed(state, turn, beyond, now);
    const agents = due.filter(({ agent }) => agent !== undefined).length;
    const budget = equalShare(limitsBesideModel(state, turn), agents + 1);
    const part =
      agents === 0
        ? {}
        : { calls: partOfCall(state, limits ?? USUAL_LIMITS, agents), ...defined({ budget }) };
    const calls = due.map(({ item, agent }) => ({ item, ...(agent !== undefined && part) }));
    return [{ type: "DISPATCH_CALLS", turn: turn.n, calls }];
  }
  return [];
}

/** Returns the calls that do not fit into the outbox after the other calls of the commit (DELEGATE-12). */
function withoutRoom(
  { state, entries }: Pick<Transition, "state" | "entries">,
  turn: Turn,
  due: readonly Operation[],
  room: ReturnType<NonNullable<PlanInput["outboxRoom"]>>,
): Operation[] {
  let { envelopes, bytes } = room;
  for (const { type, turn: n = 0, item } of entries) {
    const isSend = type === "agent_call.started" || type === "workflow_run.started";
    const caller = isSend ? state.active.get(n) : undefined;
    const sent = caller?.operations.find((operation) => operation.item === item);
    if (caller === undefined || sent === undefined) continue;
    envelopes -= 1;
    bytes -= callBytes(state, caller, sent);
  }
  return due.filter((operation) => {
    const size = callBytes(state, turn, operation);
    if (envelopes < 1 || size > bytes) return true;
    envelopes -= 1;
    bytes -= size;
    return false;
  });
}

/** Fails calls, or repeats them later if their tools say so. */
function failed(
  state: ConversationState,
  turn: Turn,
  calls: readonly Operation[],
  now: number,
): AgentDecision[] {
  const { n, agentId } = turn;
  const message =
    "Too many messages of this conversation to other actors have not arrived yet, so this call was not sent. Call again later.";
  const repeats: AgentDecision[] = [];
  const results: { item: number; result: ToolResult }[] = [];
  for (const operation of calls) {
    const { item, toolCallId } = operation;
    const result = failure(toolCallId, "EXECUTION_FAILED", message, true);
    const notBefore = nextAttemptAt(chainOf(state.record, agentId), operation, now);
    if (notBefore === undefined) results.push({ item, result });
    else
      repeats.push({
        type: "RETRY_TASK",
        turn: n,
        item,
        error: { code: "EXECUTION_FAILED", message },
        notBefore,
      });
  }
  return [...repeats, ...(results.length === 0 ? [] : resume(state, turn, results))];
}

/** Returns one of several equal shares of the rest of limits; `undefined` without limits. */
function equalShare(limits: readonly Limit[], parts: number): Budget | undefined {
  const share: Budget = {};
  for (const limit of BUDGET_LIMITS) {
    const left = limits.flatMap(({ budget, used }) => {
      const allowed = budget[limit];
      return allowed === undefined ? [] : [amountOf(allowed, limit) - used[AMOUNT[limit]]];
    });
    if (left.length > 0) share[limit] = inUnits(Math.floor(Math.max(0, Math.min(...left)) / parts), limit);
  }
  return Object.keys(share).length === 0 ? undefined : share;
}
