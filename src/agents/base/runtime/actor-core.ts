/** The parts of an actor that its shell calls: decisions, which are pure, the store, and the ports. */
import type { ActorDatabase } from "../../../ports/sql-database.ts";
import type { ActorAddress, NewEnvelope } from "../../../protocol/envelope.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { WakeupPorts } from "./armed-wakeup.ts";

/** A committed change, and the states around it. */
export interface Commit<State> {
  readonly before: State;
  readonly state: State;
}

/** The envelopes of a type to a receiver. */
export interface Withdrawal {
  readonly to: ActorAddress;
  readonly type: string;
}

/** The decisions of an actor (pure), and its store. */
export interface ActorCore<State, Signal, Change, Committed extends Commit<State>, Effect> {
  /** Returns the state as of the last commit; `null` before the actor was created. */
  load(): State | null;
  /** Plans signals, in order, on a state. Changes nothing. Throws a `DramatisError` to refuse them. */
  plan(state: State, signals: readonly Signal[], now: number): Change;
  /** Writes a change in the current transaction; `null` for a change without content. */
  write(before: State, change: Change, now: number): Committed | null;
  /** Returns the envelopes that a change withdraws before it sends others. Absent if the actor never withdraws envelopes. */
  withdrawals?(change: Committed): readonly Withdrawal[];
  /** Returns the operations with erased content. Their envelopes and dead letters are deleted. */
  discards?(change: Committed): readonly string[];
  envelopes(change: Committed): readonly NewEnvelope[];
  /** Returns in how many milliseconds the actor must wake; `null` if it need not. */
  dueIn(state: State, now: number): number | null;
  effectsOf(state: State): readonly Effect[];
  /** Returns the effects of the work that commits touched, if the newest state needs them. */
  effectsAfter(commits: readonly Committed[], state: State): readonly Effect[];
  /** Returns the keys of effects that the state before the commits needed and the newest state does not. */
  endedBy(commits: readonly Committed[], state: State): readonly string[];
  /** Reports whether a state equals the newest commit in the store. */
  isCurrent(state: State): boolean;
  /** Reports whether an outcome that waits for its commit belongs to the work of an effect. */
  concerns(outcome: Signal, effect: Effect): boolean;
  /** Returns the signals that abandon outcomes that can never be committed. */
  abandon(outcomes: readonly Signal[], error: ErrorData): readonly Signal[];
}

export interface ShellPorts<Committed, Effect> extends WakeupPorts {
  database: Pick<ActorDatabase, "transaction" | "isInTransaction">;
  /** Sends an envelope with the current transaction. Resolves when its wake-up is armed. */
  send(envelope: NewEnvelope): Promise<void>;
  /** Withdraws envelopes with the current transaction. */
  withdraw(withdrawal: Withdrawal): void;
  /** As `Mailbox.discard`; absent if the actor has no erasure. */
  discard?(operationId: string): void;
  publish(commit: Committed): void;
  effects: {
    /** Starts effects that do not run yet. */
    start(effects: readonly Effect[]): void;
    /** Aborts the effects of these keys that run. */
    abort(keys: readonly string[]): void;
  };
}
