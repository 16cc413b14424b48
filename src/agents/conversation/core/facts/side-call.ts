/** The calls for summaries and for titles: reserved, repeated, given up, stopped. Pure. */
import type { TokenEstimate } from "../../../../model/spending.ts";
import { turnId } from "../../../../protocol/ids.ts";
import { defined } from "../../../../shared/defined.ts";
import { type AttemptOutcome, withOutcome, withUsage } from "../calls.ts";
import type { JournalEntry } from "../journal-entry.ts";
import { spentByRequest, withCharge } from "../ledger.ts";
import {
  placeOfCall,
  type RunningSideCall,
  type SideCallPlace,
  type SummaryCall,
  sideCallAt,
  sideProfile,
} from "../side-calls.ts";
import type { BaseState, RunningCompaction, SessionCompaction, SideCall } from "../state.ts";
import type { Transition } from "../transition.ts";
import { type FailureText, noted } from "./fact.ts";

/** An attempt that called the model. */
export type MadeAttempt = Omit<AttemptOutcome, "isLast">;

/** A failure of a call. `crashed`: the charge for an attempt that a crash interrupted. */
export interface Failure extends SideCallPlace {
  error: FailureText;
  made?: MadeAttempt;
  crashed?: TokenEstimate;
}

export const sideCall = {
  RETRY_SIDE_CALL(transition: Transition, data: Failure & { notBefore: number }): Transition {
    const { made, notBefore } = data;
    const running = sideCallAt(transition.state, data);
    if (running === undefined) return transition;
    const { call } = running;
    const record = made === undefined ? call.record : withOutcome(call.record, { ...made, isLast: false });
    const next = { attempt: call.attempt + 1, notBefore, ...defined({ record }) };
    return noted(
      withCall(counted(transition, data), data, () => next),
      failure(data, running, false),
    );
  },

  /** Keeps the history or the title as it is. The history is remembered as tried. */
  GIVE_UP_SIDE_CALL(transition: Transition, data: Failure, now: number): Transition {
    return over(transition, data, now, ({ call: _over, ...left }) => left);
  },

  /** Ends a call with its conversation. The attempts for the history are remembered. */
  STOP_SIDE_CALL(transition: Transition, data: Omit<Failure, "crashed">, now: number): Transition {
    return over(transition, data, now, ({ call, ...left }) => {
      const tried = data.made === undefined ? call.attempt - 1 : call.attempt;
      return tried === 0 ? undefined : { ...left, tried };
    });
  },

  /** Reserves tokens for the current attempt. */
  RESERVE_SIDE_CALL(
    transition: Transition,
    { reserved, ...place }: SideCallPlace & { reserved: TokenEstimate },
  ): Transition {
    return withCall(transition, place, ({ leasing: _, ...call }) => ({ ...call, reserved }));
  },

  /** Parks the current attempt until the lease reply. */
  AWAIT_SIDE_CALL_LEASE(transition: Transition, place: SideCallPlace): Transition {
    return withCall(transition, place, (call) => ({ ...call, leasing: true }));
  },
};

/** Returns a transition with another compaction of a session; without a compaction for `undefined`. */
export function withCompaction(
  transition: Transition,
  session: string,
  compaction: SessionCompaction | undefined,
): Transition {
  const { state } = transition;
  const others = Object.entries(state.compactions).filter(([id]) => id !== session);
  const next = compaction === undefined ? others : [...others, [session, compaction] as const];
  return { ...transition, state: { ...state, compactions: Object.fromEntries(next) } };
}

/** Returns a transition without the call for a title. No other call follows. */
export function withoutTitling(transition: Transition): Transition {
  const { titling: _over, record, ...state } = transition.state;
  const { automaticTitle: _tried, ...titled } = record;
  return { ...transition, state: { ...state, record: titled }, membership: transition.membership ?? [] };
}

/** Returns compactions and a titling without reservations. Running calls reserve again. */
export function withoutReservations({
  compactions,
  titling,
}: Pick<BaseState, "compactions" | "titling">): Pick<BaseState, "compactions" | "titling"> {
  const unreserved = <Calling extends { call?: SideCall }>(one: Calling): Calling => {
    if (one.call === undefined) return one;
    const { reserved: _reserved, ...call } = one.call;
    return { ...one, call };
  };
  const left = Object.entries(compactions).map(([id, one]) => [id, unreserved(one)] as const);
  return { compactions: Object.fromEntries(left), ...(titling && { titling: unreserved(titling) }) };
}

function withCall(
  transition: Transition,
  place: SideCallPlace,
  change: (call: SideCall) => SideCall,
): Transition {
  const running = sideCallAt(transition.state, place);
  if (running === undefined) return transition;
  const call = change(running.call);
  const { state } = transition;
  if (!running.title) return withCompaction(transition, running.session, { ...compactionIn(running), call });
  return {
    ...transition,
    state: { ...state, ...(state.titling && { titling: { ...state.titling, call } }) },
  };
}

function compactionIn({ session: _, ...compaction }: SummaryCall): RunningCompaction {
  return compaction;
}

/** Ends a call that has failed. `left` returns the rest of its compaction. */
function over(
  transition: Transition,
  data: Failure,
  now: number,
  left: (compaction: RunningCompaction) => SessionCompaction | undefined,
): Transition {
  const running = sideCallAt(transition.state, data);
  if (running === undefined) return transition;
  const charged = closed(transition, data, now);
  const ended = running.title
    ? withoutTitling(charged)
    : withCompaction(charged, running.session, left(compactionIn(running)));
  return noted(ended, failure(data, running, true));
}

function failure(
  { error: { code, message } }: Failure,
  running: RunningSideCall,
  final: boolean,
): JournalEntry {
  const { session, turn, call } = running;
  const failed = { agentId: session, attempt: call.attempt, code, message, final };
  if (!running.title) return { type: "context.compaction.failed", data: failed };
  const of = turnId({ n: turn, stem: running.stem });
  return { type: "conversation.title.failed", data: { ...failed, turnId: of } };
}

type Counted = SideCallPlace & Pick<Failure, "made" | "crashed">;

/** Adds the usage of an attempt to the totals of the conversation. */
function counted(transition: Transition, { made, crashed, ...place }: Counted): Transition {
  const { state } = transition;
  const profile = sideProfile(state.record, place);
  const request = made?.facts ?? (crashed && { estimate: crashed });
  if (request === undefined) return transition;
  const usage = withUsage(state.usage, made?.facts.usage, profile);
  const charge = withCharge(state, place.session, spentByRequest(request, profile));
  return { ...transition, state: { ...state, usage, ...charge } };
}

/** Ends a running call. Counts its last attempt, and counts the call if it made an attempt. */
export function closed(transition: Transition, data: Counted, now: number): Transition {
  const { made } = data;
  const running = sideCallAt(transition.state, data);
  const before = running?.call.record;
  const record =
    made === undefined
      ? before && { ...before, finishedAt: now }
      : withOutcome(before, { ...made, isLast: true });
  const charged = counted(transition, data);
  if (record === undefined || running === undefined) return charged;
  const { state, summaries, ...others } = charged;
  const { turn } = running;
  return {
    ...others,
    state: { ...state, usage: { ...state.usage, calls: state.usage.calls + 1 } },
    summaries: [...summaries, { ...placeOfCall(data), turn, record }],
  };
}
