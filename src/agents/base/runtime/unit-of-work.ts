/**
 * The changes of one transaction: staged while it is open, released after its commit.
 *
 * STAGE-1  A stage writes its change only in its transaction. Memory, frames, effects and the armed wake-up follow with the release. A
 *          rollback undoes the whole stage.
 * STAGE-2  Each stage of a unit builds on the previous stage. A refused stage leaves the unit unchanged.
 * STAGE-6  If a commit reports a failure but was stored, it counts as committed.
 * STAGE-7  After a rollback of its stages, a unit rejects further stages and its release.
 */
import { notFound } from "../../../shared/errors.ts";
import type { ActorCore, Commit, ShellPorts } from "./actor-core.ts";
import type { ArmedWakeup } from "./armed-wakeup.ts";

export interface UnitHost<State, Signal, Change, Committed extends Commit<State>, Effect> {
  core: ActorCore<State, Signal, Change, Committed, Effect>;
  ports: ShellPorts<Committed, Effect>;
  wakeup: ArmedWakeup;
  /** Returns the state in memory, loaded on first use; `null` before the actor was created. */
  load(): State | null;
  /** Notes that a change could not be written. The store and the memory may differ. `commit` may be stored; `null` if none may. */
  failed(commit: Committed | null): void;
  /** Reports whether a state equals the newest commit. Returns `false` if the store cannot be read. */
  isStored(state: State): boolean;
  release(): Promise<void>;
}

interface Written<Committed> {
  commit: Committed;
  sent: Promise<void>[];
  wakeup: Promise<void> | null;
}

export class UnitOfWork<State, Signal, Change, Committed extends Commit<State>, Effect> {
  readonly commits: Committed[] = [];
  /** The wake-ups of the envelopes that the transaction sends. */
  readonly sent: Promise<void>[] = [];
  /** The wake-up that the transaction wrote, if any. */
  wakeup: Promise<void> | null = null;
  /** A stage was part of a caller's transaction. */
  isNested = false;
  /** `undefined` before it is used. */
  #base: State | null | undefined;
  /** The state after the stages so far; `null` while it equals the base. */
  #state: State | null = null;
  #released: Promise<void> | null = null;

  constructor(private readonly unit: UnitHost<State, Signal, Change, Committed, Effect>) {}

  /** The state in memory when the unit was first used; `null` before the actor was created. */
  get base(): State | null {
    if (this.#base === undefined) this.#base = this.unit.load();
    return this.#base;
  }

  /** The state after the stages so far. Throws `NOT_FOUND` before the actor was created. */
  get state(): State {
    const state = this.#state ?? this.base;
    if (state === null) throw notFound("This actor does not exist. Create it first.");
    return state;
  }

  /** Reports whether the unit has anything to release into memory. */
  get isChanged(): boolean {
    return this.#state !== null;
  }

  /**
   * Creates the actor in the caller's transaction or one of its own. `body` writes it, and returns its state and the
   * wake-ups of what it sends. Throws what `body` throws.
   */
  create(body: () => { state: State; sent: readonly Promise<void>[] }): void {
    const { ports } = this.unit;
    const isNested = ports.database.isInTransaction();
    const { state, sent } = ports.database.transaction(body);
    this.isNested ||= isNested;
    this.#base = null;
    this.#state = state;
    this.sent.push(...sent);
  }

  /**
   * Plans signals and writes the change in the caller's transaction or one of its own. Throws if the signals are refused or
   * cannot be written; the caller's transaction may continue.
   */
  stage(signals: readonly Signal[]): void {
    const { core, ports } = this.unit;
    if (this.#released !== null) throw new Error("The unit of work is released. Begin another unit.");
    const isNested = ports.database.isInTransaction();
    if (this.#state !== null && !core.isCurrent(this.#state))
      throw new Error("An earlier stage was rolled back: begin another unit of work.");
    this.isNested ||= isNested;
    const now = ports.clock.now();
    const before = this.state;
    const change = core.plan(before, signals, now);
    let written: Written<Committed> | null = null;
    try {
      ports.database.transaction(() => {
        const commit = core.write(before, change, now);
        if (commit === null) return;
        for (const withdrawal of core.withdrawals?.(commit) ?? []) ports.withdraw(withdrawal);
        for (const operation of core.discards?.(commit) ?? []) ports.discard?.(operation);
        const sent = core.envelopes(commit).map((envelope) => ports.send(envelope));
        written = { commit, sent, wakeup: this.#writeWakeup(before, commit.state, now) };
      });
    } catch (error) {
      if (!this.#isStored(written)) {
        this.unit.failed((written as Written<Committed> | null)?.commit ?? null);
        throw error;
      }
      console.error(error);
    }
    if (written !== null) this.#take(written);
  }

  /**
   * Applies the changes to memory, publishes them, and starts their effects. Call it only after the commit. Resolves when the wake-ups are
   * armed. Await it before you acknowledge the changes. Idempotent.
   */
  release(): Promise<void> {
    this.#released ??= this.unit.release();
    return this.#released;
  }

  /** Reports whether a commit that reported a failure was stored. */
  #isStored(written: Written<Committed> | null): boolean {
    return (
      written !== null &&
      !this.unit.ports.database.isInTransaction() &&
      this.unit.isStored(written.commit.state)
    );
  }

  #take({ commit, sent, wakeup }: Written<Committed>): void {
    this.#state = commit.state;
    this.commits.push(commit);
    this.sent.push(...sent);
    this.wakeup = wakeup;
  }

  /** Writes the wake-up if the actor is due earlier than before, or if it has no wake-up that is known to be armed. */
  #writeWakeup(before: State, state: State, now: number): Promise<void> | null {
    const { core, ports, wakeup } = this.unit;
    const due = core.dueIn(state, now) ?? Number.POSITIVE_INFINITY;
    const wasDue = core.dueIn(before, now) ?? Number.POSITIVE_INFINITY;
    ports.armCopies?.(Math.min(due, wasDue));
    if (due === Number.POSITIVE_INFINITY) return this.wakeup;
    const isArmed = this.wakeup !== null || wakeup.isArmed;
    return due < wasDue || !isArmed ? wakeup.write(due) : this.wakeup;
  }
}
