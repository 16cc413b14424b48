import type { ModelReply } from "../../../../model/reply.ts";
import type { TokenEstimate } from "../../../../model/spending.ts";
import type { TurnIssues } from "../../../../protocol/caller-schemas.ts";
import { defined } from "../../../../shared/defined.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import { type AttemptOutcome, movedTotals, totalsOf, withAttempt, withCrash } from "../calls.ts";
import { withOutcome } from "../isolation.ts";
import type { JournalEntry } from "../journal-entry.ts";
import { movedSpending, withCharge } from "../ledger.ts";
import { recalledEntries } from "../recalled.ts";
import { nativeReply, pausedReply, recorded, taintsAfter, withoutPaused } from "../replies.ts";
import { type Transition, withTurn } from "../transition.ts";
import type { Addition, DeferredModel, ModelCall, Recalled, Turn } from "../turn.ts";
import { type EntryOfTurn, type FrameBody, silent, type TurnStep } from "./fact.ts";

export const modelCall = {
  /** Calls the model, into a new message. A `final` call gets no tools. */
  CALL_LLM(on: TurnStep, { final }: { final: boolean }): Transition {
    const { waiting: _over, ...turn } = on.turn;
    const { items } = turn;
    const call = { item: items, attempt: 1, notBefore: on.now, final };
    return on.replace({ ...turn, call, items: items + 1 }, on.entry("message.started", items));
  },

  RECORD_ATTEMPT(
    on: TurnStep,
    { recalled, ...outcome }: { recalled?: Recalled } & AttemptOutcome,
  ): Transition {
    const { turn } = on;
    const isRead = outcome.category === "none" || outcome.isLast;
    const next = {
      ...withAttempt(turn, outcome),
      ...defined({ recalled }),
      ...(isRead ? taintsAfter(turn, outcome.facts) : {}),
    };
    return withCalls(on, next, ...recalledEntries(turn.n, recalled));
  },

  /** Charges the attempt that a crash interrupted. */
  RECORD_CRASH(on: TurnStep, { estimate }: { estimate: TokenEstimate }): Transition {
    return withCalls(on, withCrash(on.turn, estimate));
  },

  /** Repeats a failed attempt, into the same message. `reset` withdraws text that was streamed, `halve` cuts the history. */
  RETRY_LLM(
    on: TurnStep,
    data: { error: ErrorData; notBefore: number; reset: boolean; halve?: true },
  ): Transition {
    const { error, notBefore, reset, halve } = data;
    const { call } = on.turn;
    if (call === null) return on.transition;
    const members = halve
      ? { call: nextAttempt(call, { before: call.attempt, notBefore }), halved: true as const }
      : { call: nextAttempt(call, { notBefore }) };
    const failure = { attempt: call.attempt, code: error.code, message: error.message };
    const failed = on.entry("llm.call.failed", call.item, failure);
    return afterOutcome(on, { reset }, members, failed, ...resetEntries(on, { reset, reason: "retry" }));
  },

  /** Calls another model of the chain, into the same message. `to` is the model's name. `deferred`: the models that the call may return to. */
  FALL_BACK(
    on: TurnStep,
    data: {
      error: ErrorData;
      to: string;
      model: DeferredModel;
      deferred: readonly DeferredModel[];
      reset: boolean;
    },
  ): Transition {
    const { error, to, model, deferred, reset } = data;
    if (on.turn.call === null) return on.transition;
    const { deferred: _before, ...call } = on.turn.call;
    const { item, attempt } = call;
    const { profile, tried, notBefore } = model;
    const waiting = deferred.length === 0 ? {} : { deferred };
    const next = nextAttempt(call, { profile, before: attempt - tried, notBefore, ...waiting });
    const failure = { attempt, code: error.code, message: error.message, fallback: to };
    const failed = on.entry("llm.call.failed", item, failure);
    const entries = [failed, ...resetEntries(on, { reset, reason: "fallback" })];
    return afterOutcome(on, { reset: true }, { call: next }, ...entries);
  },

  /** Withdraws an answer that does not fit its schema, and calls the model again, into the same message. */
  REPAIR_OUTPUT(on: TurnStep, { text, problem }: { text: string; problem: string }): Transition {
    const { call, repairs = [], replies } = on.turn;
    if (call === null) return on.transition;
    const members = {
      call: nextAttempt(call, { before: call.attempt, notBefore: on.now }),
      repairs: [...repairs, { after: replies.length, text, problem }],
    };
    const reset = { reason: "invalid_output", message: problem };
    return afterOutcome(on, { reset: true }, members, on.entry("message.reset", call.item, reset));
  },

  /** Withdraws the reply, tells the model of the newer messages, and calls it again, into the same message. */
  RECONSIDER(on: TurnStep, { messages, earlier, taint }: Omit<Addition, "after">): Transition {
    const { call, additions = [], replies } = on.turn;
    if (call === null) return on.transition;
    const members = {
      call: nextAttempt(call, { before: call.attempt, notBefore: on.now }),
      additions: [...additions, { after: replies.length, messages, ...defined({ earlier, taint }) }],
      messageCursor: on.state.turns,
    };
    const entry = on.entry("message.reset", call.item, { reason: "newer_message" });
    return afterOutcome(on, { reset: true }, members, entry);
  },

  /** Keeps a reply that its provider paused, and has the model continue it, in the same message. */
  CONTINUE_REPLY(on: TurnStep, { reply }: { reply: ModelReply }): Transition {
    const { call, continuations = 0 } = on.turn;
    if (call === null) return on.transition;
    const members = {
      call: nextAttempt(call, { before: call.attempt, notBefore: on.now }),
      paused: pausedReply(reply, nativeReply(on.chain, call, reply)),
      continuations: continuations + 1,
    };
    const entry = on.entry("turn.resumed", call.item, { reason: "paused" });
    return afterOutcome(on, { reset: false }, members, entry);
  },

  /** Records a reply that calls tools. `messageCursor` as in `Turn`. */
  RECORD_MOVE(
    on: TurnStep,
    { reply, messageCursor }: { reply: ModelReply; messageCursor?: number },
  ): Transition {
    const { turn, chain, now } = on;
    const members = { ...recorded(chain, turn, reply, now), ...defined({ messageCursor }) };
    const entry = on.entry("message.completed", turn.call?.item, { interim: true });
    return afterOutcome(on, { reset: true }, members, entry);
  },

  /** Records the reply that ends the turn. `notice`: the text is the platform's. */
  APPEND_MESSAGE(
    on: TurnStep,
    { reply, notice, issues }: { reply: ModelReply; notice?: true; issues?: TurnIssues },
  ): Transition {
    const { turn, chain, now } = on;
    const members = {
      ...recorded(chain, turn, reply, now, notice),
      ...(issues === undefined ? {} : { issues: { ...turn.issues, ...issues } }),
    };
    const entry = on.entry("message.completed", turn.call?.item, notice && { notice });
    return on.replace({ ...withoutPaused(turn), ...members }, entry);
  },

  /** Ends the call of a turn without a message; `silent` if that ends the turn. */
  STAY_SILENT(on: TurnStep, { silent: isSilent }: { silent?: true }): Transition {
    const { turn } = on;
    const entry = on.entry("message.completed", turn.call?.item, { interim: true });
    return on.replace({ ...withoutPaused(turn), call: null, ...defined({ silent: isSilent }) }, entry);
  },
};

/** Replaces the turn, and charges its new model calls to the conversation and the lease. */
function withCalls(on: TurnStep, next: Turn, ...entries: JournalEntry[]): Transition {
  const { transition, state, turn, chain } = on;
  const usage = movedTotals(state.usage, totalsOf(turn.calls, chain), totalsOf(next.calls, chain));
  const charge = withCharge(state, turn.agentId, movedSpending(turn, next, chain));
  return withTurn({ ...transition, state: { ...state, usage, ...charge } }, next, entries);
}

/** Changes a turn after an outcome. If its text is withdrawn, its message restarts (PAUSE-3). */
function afterOutcome(
  on: TurnStep,
  { reset }: { reset: boolean },
  members: Partial<Turn>,
  ...entries: JournalEntry[]
): Transition {
  const turn = reset ? withoutPaused(on.turn) : on.turn;
  return on.replace({ ...turn, ...withOutcome(on.turn), ...members }, ...entries);
}

/** Returns the entry of a message that is withdrawn; an empty list if `reset` is false. */
export function resetEntries(
  on: TurnStep,
  { reset, reason }: { reset: boolean; reason: string },
): JournalEntry[] {
  return reset ? [on.entry("message.reset", on.turn.call?.item, { reason })] : [];
}

function nextAttempt({ reserved: _reserved, ...call }: ModelCall, members: Partial<ModelCall>): ModelCall {
  return { ...call, attempt: call.attempt + 1, ...members };
}

/** The members of a completed message. `interim`: the text is beside tool calls. */
export interface MessageMembers {
  interim?: true;
  stopped?: true;
  notice?: true;
}

export const modelCallFrames = {
  ...silent("memory.recalled"),
  "message.started": (_: undefined, { turn: { agentId } }: EntryOfTurn): FrameBody => ({
    type: "message.started",
    data: { agentId },
  }),
  "message.reset": ({ reason }: { reason: string }): FrameBody => ({
    type: "message.reset",
    data: { reason },
  }),
  "message.completed": (members: MessageMembers = {}, { turn, item }: EntryOfTurn): FrameBody => {
    const content = turn.replies.find((reply) => reply.item === item)?.text ?? "";
    const { interim, stopped, notice } = members;
    const data = { agentId: turn.agentId, content, ...defined({ interim, stopped, notice }) };
    return { type: "message.completed", data };
  },
  "llm.call.failed": retriableError,
};

/** Returns the frame of a failure that is repeated. */
export function retriableError({ code, message }: Pick<ErrorData, "code" | "message">): FrameBody {
  return { type: "error", data: { code, message, retriable: true } };
}
