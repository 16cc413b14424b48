/** The core of a conversation for its shell: decisions, the store, and the effects of a state. */
import { BUDGET_LEASE } from "../../protocol/budget-lease.ts";
import type { Caller } from "../../protocol/caller-schemas.ts";
import type { NewEnvelope } from "../../protocol/envelope.ts";
import { stemOf } from "../../protocol/ids.ts";
import {
  REMOTE_CANCEL,
  remoteCallKey,
  remoteCallSchema,
  remoteCancelSchema,
} from "../../protocol/remote-call.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, type ErrorData } from "../../shared/errors.ts";
import { isJsonObject } from "../../shared/json.ts";
import type { ToolStateStore } from "../base/calls/tool-state-store.ts";
import type { ActorCore, Commit, Withdrawal } from "../base/runtime/actor-core.ts";
import type { ActorShell } from "../base/runtime/shell.ts";
import type { UnitOfWork } from "../base/runtime/unit-of-work.ts";
import type { RuntimeContext } from "./context.ts";
import { callEnvelopes, endedCalls, endedRemoteCalls } from "./core/call-envelopes.ts";
import { originOf } from "./core/caller.ts";
import { type CallEnvelope, jsonOf } from "./core/caller-envelopes.ts";
import type { PlanInput, StoredTurns } from "./core/decisions.ts";
import {
  backgroundEffects,
  dueIn,
  type Effect,
  effectsOf,
  effectsOfTurn,
  endedEffects,
} from "./core/effects.ts";
import { erasedOperations } from "./core/erase-entry.ts";
import { delayedTurns } from "./core/isolation.ts";
import type { JournalEntry, JournalRow } from "./core/journal-entry.ts";
import { leaseRequest } from "./core/lease.ts";
import { noteStatus } from "./core/life.ts";
import { isAt, placeOfCall } from "./core/side-calls.ts";
import type { Signal } from "./core/signals.ts";
import type { ConversationIdentity, ConversationState } from "./core/state.ts";
import { beginCycles, settle, step } from "./core/step.ts";
import { beginTransition, type Transition } from "./core/transition.ts";
import type { Turn } from "./core/turn.ts";
import { changesWaiting } from "./core/waiting-calls.ts";
import { noteWork } from "./core/work-times.ts";
import type { ConversationDatabase } from "./store/conversation-database.ts";

export interface ConversationCommit extends Commit<ConversationState> {
  readonly transition: Transition;
  readonly row: JournalRow;
  /** The commit changes the calls that wait for people, or who may answer them. */
  readonly changesWaiting: boolean;
}

export type ConversationShell = ActorShell<ConversationState, Signal, Transition, ConversationCommit, Effect>;

export type ConversationUnit = UnitOfWork<ConversationState, Signal, Transition, ConversationCommit, Effect>;

interface CoreContext
  extends Pick<RuntimeContext, "ids" | "gate" | "calls" | "agentTurns" | "clientToolTimeoutMs">,
    Pick<RuntimeContext, "approvalTimeoutMs" | "outboxRoom" | "approvals" | "titles" | "subscribers">,
    Required<Pick<PlanInput, "inProgress" | "sideCallInProgress" | "sizesAfter" | "requestTokens">> {
  listing: Pick<RuntimeContext["listing"], "note">;
  toolState: Pick<ToolStateStore, "get" | "put">;
  /** Returns when the next message of the queue may begin, in milliseconds since the epoch; `null` if no message may begin. */
  drainFrom(state: ConversationState): number | null;
}

export class ConversationCore
  implements ActorCore<ConversationState, Signal, Transition, ConversationCommit, Effect>
{
  readonly effectsOf = effectsOf;

  /** `wokeAt` is the start of this life of the actor. */
  constructor(
    private readonly store: ConversationDatabase,
    private readonly context: CoreContext,
    private readonly wokeAt: number,
  ) {}

  dueIn(state: ConversationState, now: number): number | null {
    const work = dueIn(state, now, this.wokeAt);
    const drain = this.context.drainFrom(state);
    if (drain === null) return work;
    return Math.min(work ?? Number.POSITIVE_INFINITY, Math.max(0, drain - now));
  }

  load(): ConversationState | null {
    return this.store.load();
  }

  /** Throws `INTERNAL_ERROR` for a defect. Planning is pure, so it would repeat: unlike a failure of the store, it is final. */
  plan(state: ConversationState, signals: readonly Signal[], now: number): Transition {
    const { ids, gate, calls, agentTurns, clientToolTimeoutMs, approvalTimeoutMs, outboxRoom } = this.context;
    const { inProgress, sideCallInProgress, sizesAfter, requestTokens } = this.context;
    const input = {
      ...{ now, gate, inProgress, sideCallInProgress, sizesAfter, requestTokens },
      newStem: () => stemOf(ids.ulid()),
      turns: storedTurns(this.store),
      outboxRoom: () => reading(outboxRoom),
      isTitled: (record: ConversationIdentity) => this.#isTitled(record),
      ...defined({ calls, agentTurns, clientToolTimeoutMs, approvalTimeoutMs }),
    };
    try {
      const planned = signals.reduce<Transition>((current, signal) => {
        const stem = signal.type === "conversation.user.message" ? stemOf(ids.ulid()) : "";
        return step(current, signal, { ...input, stem });
      }, beginTransition(state));
      const last = { ...input, stem: "" };
      return noteWork(state, noteStatus(state, settle(beginCycles(planned, last), last)), now);
    } catch (cause) {
      if (cause instanceof DramatisError) throw cause;
      if (cause instanceof ReadFailure) throw cause.cause;
      console.error(cause);
      throw new DramatisError("INTERNAL_ERROR", "An internal error occurred.", { cause });
    }
  }

  write(before: ConversationState, transition: Transition, now: number): ConversationCommit | null {
    if (transition.entries.length === 0) return null;
    const written = this.store.commit(transition, now);
    for (const id of endedRemoteCalls(before, transition))
      this.context.toolState.put(remoteCallKey(id), null);
    const isWaitChanged = changesWaiting(before, written.state, transition);
    if (transition.entries.some(givesTitle))
      this.context.listing.note().catch((error: unknown) => console.error(error));
    if (isWaitChanged) this.context.approvals.note().catch((error: unknown) => console.error(error));
    return { before, transition, ...written, changesWaiting: isWaitChanged };
  }

  #isTitled({ tenant, projectId }: ConversationIdentity): boolean {
    try {
      return (this.context.titles?.({ tenant, projectId }) ?? "none") === "message";
    } catch (error) {
      console.error("The title policy failed, so the conversation gets no title:", error);
      return false;
    }
  }

  withdrawals({ before, state, transition }: ConversationCommit): readonly Withdrawal[] {
    return endedCalls(before, state, transition);
  }

  discards({ transition }: ConversationCommit): readonly string[] {
    return (transition.erased ?? []).flatMap(erasedOperations);
  }

  envelopes({ before, state, transition }: ConversationCommit): readonly NewEnvelope[] {
    const calls = callEnvelopes(before, state, transition);
    return [
      ...transition.envelopes,
      ...calls.map((call) => this.#numbered(call.type === REMOTE_CANCEL ? this.#withRemoteCall(call) : call)),
      ...this.#leaseRequests(before, state),
      ...(this.context.subscribers?.envelopes(state.seq) ?? []),
    ];
  }

  /** Adds the stored call to a cancellation, because a deleted conversation no longer has it (A2ATASK-5). */
  #withRemoteCall(envelope: CallEnvelope): CallEnvelope {
    const body = remoteCancelSchema.parse(envelope.body);
    const call = remoteCallSchema.safeParse(this.context.toolState.get(remoteCallKey(body.operationId)));
    return call.success ? { ...envelope, body: jsonOf({ ...body, call: call.data }) } : envelope;
  }

  #numbered(envelope: CallEnvelope): NewEnvelope {
    return { operationId: `op_${this.context.ids.ulid()}`, ...envelope };
  }

  /** Returns the newest request of each lease that a commit has changed. */
  #leaseRequests(before: ConversationState, { record, leases = {} }: ConversationState): NewEnvelope[] {
    const changed = Object.entries(leases).filter(([id, { seq }]) => seq > (before.leases?.[id]?.seq ?? 0));
    return changed.map(([id, lease]) =>
      this.#numbered({
        to: { kind: "agent", tenant: record.tenant, id },
        type: BUDGET_LEASE,
        body: leaseRequest(lease),
      }),
    );
  }

  /** A commit also touches a delayed turn if it lets this turn resume. */
  effectsAfter(commits: readonly ConversationCommit[], state: ConversationState): Effect[] {
    const { active } = state;
    const [delayed, released] = [delayedTurns(active), new Set(touchedBy(commits).keys())];
    for (const { before } of commits) for (const n of delayedTurns(before.active)) released.add(n);
    const ofTurns = [...released].flatMap((n) => {
      const turn = delayed.has(n) ? undefined : active.get(n);
      return turn === undefined ? [] : effectsOfTurn(turn);
    });
    const known = new Set(commits.slice(0, 1).flatMap(({ before }) => backgroundKeys(before)));
    return [...ofTurns, ...backgroundEffects(state).filter(({ key }) => !known.has(key))];
  }

  endedBy(commits: readonly ConversationCommit[], state: ConversationState): string[] {
    const ofTurns = [...touchedBy(commits)].flatMap(([n, before]) =>
      endedEffects(before, state.active.get(n)),
    );
    const left = new Set(backgroundKeys(state));
    const known = commits.slice(0, 1).flatMap(({ before }) => backgroundKeys(before));
    return [...ofTurns, ...known.filter((key) => !left.has(key))];
  }

  isCurrent(state: ConversationState): boolean {
    return this.store.isCurrent(state);
  }

  /** An outcome holds back all effects of its turn, or its side call. */
  concerns(outcome: Signal, effect: Effect): boolean {
    if (effect.kind === "side-call") return "session" in outcome && isAt(outcome, effect.running);
    const n = effect.kind === "extraction" ? effect.n : effect.turn.n;
    return "turn" in outcome && outcome.turn === n;
  }

  /** Fails the turn, or gives up the side call, of outcomes that can never be committed. The outcomes of one effect belong to one of them. */
  abandon([first]: readonly Signal[], error: ErrorData): Signal[] {
    if (first !== undefined && "session" in first) {
      const { begunBy, attempt, facts } = first;
      const failure = { category: "unknown", message: error.message, retriable: false } as const;
      const address = { ...placeOfCall(first), begunBy, attempt, ...defined({ facts }) };
      return [{ type: "conversation.side_call.failed", ...address, error: failure }];
    }
    if (first === undefined || !("turn" in first)) return [];
    const facts = "facts" in first && first.facts !== undefined ? { facts: first.facts } : {};
    return [{ type: "conversation.cmd.abandon", turn: first.turn, error, ...facts }];
  }
}

/** Reports whether an entry gives a title that no person has written. */
function givesTitle({ type, data }: JournalEntry): boolean {
  return type === "conversation.updated" && isJsonObject(data) && data.automatic === true;
}

function backgroundKeys(state: ConversationState): string[] {
  return backgroundEffects(state).map(({ key }) => key);
}

/** A read of the store that failed while planning. */
class ReadFailure extends Error {}

function reading<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    throw new ReadFailure("The store cannot be read.", { cause });
  }
}

function storedTurns(store: ConversationDatabase): StoredTurns {
  return {
    after: (n, caller) => {
      const isOwn = (other: Caller) => originOf(other) === originOf(caller);
      return reading(() => store.turns.numbersAfter(n, isOwn));
    },
    turn: (n) => reading(() => store.turn(n) ?? undefined),
    newest: (limit, passes) => reading(() => store.turns.newest(limit, passes)),
  };
}

/** Returns the turns that commits touched, each in its state before the first commit; `undefined` for a new turn. */
function touchedBy(commits: readonly ConversationCommit[]): Map<number, Turn | undefined> {
  const touched = new Map<number, Turn | undefined>();
  for (const { before, transition } of commits) {
    for (const n of transition.touched.keys()) if (!touched.has(n)) touched.set(n, before.active.get(n));
  }
  return touched;
}
