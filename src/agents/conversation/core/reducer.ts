/**
 * The reducer: applies decisions to the state. Pure.
 *
 * TURN-1  A terminal status never changes.
 * TURN-2  Each message that starts ends: completed, or with its turn. Each operation has a result when its turn is over.
 * TURN-3  A turn has one message that starts it, of a user or of another agent, and any number of messages of its agent.
 */

import { addAmounts, NOTHING } from "../../../model/spending.ts";
import type { UsageTotals } from "../../../model/usage.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { reduceCall } from "./call-reducer.ts";
import { movedTotals, totalsOf, withAttempt, withCrash, withoutOpenCall } from "./calls.ts";
import { reduceCompaction } from "./compaction.ts";
import { isConversationDecision, leftData, reduceConversation, stopData } from "./conversation-reducer.ts";
import type {
  AgentDecision,
  CompactionDecision,
  CycleNotes,
  ExtractionDecision,
  QueueDecision,
} from "./decisions.ts";
import { assemblyFailure, beginCycle, completed, reduceAssembly, reduceExtraction } from "./hook-reducer.ts";
import { withOutcome } from "./isolation.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { leasesAfter, reduceLease } from "./lease-reducer.ts";
import { movedSpending } from "./ledger.ts";
import { cancelled, isDue, isOpen } from "./operation.ts";
import { approvalEntries, oneMoreFailure, reduceOperation } from "./operation-reducer.ts";
import { withSpending } from "./own-spending.ts";
import { forgetTold, keptTold, toldEntries } from "./planning/recalled.ts";
import { reduceQueue } from "./queue-reducer.ts";
import { marksAfter, nativeReply, pausedReply, recorded, withoutPaused } from "./replies.ts";
import { chainOf, queuedTurns } from "./state.ts";
import { cancelledEntries, requestedEntries } from "./sub-agents.ts";
import { dispatchedEntries } from "./task-entries.ts";
import { chargedForStop, dueFor, taskOf } from "./task-spending.ts";
import { type Transition, withTurn } from "./transition.ts";
import { type ModelCall, openOperations, runnableOperations, type Turn } from "./turn.ts";

export function reduce(transition: Transition, decisions: readonly AgentDecision[], now: number): Transition {
  return decisions.reduce((current, decision) => applyDecision(current, decision, now), transition);
}

function applyDecision(transition: Transition, decision: AgentDecision, now: number): Transition {
  if (isConversationDecision(decision)) return reduceConversation(transition, decision, now);
  if (decision.type === "SET_LEASE" || decision.type === "LEASED") return reduceLease(transition, decision);
  if (isQueueDecision(decision)) return reduceQueue(transition, decision);
  if (isCompactionDecision(decision)) return reduceCompaction(transition, decision, now);
  if (isExtractionDecision(decision)) return reduceExtraction(transition, decision);
  const { state } = transition;
  const turn = state.active.get(decision.turn);
  if (turn === undefined) return transition;
  const chain = chainOf(state.record, turn.agentId);
  const { call, items } = turn;
  const entry = (type: JournalEntry["type"], item?: number, data?: JournalEntry["data"]): JournalEntry => ({
    type,
    turn: turn.n,
    ...defined({ item, data }),
  });
  const change = (members: Partial<Turn>, ...entries: JournalEntry[]) =>
    withTurn(transition, { ...turn, ...members }, entries);
  /** Changes the turn. If its text is withdrawn, its message restarts (PAUSE-3). */
  const begin = ({ reset }: { reset: boolean }, members: Partial<Turn>, ...entries: JournalEntry[]) =>
    withTurn(transition, { ...(reset ? withoutPaused(turn) : turn), ...members }, entries);
  const outcome = (reset: { reset: boolean }, members: Partial<Turn>, ...entries: JournalEntry[]) =>
    begin(reset, { ...withOutcome(turn), ...members }, ...entries);
  const resetIf = (reason: string, { reset }: { reset: boolean }) =>
    reset ? [entry("message.reset", call?.item, { reason })] : [];
  switch (decision.type) {
    case "QUEUE_TURN": {
      const position = queuedTurns(state).length + 1;
      return change({ queued: true }, entry("turn.queued", undefined, { position }));
    }
    case "BEGIN_TURN": {
      const { queued, ...waited } = turn;
      const { members, entry: begins } = beginCycle(state.record, turn, { ...decision, final: false }, now);
      const snapshotSeq = queued ? state.seq + transition.entries.length + 1 : turn.snapshotSeq;
      const begun = {
        ...waited,
        snapshotSeq,
        ...members,
        ...toldMembers(decision),
      };
      return withTurn(transition, begun, [begins]);
    }
    case "RECONSIDER": {
      if (call === null) return transition;
      const { messages, earlier, mark } = decision;
      const next = {
        ...withoutPaused(turn),
        ...withOutcome(turn),
        call: nextAttempt(call, { before: call.attempt, notBefore: now }),
        additions: [
          ...(turn.additions ?? []),
          { after: turn.replies.length, messages, ...defined({ earlier, mark }) },
        ],
        heard: state.turns,
      };
      return withTurn(transition, next, [entry("message.reset", call.item, { reason: "newer_message" })]);
    }
    case "CALL_LLM": {
      const { waiting: _over, ...others } = turn;
      const first = { item: items, attempt: 1, notBefore: now, final: decision.final };
      const calling = { ...others, call: first, items: items + 1 };
      return withTurn(transition, calling, [entry("message.started", items)]);
    }
    case "RECORD_ATTEMPT": {
      const { told, facts, category, isLast } = decision;
      const isRead = category === "none" || isLast;
      const next = {
        ...withAttempt(turn, decision),
        ...defined({ told }),
        ...(isRead ? marksAfter(turn, facts) : {}),
      };
      const usage = movedTotals(state.usage, totalsOf(turn.calls, chain), totalsOf(next.calls, chain));
      return withTurn(charged(transition, { turn, next, usage }), next, toldEntries(turn.n, told));
    }
    case "RECORD_CRASH": {
      const next = withCrash(turn, decision.estimate);
      const usage = movedTotals(state.usage, totalsOf(turn.calls, chain), totalsOf(next.calls, chain));
      return withTurn(charged(transition, { turn, next, usage }), next, []);
    }
    case "RESERVE": {
      if (call === null) return transition;
      const { leasing: _, ...others } = call;
      return change({ call: { ...others, reserved: decision.reserved } });
    }
    case "AWAIT_LEASE":
      return call === null ? transition : change({ call: { ...call, leasing: true } });
    case "EXCEED_BUDGET":
      return change({}, entry("budget.exceeded", undefined, { ...decision.excess }));
    case "RETRY_LLM": {
      if (call === null) return transition;
      const { notBefore, halve } = decision;
      const { code, message } = decision.error;
      return outcome(
        decision,
        halve
          ? { call: nextAttempt(call, { before: call.attempt, notBefore }), halved: true }
          : { call: nextAttempt(call, { notBefore }) },
        entry("llm.call.failed", call.item, { attempt: call.attempt, code, message }),
        ...resetIf("retry", decision),
      );
    }
    case "FALL_BACK": {
      if (call === null) return transition;
      const { item, attempt } = call;
      const { deferred: _before, ...others } = call;
      const { error, model, deferred } = decision;
      const { profile, tried, notBefore } = model;
      const { code, message } = error;
      const waiting = deferred.length === 0 ? {} : { deferred };
      return outcome(
        { reset: true },
        { call: nextAttempt(others, { profile, before: attempt - tried, notBefore, ...waiting }) },
        entry("llm.call.failed", item, { attempt, code, message, fallback: decision.to }),
        ...resetIf("fallback", decision),
      );
    }
    case "REPAIR_OUTPUT": {
      if (call === null) return transition;
      const { text, problem } = decision;
      return outcome(
        { reset: true },
        {
          call: nextAttempt(call, { before: call.attempt, notBefore: now }),
          repairs: [...(turn.repairs ?? []), { after: turn.replies.length, text, problem }],
        },
        entry("message.reset", call.item, { reason: "invalid_output", message: problem }),
      );
    }
    case "CONTINUE_REPLY": {
      if (call === null) return transition;
      const { reply } = decision;
      const { continuations = 0 } = turn;
      return outcome(
        { reset: false },
        {
          call: nextAttempt(call, { before: call.attempt, notBefore: now }),
          paused: pausedReply(reply, nativeReply(chain, call, reply)),
          continuations: continuations + 1,
        },
        entry("turn.resumed", call.item, { reason: "paused" }),
      );
    }
    case "RECORD_MOVE":
      return outcome(
        { reset: true },
        { ...recorded(chain, turn, decision.reply, now), ...defined({ heard: decision.heard }) },
        entry("message.completed", call?.item, { interim: true }),
      );
    case "DISPATCH_TASK": {
      const isRefused = decision.operation.result !== undefined;
      const operation = {
        ...decision.operation,
        item: items,
        reply: turn.replies.length - 1,
        ...(isRefused ? { completedAt: now } : dueFor(taskOf(chain, decision.operation))),
      };
      const spending = isRefused ? {} : withSpending(state, turn.agentId, { toolCalls: 1 });
      const next = {
        ...turn,
        items: items + 1,
        operations: [...turn.operations, operation],
        ...(isRefused ? { issues: oneMoreFailure(turn) } : { toolCalls: (turn.toolCalls ?? 0) + 1 }),
      };
      const { requested, refused } = requestedEntries(state.record, turn, operation);
      return withTurn({ ...transition, state: { ...state, ...spending } }, next, [
        entry("tool.requested", items),
        ...requested,
        ...(isRefused ? [] : dispatchedEntries(turn.n, items, taskOf(chain, operation))),
        ...approvalEntries(turn.n, items, operation),
        ...(isRefused ? [entry("tool.failed", items)] : []),
        ...refused,
      ]);
    }
    case "DISPATCH_CALLS":
    case "NOTE_ASK":
    case "NOTE_ANSWER":
    case "NOTE_HOLD":
      return reduceCall(transition, turn, decision, now);
    case "INTERRUPT_TASK":
    case "DEFER_TASK":
    case "RETRY_TASK":
    case "RESOLVE_APPROVAL":
    case "RESUME_FROM_TOOL":
    case "WAIT_FOR_PERSON":
    case "WAIT_FOR_CLIENT":
    case "MARK_WAITING":
      return reduceOperation(transition, turn, decision, now);
    case "BEGIN_CYCLE": {
      const { waiting, besides, besidesMark, said, told: _told, ...others } = turn;
      const { members, entry: begins } = beginCycle(state.record, turn, decision, now);
      const delivered = turn.replies.length;
      const begun = {
        ...others,
        ...forgetTold(turn),
        snapshotSeq: state.seq + transition.entries.length + 1,
        heard: state.turns,
        ...members,
        operations: turn.operations.map((operation) =>
          isDue(operation) ? { ...operation, delivered } : operation,
        ),
        ...toldMembers(decision),
      };
      return withTurn(transition, begun, [begins]);
    }
    case "APPEND_MESSAGE": {
      const { reply, notice, issues } = decision;
      return begin(
        { reset: true },
        {
          ...recorded(chain, turn, reply, now, notice),
          ...(issues === undefined ? {} : { issues: { ...turn.issues, ...issues } }),
        },
        entry("message.completed", call?.item, notice && { notice }),
      );
    }
    case "COMPLETE_TURN": {
      const isAsked = turn.replies.length > 0;
      const hooks = isAsked ? chain : {};
      return completed(transition, { ...over(turn, now), status: "completed" }, hooks, now, leftData(state));
    }
    case "STAY_SILENT":
      return begin(
        { reset: true },
        { call: null, ...defined({ silent: decision.silent }) },
        entry("message.completed", call?.item, { interim: true }),
      );
    case "LOWER_BUDGET":
      return change({ budget: decision.budget });
    case "LEAVE_UNASKED": {
      const { agentId, reason } = decision;
      const issues = { ...turn.issues, notAsked: [...(turn.issues.notAsked ?? []), agentId] };
      return change({ issues }, entry("turn.unasked", undefined, { agentId, reason }));
    }
    case "FAIL_TURN": {
      const { error, shown, mark, by, reason } = decision;
      const { replies } = turn;
      const marks = marksAfter(turn, mark ?? {});
      const isCutOff = call !== null && shown !== undefined;
      const last = isCutOff
        ? [{ item: call.item, text: shown, finishReason: "other", stopped: true, ...marks, at: now } as const]
        : [];
      const failed: Turn = {
        ...over(withoutOpenCall(withoutPaused({ ...turn, ...marks }), now), now),
        replies: [...replies, ...last],
        operations: turn.operations.map((operation) =>
          isOpen(operation) ? cancelled(operation, now) : operation,
        ),
        status: "failed",
        error,
      };
      const { assembly, ...others } = turn;
      const asked = chargedForStop(chain, decision.isCharged ? others : turn, now);
      const spending =
        asked.modelCalls === 0
          ? {}
          : { ...withSpending(state, turn.agentId, asked), ...leasesAfter(state, turn.agentId, asked) };
      const delegated =
        asked.modelCalls === 0 ? {} : { delegated: addAmounts(turn.delegated ?? NOTHING, asked) };
      const stopped = { ...transition, state: { ...state, ...spending } };
      return withTurn(stopped, { ...failed, ...delegated }, [
        ...last.map(({ item }) => entry("message.completed", item, { stopped: true })),
        ...openOperations(turn).flatMap((operation) => [
          entry("tool.cancelled", operation.item, reason === undefined ? undefined : { reason }),
          ...cancelledEntries(state.record, turn, operation, reason),
        ]),
        ...(turn.assembly === undefined ? [] : [assemblyFailure(state.record, turn, error, true)]),
        entry("turn.failed", undefined, endData(by && stopData(by, reason), leftData(stopped.state))),
      ]);
    }
    case "ASSEMBLED":
    case "RETRY_ASSEMBLY":
    case "INTERRUPT_ASSEMBLY":
      return reduceAssembly(transition, turn, decision, now);
    case "RESUME_TURN":
      return begin(
        decision,
        { recoveries: turn.recoveries + 1, ...delayed(turn, decision.notBefore, now) },
        entry("turn.resumed"),
        ...resetIf("interrupted", decision),
      );
    default:
      return decision satisfies never;
  }
}

/** Charges what the calls of a turn have used up to the conversation and the lease. */
function charged(
  transition: Transition,
  { turn, next, usage }: { turn: Turn; next: Turn; usage: UsageTotals },
): Transition {
  const { state } = transition;
  const moved = movedSpending(turn, next, chainOf(state.record, turn.agentId));
  const { agentId } = turn;
  const spending = withSpending(state, agentId, moved);
  return { ...transition, state: { ...state, usage, ...spending, ...leasesAfter(state, agentId, moved) } };
}

function isCompactionDecision(decision: AgentDecision): decision is CompactionDecision {
  return "session" in decision;
}

function isExtractionDecision(decision: AgentDecision): decision is ExtractionDecision {
  return "of" in decision;
}

function isQueueDecision(decision: AgentDecision): decision is QueueDecision {
  return decision.type === "ENQUEUE" || decision.type === "OVERFLOW" || decision.type === "DEQUEUE";
}

/** Joins members of an entry's data; `undefined` if all are absent. */
function endData(...parts: (JsonObject | undefined)[]): JsonObject | undefined {
  return parts.every((part) => part === undefined) ? undefined : Object.assign({}, ...parts);
}

/** Returns a turn that ends, without what only an active turn needs. */
function over(turn: Turn, now: number): Turn {
  const { repairs, additions, heard, besides, besidesMark, said, replied, queued, waiting, ...rest } = turn;
  const { assembly, request, requestMark, halved, echoes, ...kept } = rest;
  return { ...kept, ...keptTold(turn), completedAt: now, call: null };
}

/** Returns the members of the turn with its effects put off until `notBefore`. */
function delayed(
  turn: Turn,
  notBefore: number,
  now: number,
): Pick<Turn, "call" | "operations"> & Partial<Pick<Turn, "assembly">> {
  const { call, operations, assembly } = turn;
  if (notBefore <= now) return { call, operations };
  const running = runnableOperations(turn);
  return {
    ...(assembly && { assembly: { ...assembly, notBefore: Math.max(assembly.notBefore, notBefore) } }),
    call: call && { ...call, notBefore: Math.max(call.notBefore, notBefore) },
    operations: operations.map((operation) =>
      running.includes(operation)
        ? { ...operation, notBefore: Math.max(operation.notBefore ?? 0, notBefore) }
        : operation,
    ),
  };
}

function nextAttempt({ reserved: _reserved, ...call }: ModelCall, members: Partial<ModelCall>): ModelCall {
  return { ...call, attempt: call.attempt + 1, ...members };
}

/** Returns the notes of a cycle on other turns, as members. */
function toldMembers({ besides, besidesMark, said }: CycleNotes): Partial<Turn> {
  return defined({ besides, besidesMark, said });
}
