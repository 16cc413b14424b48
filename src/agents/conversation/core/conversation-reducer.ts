/** The reducer for decisions about the conversation rather than an active turn. Pure. */
import { addAmounts, NOTHING } from "../../../model/spending.ts";
import type { Budget } from "../../../protocol/budget.ts";
import { spendingView } from "../../../protocol/budget.ts";
import type { Caller } from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { withTaskUsage } from "./calls.ts";
import { withoutReservations } from "./compaction.ts";
import type { AgentDecision, ConversationDecision } from "./decisions.ts";
import { withExchange } from "./exchange.ts";
import { reserveExtraction } from "./hook-reducer.ts";
import { isHookRunning, runningExtractions } from "./hooks.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { leasesAfter } from "./lease-reducer.ts";
import { budgetLeft, conversationBudget } from "./ledger.ts";
import { endConversation } from "./life.ts";
import { changeParticipants, setReaders } from "./membership.ts";
import { reservedAs } from "./operation.ts";
import { withSpending } from "./own-spending.ts";
import { type ConversationState, chainOf, nextEvent } from "./state.ts";
import { taskEntries } from "./task-entries.ts";
import { recounted, reservedByHook, withTasksRecounted } from "./task-spending.ts";
import { type Transition, withTurn } from "./transition.ts";
import type { Turn } from "./turn.ts";
import { lateResultEvent } from "./turn-events.ts";

const TYPES: Readonly<Record<ConversationDecision["type"], true>> = {
  START_TURN: true,
  SEND: true,
  SET_GATE: true,
  CHARGE_CALL: true,
  CHARGE_TASK: true,
  RESERVE_TASK: true,
  NOTE_STOPPED_TASK: true,
  END_CONVERSATION: true,
  SEE_SIGNAL: true,
  ADD_PARTICIPANT: true,
  REMOVE_PARTICIPANT: true,
  ERASE_ENTRY: true,
  SET_READERS: true,
  SET_ORDER: true,
  SET_ORCHESTRATION: true,
  SET_BUDGET: true,
  NOTE_LATE_RESULT: true,
};

export function isConversationDecision(decision: AgentDecision): decision is ConversationDecision {
  return Object.hasOwn(TYPES, decision.type);
}

export function reduceConversation(
  transition: Transition,
  decision: ConversationDecision,
  now: number,
): Transition {
  switch (decision.type) {
    case "START_TURN":
      return startTurn(transition, decision, now);
    case "SEND":
      return { ...transition, envelopes: [...transition.envelopes, decision.envelope] };
    case "CHARGE_CALL":
      return chargeCall(transition, decision);
    case "CHARGE_TASK":
      return chargeTask(transition, decision);
    case "RESERVE_TASK":
      return reserveTask(transition, decision);
    case "NOTE_STOPPED_TASK": {
      const { turn, item, task } = decision;
      return { ...transition, entries: [...transition.entries, ...taskEntries(turn, item, task, false)] };
    }
    case "SET_GATE":
      return setGate(transition, decision);
    case "END_CONVERSATION":
      return endConversation(transition, decision);
    case "SEE_SIGNAL":
      return seeSignal(transition, decision);
    case "ADD_PARTICIPANT":
    case "REMOVE_PARTICIPANT":
      return changeParticipants(transition, decision, now);
    case "ERASE_ENTRY":
      return eraseEntry(transition, decision);
    case "SET_READERS":
      return setReaders(transition, decision);
    case "SET_ORDER": {
      const { order, by } = decision;
      return updated(transition, { ...transition.state, order }, { turns: order, by });
    }
    case "SET_ORCHESTRATION":
      return setOrchestration(transition, decision);
    case "SET_BUDGET":
      return setBudget(transition, decision, now);
    case "NOTE_LATE_RESULT":
      return noteLateResult(transition, decision, now);
    default:
      return decision satisfies never;
  }
}

/** Returns the transition with a state of other settings, and the entry for it. */
function updated(transition: Transition, state: ConversationState, data: JsonObject): Transition {
  return { ...transition, state, entries: [...transition.entries, { type: "conversation.updated", data }] };
}

/** Notes that an entry is erased. Its content leaves the store with the commit. */
function eraseEntry(
  transition: Transition,
  { erasure, by }: Extract<ConversationDecision, { type: "ERASE_ENTRY" }>,
): Transition {
  const { turn, item, title } = erasure;
  const { state, membership = [] } = transition;
  const entry: JournalEntry = { type: "entry.erased", turn, item, data: { by: { ...by } } };
  return {
    ...transition,
    ...(title ? { state: { ...state, record: { ...state.record, title: null } }, membership } : {}),
    entries: [...transition.entries, entry],
    erased: [...(transition.erased ?? []), erasure],
  };
}

function startTurn(
  transition: Transition,
  { type: _type, turn: n, begins, ...request }: Extract<ConversationDecision, { type: "START_TURN" }>,
  now: number,
): Transition {
  const { state, entries } = transition;
  const turn: Turn = {
    n,
    ...request,
    status: "active",
    createdAt: now,
    firstSeq: state.seq + entries.length + 1,
    snapshotSeq: state.seq + entries.length + 1,
    items: 1,
    call: null,
    replies: [],
    operations: [],
    recoveries: 0,
    issues: {},
    ...(begins === undefined ? {} : { queued: true }),
  };
  const { clientId: key, correlationId, caller } = request;
  const seen = key === undefined ? [] : [{ caller, key, turn: n, ...defined({ correlationId }) }];
  const keys = [...transition.keys, ...seen];
  const next = { ...state, turns: n, ...withExchange(state, request) };
  // The answer of another turn is in the transcript already.
  const isShown = request.exchange?.message !== undefined;
  return withTurn({ ...transition, state: next, keys }, turn, [
    { type: "turn.started", turn: n },
    ...(isShown ? [] : [{ type: "message.user" as const, turn: n, item: 0 }]),
  ]);
}

function noteLateResult(
  transition: Transition,
  {
    turn,
    item,
    operationId,
    sessionId,
    name,
    result,
  }: Extract<ConversationDecision, { type: "NOTE_LATE_RESULT" }>,
  now: number,
): Transition {
  const { state } = transition;
  const seq = nextEvent(state.sessions, sessionId);
  const note = lateResultEvent({ sessionId, seq, operationId, name, result }, now);
  return {
    ...transition,
    state: { ...state, sessions: { ...state.sessions, [sessionId]: seq + 1 } },
    entries: [...transition.entries, { type: "tool.late", turn, item }],
    notes: [...transition.notes, note],
    late: [...transition.late, operationId],
  };
}

/** Charges a call to the conversation, and to its turn unless that is over. */
function chargeCall(
  transition: Transition,
  { turn: n, item, agentId, spent, failed }: Extract<ConversationDecision, { type: "CHARGE_CALL" }>,
): Transition {
  const { state } = transition;
  const turn = state.active.get(n);
  const entry: JournalEntry = {
    type: failed === undefined ? "agent_call.charged" : failed ? "agent_call.failed" : "agent_call.completed",
    turn: n,
    item,
    data: { spent: { ...spendingView(spent) } },
  };
  const charged = { ...transition, state: { ...state, ...withSpending(state, agentId, spent) } };
  if (turn === undefined) return { ...charged, entries: [...transition.entries, entry] };
  const delegated = addAmounts(turn.delegated ?? NOTHING, spent);
  const operations = turn.operations.map((operation) => {
    const { agent } = operation;
    if (operation.item !== item || agent === undefined) return operation;
    return { ...operation, agent: { ...agent, spent: addAmounts(agent.spent ?? NOTHING, spent) } };
  });
  return withTurn(charged, { ...turn, delegated, operations }, [entry]);
}

function chargeTask(
  transition: Transition,
  {
    turn: n,
    item,
    agentId,
    spent,
    models,
    hook,
    isLate,
  }: Extract<ConversationDecision, { type: "CHARGE_TASK" }>,
): Transition {
  const { state } = transition;
  const late: JournalEntry = {
    type: "workflow_run.charged",
    turn: n,
    item,
    data: { spent: { ...spendingView(spent) } },
  };
  const entries = [
    ...(hook === undefined ? [] : taskEntries(n, item, hook.summary, hook.isSuccess)),
    ...(isLate ? [late] : []),
  ];
  const spending = {
    ...withSpending(state, agentId, spent),
    ...leasesAfter(state, agentId, spent),
    ...(models && { usage: withTaskUsage(state.usage, models) }),
  };
  const charged = { ...transition, state: { ...state, ...spending } };
  const turn = state.active.get(n);
  if (turn === undefined) return { ...charged, entries: [...transition.entries, ...entries] };
  return withTurn(charged, { ...turn, delegated: addAmounts(turn.delegated ?? NOTHING, spent) }, entries);
}

function reserveTask(
  transition: Transition,
  { turn: n, item, reserving, reserved }: Extract<ConversationDecision, { type: "RESERVE_TASK" }>,
): Transition {
  const { state } = transition;
  const reservation = defined({ reserving, reserved });
  const turn = state.active.get(n);
  if (turn === undefined) return reserveExtraction(transition, n, reservation);
  const { assembly, operations } = turn;
  const next =
    assembly?.item === item
      ? { ...turn, assembly: reservedAs(assembly, reservation) }
      : {
          ...turn,
          operations: operations.map((one) => (one.item === item ? reservedAs(one, reservation) : one)),
        };
  return withTurn(transition, next, []);
}

function setGate(
  transition: Transition,
  { gate, by, reason, correlationId, causeId }: Extract<ConversationDecision, { type: "SET_GATE" }>,
): Transition {
  const type = gate === "cancelled" ? "conversation.cancelled" : "conversation.resumed";
  return {
    ...transition,
    state: { ...transition.state, gate },
    entries: [
      ...transition.entries,
      { type, data: { ...stopData(by, reason), ...defined({ correlationId, causeId }) } },
    ],
  };
}

function seeSignal(
  transition: Transition,
  { type: _type, ...signal }: Extract<ConversationDecision, { type: "SEE_SIGNAL" }>,
): Transition {
  return { ...transition, keys: [...transition.keys, { ...signal, turn: 0 }] };
}

function setOrchestration(
  transition: Transition,
  { on, by }: Extract<ConversationDecision, { type: "SET_ORCHESTRATION" }>,
): Transition {
  const { orchestration: _, ...others } = transition.state;
  const state: ConversationState = on ? others : { ...others, orchestration: false };
  return updated(transition, state, { orchestration: on, by });
}

function setBudget(
  transition: Transition,
  { budget, by }: Extract<ConversationDecision, { type: "SET_BUDGET" }>,
  now: number,
): Transition {
  const { budget: _before, ...others } = transition.state;
  const limited = {
    ...others,
    ...(budget === null ? {} : { budget }),
    compactions: withoutReservations(others.compactions),
  };
  const data: JsonObject = { budget: jsonOf(conversationBudget(limited)), ...leftData(limited), by };
  // Running model calls reserve again. Running tasks and hooks are not stopped.
  const counted = runningExtractions(limited).reduce(
    (current, [of, run]) => {
      const chain = chainOf(limited.record, run.agentId);
      const { memoryExtraction: hook } = chain;
      if (hook === undefined) return current;
      const most = reservedByHook(chain, hook);
      const { reserving, reserved } = recounted(run, hook.task, { most, isBegun: isHookRunning(run, now) });
      return reserveExtraction(current, of, defined({ reserving, reserved }));
    },
    updated(transition, limited, data),
  );
  return [...limited.active.values()].reduce((current, turn) => {
    const next = withTasksRecounted(turn, chainOf(limited.record, turn.agentId), now);
    if (turn.call?.reserved === undefined) return next === turn ? current : withTurn(current, next, []);
    const { reserved: _reserved, ...call } = turn.call;
    return withTurn(current, { ...next, call }, []);
  }, counted);
}

/** Returns the rest of the conversation's budget as a member of an entry's data; `{}` without a budget. */
export function leftData(
  state: Pick<ConversationState, "record" | "budget" | "spent" | "spentBy">,
): JsonObject | undefined {
  const left = budgetLeft(state);
  return left === null ? undefined : { budgetLeft: { ...left } };
}

function jsonOf(budget: Budget | null): JsonObject | null {
  return budget === null ? null : { ...budget };
}

/** Returns who stopped or resumed something, and why. */
export function stopData(by: Caller, reason: string | undefined): JsonObject {
  return { by, ...defined({ reason }) };
}
