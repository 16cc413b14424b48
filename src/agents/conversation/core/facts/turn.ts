/**
 * The turn: started, queued, begun, waiting, completed or failed. Pure.
 *
 * TURN-1  A terminal status never changes.
 * TURN-2  Each message that starts ends: completed, or with its turn. Each operation has a result when its turn is over.
 * TURN-3  A turn has one message that starts it, of a user or of another agent, and any number of messages of its agent.
 */
import type { ActiveTurn } from "../../../../library/hooks/hook-inputs.ts";
import { maxMovesPerTurn } from "../../../../library/personas/persona.ts";
import { EventAction, type SessionEvent } from "../../../../memory/session/session-event.ts";
import { addAmounts, NOTHING } from "../../../../model/spending.ts";
import type { RequestTaint, Taint } from "../../../../model/taint.ts";
import type { Budget } from "../../../../protocol/budget.ts";
import type { Caller } from "../../../../protocol/caller-schemas.ts";
import { turnId } from "../../../../protocol/ids.ts";
import { defined } from "../../../../shared/defined.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import type { JsonObject } from "../../../../shared/json.ts";
import { withoutOpenCall } from "../calls.ts";
import { withExchange } from "../exchange.ts";
import { turnSpending, withCharge } from "../ledger.ts";
import { cancelled, isDue, isOpen } from "../operation.ts";
import { archiveRecalled, withoutRecallNote } from "../recalled.ts";
import type { Replacement, TakenMoves } from "../replacement.ts";
import { taintsAfter, withoutPaused } from "../replies.ts";
import { chainOf, nextEvent, queuedTurns } from "../state.ts";
import { cancelledEntries } from "../sub-agents.ts";
import { chargedForStop } from "../task-spending.ts";
import { type Transition, withTurn } from "../transition.ts";
import { issuesOf, type Turn, type TurnRequest } from "../turn.ts";
import { outputOf } from "../turn-events.ts";
import { openOperations, runnableOperations } from "../turn-operations.ts";
import { wireError } from "../view-members.ts";
import { leftData } from "./budget.ts";
import { assemblyFailure, beginCycle } from "./context-hook.ts";
import { completed } from "./extraction.ts";
import { type EntryOfTurn, type FrameBody, nextSeq, silent, type TurnStep } from "./fact.ts";
import { stopData } from "./lifecycle.ts";
import { resetEntries } from "./model-call.ts";

/** The notes on other turns that a cycle gets. `concurrentNote` is for its model, `others` for its context hook. */
export interface CycleNotes {
  concurrentNote?: string;
  /** As in `Turn`. */
  concurrentTaint?: Taint;
  /** As in `Turn`. */
  shownTurns?: readonly number[];
  others?: readonly ActiveTurn[];
}

/** The reason why a mention starts no turn. `bound`: TALK-2. `busy`: too many turns are active. `budget`: its model has no price. */
export type UnaskedReason = "bound" | "busy" | "budget";

export const newTurn = {
  /** `begins`: it begins in this step without a decision of its own. */
  START_TURN(
    transition: Transition,
    {
      turn: n,
      begins,
      moves,
      ...request
    }: { turn: number; begins?: "at once"; moves?: TakenMoves } & TurnRequest,
    now: number,
  ): Transition {
    const { state } = transition;
    const seq = nextSeq(transition);
    const turn: Turn = {
      n,
      ...request,
      status: "active",
      createdAt: now,
      firstSeq: seq,
      snapshotSeq: seq,
      items: 1,
      call: null,
      replies: [],
      operations: [],
      recoveries: 0,
      issues: {},
      ...(begins === undefined ? {} : { queued: true }),
      ...(moves && { ...moves, taken: moves.replies.length }),
    };
    const { regenerates, edits } = request;
    const data = (regenerates ?? edits) ? { data: defined({ regenerates, edits }) } : {};
    const { clientId: key, correlationId, caller } = request;
    const seen = key === undefined ? [] : [{ caller, key, turn: n, ...defined({ correlationId }) }];
    const keys = [...transition.keys, ...seen];
    const next = { ...state, turns: n, ...withExchange(state, request) };
    // The answer of another turn is in the transcript already.
    const isShown = request.exchange?.message !== undefined;
    return withTurn({ ...transition, state: next, keys }, turn, [
      { type: "turn.started", turn: n, ...data },
      ...(isShown ? [] : [{ type: "message.user" as const, turn: n, item: 0 }]),
    ]);
  },

  /** Hides a replaced turn and the later turns from the windows of all sessions (REPLACE-1). */
  SUPERSEDE(
    transition: Transition,
    {
      turn: n,
      stem,
      agentId,
      replacement: { n: first, sessions: before, notice, notices },
    }: { turn: number; stem: string; agentId: string; replacement: Replacement },
    now: number,
  ): Transition {
    const { state } = transition;
    const by = turnId({ n, stem });
    const notes: SessionEvent[] = [];
    for (const { id: sessionId } of state.record.agents) {
      const seq = nextEvent(state.sessions, sessionId);
      const content = sessionId === agentId ? notice : (notices[sessionId] ?? "");
      if (seq === nextEvent(before, sessionId) && content === "") continue;
      notes.push({
        ...{ id: `supersession_${by}`, sessionId, seq, content, timestamp: now },
        action: EventAction.SUPERSESSION,
        metadata: { origin: "platform", supersedes: [first, n] },
      });
    }
    const moved = Object.fromEntries(notes.map(({ sessionId, seq }) => [sessionId, seq + 1]));
    return {
      ...transition,
      state: { ...state, sessions: { ...state.sessions, ...moved } },
      notes: [...transition.notes, ...notes],
      superseded: { n: first, by, sessions: before },
    };
  },
};

export const turn = {
  /** Keeps the turn waiting for those before it. */
  QUEUE_TURN(on: TurnStep): Transition {
    const position = queuedTurns(on.state).length + 1;
    return on.change({ queued: true }, on.entry("turn.queued", undefined, { position }));
  },

  /** Begins a turn's first cycle. */
  BEGIN_TURN(on: TurnStep, notes: CycleNotes): Transition {
    const { queued, ...waited } = on.turn;
    const { definition } = on.chain.persona;
    const final = waited.replies.length > 0 && waited.replies.length >= maxMovesPerTurn(definition) - 1;
    const { members, entry } = beginCycle(on, { ...notes, final });
    const snapshotSeq = queued ? on.nextSeq : waited.snapshotSeq;
    return on.replace({ ...waited, snapshotSeq, ...members, ...noteMembers(notes) }, entry);
  },

  /** Begins a further cycle, with the results of background operations. */
  BEGIN_CYCLE(on: TurnStep, data: { final: boolean } & CycleNotes): Transition {
    const { waiting, concurrentNote, concurrentTaint, shownTurns, recalled: _recalled, ...others } = on.turn;
    const { members, entry } = beginCycle(on, data);
    const delivered = others.replies.length;
    const begun = {
      ...others,
      ...archiveRecalled(on.turn),
      snapshotSeq: on.nextSeq,
      // The messages of a context hook may lack newer messages (ORDER-4).
      ...(on.chain.contextAssembly === undefined && { messageCursor: on.state.turns }),
      ...members,
      operations: others.operations.map((operation) =>
        isDue(operation) ? { ...operation, delivered } : operation,
      ),
      ...noteMembers(data),
    };
    return on.replace(begun, entry);
  },

  /** Waits: a person must approve a call first. */
  WAIT_FOR_PERSON(on: TurnStep): Transition {
    const entry = on.entry("turn.waiting", undefined, { reason: "approval" });
    return on.change({ waiting: on.nextSeq }, entry);
  },

  /** Waits: only results from a client are missing. */
  WAIT_FOR_CLIENT(on: TurnStep): Transition {
    const { waiting: _over, ...others } = on.turn;
    return on.replace(others, on.entry("turn.waiting"));
  },

  /** Ends the cycle: background operations are left. `isIdle`: the next cycle does not begin at once. */
  MARK_WAITING(on: TurnStep, { isIdle }: { isIdle: boolean }): Transition {
    const entries = isIdle ? [on.entry("turn.waiting", undefined, { reason: "operations" })] : [];
    return on.change({ waiting: on.nextSeq - 1 + entries.length }, ...entries);
  },

  /** Records that a mention starts no turn. */
  LEAVE_UNASKED(on: TurnStep, { agentId, reason }: { agentId: string; reason: UnaskedReason }): Transition {
    const { issues } = on.turn;
    const notAsked = [...(issues.notAsked ?? []), agentId];
    const entry = on.entry("turn.unasked", undefined, { agentId, reason });
    return on.change({ issues: { ...issues, notAsked } }, entry);
  },

  COMPLETE_TURN(on: TurnStep): Transition {
    const { transition, state, chain, now } = on;
    const isAsked = on.turn.replies.length > 0;
    const ended = { ...over(on.turn, now), status: "completed" as const };
    return completed(transition, ended, isAsked ? chain : {}, now, leftData(state));
  },

  /**
   * Ends the turn. `shown` is the text of its message in progress, and `taint` belongs to the request that `shown` answers. `by` and `reason`
   * describe a stop. `isCharged`: its context hook has ended, and is charged.
   */
  FAIL_TURN(
    on: TurnStep,
    data: {
      error: ErrorData;
      shown?: string;
      taint?: RequestTaint;
      by?: Caller;
      reason?: string;
      isCharged?: true;
    },
  ): Transition {
    const { error, shown, taint, by, reason, isCharged } = data;
    const { transition, state, turn, chain, record, now } = on;
    const { replies, call, agentId } = turn;
    const taints = taintsAfter(turn, taint ?? {});
    const isCutOff = call !== null && shown !== undefined;
    const last = isCutOff
      ? [{ item: call.item, text: shown, finishReason: "other", stopped: true, ...taints, at: now } as const]
      : [];
    const { assembly, ...others } = turn;
    const asked = chargedForStop(chain, isCharged ? others : turn, now);
    const isFree = asked.modelCalls === 0;
    const failed: Turn = {
      ...over(withoutOpenCall(withoutPaused({ ...turn, ...taints }), now), now),
      replies: [...replies, ...last],
      operations: turn.operations.map((operation) =>
        isOpen(operation) ? cancelled(operation, now) : operation,
      ),
      status: "failed",
      error,
      ...(isFree ? {} : { delegated: addAmounts(turn.delegated ?? NOTHING, asked) }),
    };
    const stopped = isFree ? state : { ...state, ...withCharge(state, agentId, asked) };
    return withTurn({ ...transition, state: stopped }, failed, [
      ...last.map(({ item }) => on.entry("message.completed", item, { stopped: true })),
      ...openOperations(turn).flatMap((operation) => [
        on.entry("tool.cancelled", operation.item, reason === undefined ? undefined : { reason }),
        ...cancelledEntries(record, turn, operation, reason),
      ]),
      ...(assembly === undefined ? [] : [assemblyFailure(record, turn, error, true)]),
      on.entry("turn.failed", undefined, endData(by && stopData(by, reason), leftData(stopped))),
    ]);
  },

  /** Continues after a crash, no earlier than `notBefore`. `reset` withdraws text that may have been streamed. */
  RESUME_TURN(on: TurnStep, { notBefore, reset }: { notBefore: number; reset: boolean }): Transition {
    const { turn, now } = on;
    const next = {
      ...(reset ? withoutPaused(turn) : turn),
      recoveries: turn.recoveries + 1,
      ...delayed(turn, notBefore, now),
    };
    const entries = resetEntries(on, { reset, reason: "interrupted" });
    return on.replace(next, on.entry("turn.resumed"), ...entries);
  },
};

/** Joins members of an entry's data; `undefined` if all are absent. */
function endData(...parts: (JsonObject | undefined)[]): JsonObject | undefined {
  return parts.every((part) => part === undefined) ? undefined : Object.assign({}, ...parts);
}

/** Returns a turn that ends, without what only an active turn needs. */
function over(turn: Turn, now: number): Turn {
  const {
    repairs,
    additions,
    messageCursor,
    concurrentNote,
    concurrentTaint,
    shownTurns,
    replied,
    queued,
    waiting,
    ...rest
  } = turn;
  const { assembly, request, requestTaint, echoes, ...kept } = rest;
  const noted = concurrentNote === undefined ? {} : { noted: true as const };
  return { ...kept, ...noted, ...withoutRecallNote(turn), completedAt: now, call: null };
}

/** Returns the members of the turn with its effects put off until `notBefore`. */
function delayed(turn: Turn, notBefore: number, now: number): Partial<Turn> {
  const { call, operations, assembly } = turn;
  if (notBefore <= now) return {};
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

/** Returns the notes of a cycle on other turns, as members of the turn. */
function noteMembers({ concurrentNote, concurrentTaint, shownTurns }: CycleNotes): Partial<Turn> {
  return defined({ concurrentNote, concurrentTaint, shownTurns });
}

/** The usage and the remaining budget at the end of a turn. */
function spending({ turn, record }: EntryOfTurn, { budgetLeft }: { budgetLeft?: Budget } = {}) {
  return { spent: turnSpending(chainOf(record, turn.agentId), turn), ...defined({ budgetLeft }) };
}

export const turnFrames = {
  ...silent("turn.resumed", "turn.unasked"),
  "turn.started": (
    _: Pick<Turn, "regenerates" | "edits"> | undefined,
    { turn: { agentId, caller, clientId, regenerates, edits } }: EntryOfTurn,
  ): FrameBody => ({
    type: "turn.started",
    data: {
      ...defined({ clientId }),
      agentId,
      ...defined({ regenerates, edits }),
      ...(caller.type === "user" ? {} : { caller }),
    },
  }),
  "message.user": (
    _: undefined,
    { turn: { caller, clientId, input, regenerates, edits } }: EntryOfTurn,
  ): FrameBody => ({
    type: "message.user",
    data: {
      ...defined({ clientId }),
      content: input,
      ...defined({ regenerates, edits }),
      ...(caller.type === "agent" ? { agentId: caller.agentId } : {}),
      ...(caller.type === "workflow" ? { runId: caller.runId } : {}),
    },
  }),
  "turn.queued": ({ position }: { position: number }): FrameBody => ({
    type: "turn.queued",
    data: { position },
  }),
  /** Entries without data are of waits for the client. */
  "turn.waiting": (data: { reason: "approval" | "operations" } | undefined): FrameBody => ({
    type: "turn.waiting",
    data: { reason: data?.reason ?? "client-tools" },
  }),
  "turn.completed": (data: { budgetLeft?: Budget } | undefined, of: EntryOfTurn): FrameBody => {
    const { turn } = of;
    const ended = { ...issuesOf(turn), ...defined({ silent: turn.silent, output: outputOf(turn) }) };
    return { type: "turn.completed", data: { ...ended, ...spending(of, data) } };
  },
  "turn.failed": (data: { budgetLeft?: Budget } | undefined, of: EntryOfTurn): FrameBody => ({
    type: "turn.failed",
    data: { error: wireError(of.turn.error), ...spending(of, data) },
  }),
};
