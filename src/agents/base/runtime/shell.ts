/**
 * The shell of an actor: plans signals, commits the change, publishes it, and starts the effects that the new state calls
 * for. It runs unchanged in a Durable Object and in Node. The actor's core decides what signals mean; the shell does not.
 *
 * RUN-1  Commit before publishing: frames are published, and effects start, only after the commit returned.
 * RUN-2  Memory is replaced only by what was committed; a failed commit changes nothing.
 * RUN-3  A commit starts the effects that its change calls for, and every heartbeat those of the whole state, so an effect
 *        that was lost starts again.
 * EFFECT-5  A commit aborts the effects that run and that its state no longer calls for.
 * RUN-4  The outcome of an effect whose commit failed is kept and committed later; the effect does not run again. An
 *        outcome that can never be planned or committed is abandoned, as the core decides.
 * STAGE-1  A staged change is on disk with its transaction, and nowhere else: memory, frames, effects and the armed wake-up
 *          follow with `release`. A transaction that rolls back leaves nothing.
 * STAGE-2  A second stage of one transaction builds on the first.
 * STAGE-3  `release` replaces memory before anything that can throw. If another change was released since the stage,
 *          memory is read from the store again.
 */
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import { DramatisError, type ErrorData, toErrorData } from "../../../shared/errors.ts";
import { ArmedWakeup, type WakeupPorts } from "./armed-wakeup.ts";

/** A committed change, and the states around it. */
export interface Commit<State> {
  readonly before: State;
  readonly state: State;
}

/** The decisions of an actor (pure), and its store. */
export interface ActorCore<State, Signal, Change, Committed extends Commit<State>, Effect> {
  /** Returns the state as of the last commit; `null` before the actor was created. */
  load(): State | null;
  /** Plans signals, in order, on a state. Changes nothing. Throws a `DramatisError` to refuse them. */
  plan(state: State, signals: readonly Signal[], now: number): Change;
  /** Writes a change in the current transaction; `null` for a change without content. */
  write(before: State, change: Change, now: number): Committed | null;
  /** Returns the envelopes that a change sends. */
  envelopes(change: Committed): readonly NewEnvelope[];
  /** Returns in how many milliseconds the actor must wake; `null` if it need not. */
  dueIn(state: State, now: number): number | null;
  /** Returns every effect that a state calls for. */
  effectsOf(state: State): readonly Effect[];
  /** Returns the effects that a commit calls for. */
  effectsAfter(commit: Committed): readonly Effect[];
  /** Returns the keys of the effects that the state before a commit called for, and the state after it does not. */
  endedBy(commit: Committed): readonly string[];
  /** Reports whether an outcome that waits for its commit belongs to the work of an effect. */
  concerns(outcome: Signal, effect: Effect): boolean;
  /** Returns the signals that give up outcomes which can never be committed. */
  abandon(outcomes: readonly Signal[], error: ErrorData): readonly Signal[];
}

export interface ShellPorts<Committed, Effect> extends WakeupPorts {
  transaction<Value>(body: () => Value): Value;
  /** Sends an envelope with the current transaction. Resolves when its wake-up is armed. */
  send(envelope: NewEnvelope): Promise<void>;
  /** Publishes a commit. */
  publish(commit: Committed): void;
  /** Starts effects that do not run yet. */
  start(effects: readonly Effect[]): void;
  /** Aborts the effects of these keys that run. */
  abort(keys: readonly string[]): void;
}

/** Changes that are written in an open transaction and wait for `release`. */
export interface Staged<State, Committed> {
  /** The state before the first change: the memory that `release` may replace. */
  readonly base: State;
  readonly state: State;
  readonly commits: readonly Committed[];
  /** The wake-up that the transaction wrote; `null` where it wrote none. */
  readonly wakeup: Promise<void> | null;
  /** The wake-ups of the envelopes that the transaction sends. */
  readonly sent: readonly Promise<void>[];
}

export class ActorShell<State, Signal, Change, Committed extends Commit<State>, Effect> {
  readonly #wakeup: ArmedWakeup;
  /** Outcomes that could not be committed yet, grouped as they were reported. */
  readonly #unsaved: (readonly Signal[])[] = [];
  #state: State | null = null;

  constructor(
    private readonly core: ActorCore<State, Signal, Change, Committed, Effect>,
    private readonly ports: ShellPorts<Committed, Effect>,
  ) {
    this.#wakeup = new ArmedWakeup(ports, () => this.dueIn);
  }

  /** The state, loaded on first use; `null` before the actor was created. */
  get state(): State | null {
    this.#state ??= this.core.load();
    return this.#state;
  }

  /** In how many milliseconds `reconcile` must be called again; `null` if it need not be. */
  get dueIn(): number | null {
    const { state } = this;
    return state === null ? null : this.core.dueIn(state, this.ports.clock.now());
  }

  /** Resolves when the wake-up of the actor's work is armed. */
  whenArmed(): Promise<void> {
    return this.#wakeup.whenArmed();
  }

  /** Replaces the memory by a state that was committed without `stage`, such as that of a new actor. */
  adopt(state: State): void {
    this.#state = state;
  }

  /**
   * Plans signals and writes the change in the caller's transaction or one of its own, on the state of `onto` if given.
   * Nothing in memory changes before `release`, which the caller must call after its transaction has committed, with the
   * last staged value. Throws if the signals are refused or cannot be written; the caller's transaction may continue.
   */
  stage(signals: readonly Signal[], onto?: Staged<State, Committed>): Staged<State, Committed> {
    const now = this.ports.clock.now();
    const before = onto ?? this.#unchanged();
    const change = this.core.plan(before.state, signals, now);
    return this.ports.transaction(() => {
      const commit = this.core.write(before.state, change, now);
      if (commit === null) return before;
      const { state } = commit;
      const sent = this.core.envelopes(commit).map((envelope) => this.ports.send(envelope));
      return {
        ...before,
        state,
        commits: [...before.commits, commit],
        wakeup: this.#writeWakeup(before, state, now),
        sent: [...before.sent, ...sent],
      };
    });
  }

  /**
   * Takes staged changes into memory, publishes them, and starts their effects. Call it once, after the commit. Resolves
   * when the wake-ups are armed: await it before acknowledging the changes.
   */
  async release({ base, state, commits, wakeup, sent }: Staged<State, Committed>): Promise<void> {
    if (commits.length > 0) this.#state = this.#state === base ? state : null;
    if (wakeup !== null) this.#wakeup.adopt(wakeup);
    for (const commit of commits) {
      try {
        this.ports.publish(commit);
      } catch (error) {
        // A subscriber that fails must not stop the effects of a committed change.
        console.error(error);
      }
      this.ports.abort(this.core.endedBy(commit));
      this.#start(this.core.effectsAfter(commit));
    }
    await Promise.all(sent);
    await this.#wakeup.whenArmed();
  }

  /** Stages signals and releases them. Throws before the commit; resolves when the wake-ups are armed. */
  commit(signals: readonly Signal[]): Promise<void> {
    return this.release(this.stage(signals));
  }

  /** Plans signals without a commit. Throws as `stage`. */
  preview(signals: readonly Signal[]): Change {
    return this.core.plan(this.#unchanged().state, signals, this.ports.clock.now());
  }

  /** Commits the outcomes of an effect. If that fails for now, `reconcile` tries again; if it fails for good, gives up. */
  report(outcomes: readonly Signal[]): void {
    try {
      this.#commitLater(outcomes);
    } catch (error) {
      console.error(error);
      if (isFinal(error)) this.#abandon(outcomes, toErrorData(error));
      else this.#unsaved.push(outcomes);
    }
  }

  /** Commits signals that are due. If the commit fails, the next heartbeat tries again. */
  tick(signals: readonly Signal[]): void {
    try {
      this.#commitLater(signals);
    } catch (error) {
      console.error(error);
    }
  }

  /** Commits outcomes that could not be committed before. One at a time: each may hold back effects of the others. */
  retryUnsaved(): void {
    for (let left = this.#unsaved.length; left > 0; left--) {
      const outcomes = this.#unsaved.shift();
      if (outcomes !== undefined) this.report(outcomes);
    }
  }

  /** Starts every effect that the state calls for and that does not run. */
  startAll(): void {
    if (this.state !== null) this.#start(this.core.effectsOf(this.state));
  }

  /** Commits without a caller that waits for the wake-up: a wake-up that fails to arm is armed again by itself. */
  #commitLater(signals: readonly Signal[]): void {
    const staged = this.stage(signals);
    if (staged.commits.length > 0) this.release(staged).catch(() => undefined);
  }

  #unchanged(): Staged<State, Committed> {
    const { state } = this;
    if (state === null) throw new DramatisError("NOT_FOUND", "There is no such actor.");
    return { base: state, state, commits: [], wakeup: null, sent: [] };
  }

  /** Writes the wake-up if the actor is due earlier than before, or if none is known to be armed. */
  #writeWakeup(before: Staged<State, Committed>, state: State, now: number): Promise<void> | null {
    const due = this.core.dueIn(state, now);
    if (due === null) return before.wakeup;
    const isEarlier = due < (this.core.dueIn(before.state, now) ?? Number.POSITIVE_INFINITY);
    const isArmed = before.wakeup !== null || this.#wakeup.isArmed;
    return isEarlier || !isArmed ? this.#wakeup.write(due) : before.wakeup;
  }

  #abandon(outcomes: readonly Signal[], error: ErrorData): void {
    try {
      this.#commitLater(this.core.abandon(outcomes, error));
    } catch (second) {
      console.error(second);
      this.#unsaved.push(outcomes);
    }
  }

  /** Holds back the effects whose work has an outcome that is not committed yet. */
  #start(effects: readonly Effect[]): void {
    const unsaved = this.#unsaved.flat();
    this.ports.start(
      effects.filter((effect) => !unsaved.some((outcome) => this.core.concerns(outcome, effect))),
    );
  }
}

/** Reports whether a commit can never succeed: our own code refuses the outcome, or it cannot be written as text. */
function isFinal(error: unknown): boolean {
  if (error instanceof DramatisError) return !error.retriable;
  return error instanceof RangeError || error instanceof TypeError;
}
