/**
 * The shell of an actor: plans signals, commits the change, publishes it, and starts the effects that the new state calls for. It runs
 * unchanged in a Durable Object and in Node. The actor's core decides the meaning of signals.
 *
 * RUN-1  Commit before publishing: frames are published, and effects start, only after the commit returned.
 * RUN-2  Memory changes only to a committed state. A failed commit leaves it unchanged.
 * RUN-3  A commit starts the effects of its change. Each heartbeat starts the effects of the whole state, so a lost effect starts again.
 * EFFECT-5  A commit aborts running effects that its state no longer needs.
 * RUN-4  If the commit of an effect's outcome fails, the outcome is kept and committed later. The effect does not run again. If an outcome
 *        can never be planned or committed, or the outbox has no room for its envelopes, the core abandons it. Its work then ends with the
 *        error. Outcomes that were reported with it are committed alone.
 * RUN-7  Due signals that cannot be committed are retried at most once a second.
 * STAGE-3  A release replaces memory before any step that can throw. If another change was released since the unit began, memory is read
 *          from the store again.
 * STAGE-4  A release starts only effects of the newest state. It skips work that a later stage of the same unit has ended.
 * STAGE-5  A separate commit is rejected while a transaction is open, because that transaction may roll back after the effects have
 *          started.
 * STAGE-8  After a failed write, the next read of memory first compares it with the store. If the comparison fails, the read throws,
 *          because memory may be stale.
 * STAGE-9  If the store cannot be read after a commit, its frames are published and its effects start before those of the next commit, or
 *          after a second.
 */
import { DramatisError, type ErrorData, toErrorData } from "../../../shared/errors.ts";
import type { ActorCore, Commit, ShellPorts } from "./actor-core.ts";
import { ArmedWakeup } from "./armed-wakeup.ts";
import { RETRY_MS, RetryTimer } from "./retry-timer.ts";
import { UnitOfWork } from "./unit-of-work.ts";

export class ActorShell<
  State extends { readonly seq: number },
  Signal,
  Change,
  Committed extends Commit<State>,
  Effect,
> {
  readonly #wakeup: ArmedWakeup;
  /** Outcomes that could not be committed yet, grouped as they were reported. */
  readonly #unsaved: (readonly Signal[])[] = [];
  /** Commits that may be stored, in order. They are not published. */
  readonly #unknown: Committed[] = [];
  readonly #retry: RetryTimer;
  #state: State | null = null;
  /** A write failed, so the store may be ahead of memory. */
  #isSuspect = false;
  /** The last signals that were due could not be committed. */
  #hasFailed = false;

  constructor(
    private readonly core: ActorCore<State, Signal, Change, Committed, Effect>,
    private readonly ports: ShellPorts<Committed, Effect>,
  ) {
    this.#wakeup = new ArmedWakeup(ports, () => this.dueIn);
    this.#retry = new RetryTimer(ports.clock, () => this.#publishUnknown());
  }

  /**
   * The state, loaded on first use; `null` before the actor was created. Throws if memory may be older than the store, and the store cannot be
   * read.
   */
  get state(): State | null {
    if (this.#isSuspect) this.#forgetStale();
    if (this.#state !== null) return this.#state;
    const loaded = this.core.load();
    // Changes of an open transaction may roll back.
    if (!this.ports.database.isInTransaction()) this.#state = loaded;
    return loaded;
  }

  /** The outcomes that could not be committed yet. */
  get unsaved(): readonly Signal[] {
    return this.#unsaved.flat();
  }

  /** In how many milliseconds `reconcile` must be called again; `null` if it need not be. */
  get dueIn(): number | null {
    const { state } = this;
    const due = state === null ? null : this.core.dueIn(state, this.ports.clock.now());
    return due !== null && this.#hasFailed ? Math.max(due, RETRY_MS) : due;
  }

  /** Resolves when the wake-up of the actor's work is armed. */
  whenArmed(): Promise<void> {
    return this.#wakeup.whenArmed();
  }

  /** Forgets the memory of an actor whose deletion is committed, with the outcomes that wait for their commit. */
  forget(): void {
    this.#state = null;
    this.#unsaved.length = 0;
    this.#unknown.length = 0;
  }

  /** Commits signals while the actor starts, and starts every effect that the state calls for. */
  async resume(signals: readonly Signal[]): Promise<void> {
    const committed = this.commit(signals);
    // An effect that waits for its time was not interrupted, so no commit starts it.
    this.startAll();
    await committed.finally(() => this.#wakeup.doubt());
  }

  /**
   * Begins a unit of work for a caller that has its own transaction.
   *
   * @example
   * const unit = shell.begin();
   * unit.stage([signal]);
   * afterCommit(() => unit.release());
   */
  begin(): UnitOfWork<State, Signal, Change, Committed, Effect> {
    const unit: UnitOfWork<State, Signal, Change, Committed, Effect> = new UnitOfWork({
      core: this.core,
      ports: this.ports,
      wakeup: this.#wakeup,
      load: () => this.state,
      failed: (commit) => {
        this.#isSuspect = true;
        if (commit !== null) this.#noteUnknown([commit]);
      },
      isStored: (state) => this.#isStored(state),
      release: () => this.#release(unit),
    });
    return unit;
  }

  /** Commits signals. Throws before the commit; resolves when the wake-ups are armed. */
  commit(signals: readonly Signal[]): Promise<void> {
    return this.commitBy((unit) => unit.stage(signals));
  }

  /** Commits what `body` stages, as `commit` does. */
  commitBy(body: (unit: UnitOfWork<State, Signal, Change, Committed, Effect>) => void): Promise<void> {
    return this.#committed(body).release();
  }

  /** Plans signals without a commit. Throws as `UnitOfWork.stage`. */
  preview(signals: readonly Signal[]): Change {
    return this.core.plan(this.begin().state, signals, this.ports.clock.now());
  }

  /**
   * Commits the outcomes of an effect. `retryUnsaved` retries after a transient failure. After a permanent failure the outcomes are
   * abandoned. Returns false if a retry is pending.
   */
  report(outcomes: readonly Signal[]): boolean {
    this.#dropUnsaved(outcomes);
    try {
      // The actor is deleted.
      if (this.state === null) return true;
      this.#commitLater(outcomes);
      return true;
    } catch (error) {
      console.error(error);
      if (isFinal(error)) return this.#reportAlone(outcomes, toErrorData(error));
      this.#unsaved.push(outcomes);
      return false;
    }
  }

  /** Commits signals that are due. If the commit fails, the next wake-up tries again, at least `RETRY_MS` later. */
  tick(signals: readonly Signal[]): void {
    try {
      this.#commitLater(signals);
      this.#hasFailed = false;
    } catch (error) {
      this.#hasFailed = true;
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
    const unit = this.#committed((begun) => begun.stage(signals));
    if (unit.isChanged) unit.release().catch(() => undefined);
  }

  /** Runs a unit of work in a transaction of its own. */
  #committed(
    body: (unit: UnitOfWork<State, Signal, Change, Committed, Effect>) => void,
  ): UnitOfWork<State, Signal, Change, Committed, Effect> {
    if (this.ports.database.isInTransaction())
      throw new Error(
        "A transaction is open: stage the change in a unit of work, and release it after the commit.",
      );
    const unit = this.begin();
    try {
      body(unit);
    } catch (error) {
      // The transaction of `body` may have been stored all the same.
      if (unit.isChanged) {
        this.#isSuspect = true;
        this.#noteUnknown(unit.commits);
      }
      throw error;
    }
    return unit;
  }

  /** Forgets the memory if the store is ahead of it. */
  #forgetStale(): void {
    if (this.#state !== null && !this.#isStored(this.#state)) this.#state = null;
    // The outcome of an open transaction is unknown, so memory is compared again after it.
    this.#isSuspect = this.ports.database.isInTransaction();
  }

  #isStored(state: State): boolean {
    try {
      return this.core.isCurrent(state);
    } catch (error) {
      console.error(error);
      return false;
    }
  }

  /** Throws if a unit's changes are not in the store, or if the store cannot be read. Memory is then reloaded. */
  #checkStored(state: State, commits: readonly Committed[]): void {
    const known = this.#state;
    this.#state = null;
    if (!this.#isNewest(state, commits))
      throw new Error("A unit of work was released although its transaction was rolled back.");
    this.#state = known;
  }

  /** Throws if the store cannot be read. Returns `false` if the actor's creation was rolled back. */
  #isNewest(state: State, commits: readonly Committed[]): boolean {
    try {
      return this.core.isCurrent(state);
    } catch (error) {
      this.#noteUnknown(commits);
      if (this.core.load() === null) return false;
      throw error;
    }
  }

  /** Keeps commits until the store can be read. They replace kept commits that they exclude. */
  #noteUnknown(commits: readonly Committed[]): void {
    const [first] = commits;
    if (first === undefined) return;
    const left = this.#unknown.filter(({ state }) => state.seq <= first.before.seq);
    this.#unknown.splice(0, this.#unknown.length, ...left, ...commits);
    this.#retry.start();
  }

  #publishUnknown(): void {
    if (this.#unknown.length === 0) return;
    const released = (async () => this.begin().release())();
    released.catch((error: unknown) => {
      console.error(error);
      if (this.#unknown.length > 0) this.#retry.start();
    });
  }

  /** Removes the kept commits, and returns those that a later state of the store contains. */
  #takeUnknown(unit: { readonly base: State | null }): Committed[] {
    if (this.#unknown.length === 0) return [];
    const seq = unit.base?.seq ?? 0;
    return this.#unknown.splice(0).filter(({ state }) => state.seq <= seq);
  }

  async #release(unit: UnitOfWork<State, Signal, Change, Committed, Effect>): Promise<void> {
    const { wakeup, sent } = unit;
    if (this.ports.database.isInTransaction())
      throw new Error("Release a unit of work after its transaction.");
    if (unit.isChanged && unit.isNested) this.#checkStored(unit.state, unit.commits);
    const commits = [...this.#takeUnknown(unit), ...unit.commits];
    if (unit.isChanged) this.#state = this.#state === unit.base ? unit.state : null;
    if (wakeup !== null) this.#wakeup.adopt(wakeup);
    for (const commit of commits) {
      try {
        this.ports.publish(commit);
      } catch (error) {
        // A reader that fails must not stop the effects of a committed change.
        console.error(error);
      }
    }
    const { state } = this;
    if (commits.length > 0 && state !== null) {
      this.ports.effects.abort(this.core.endedBy(commits, state));
      this.#start(this.core.effectsAfter(commits, state));
    }
    await Promise.all(sent);
    await this.#wakeup.whenArmed();
  }

  /** Drops kept outcomes that are reported again. */
  #dropUnsaved(outcomes: readonly Signal[]): void {
    const isRepeated = (kept: readonly Signal[]) => kept.every((outcome) => outcomes.includes(outcome));
    const left = this.#unsaved.filter((kept) => !isRepeated(kept));
    this.#unsaved.splice(0, this.#unsaved.length, ...left);
  }

  /** Commits outcomes one by one. Abandons an outcome that cannot be committed alone. */
  #reportAlone(outcomes: readonly Signal[], error: ErrorData): boolean {
    if (outcomes.length === 1) return this.#abandon(outcomes, error);
    return outcomes.map((outcome) => this.report([outcome])).every(Boolean);
  }

  #abandon(outcomes: readonly Signal[], error: ErrorData): boolean {
    try {
      this.#commitLater(this.core.abandon(outcomes, error));
      return true;
    } catch (second) {
      console.error(second);
      this.#unsaved.push(outcomes);
      return false;
    }
  }

  /** Starts effects, except those with an uncommitted outcome. */
  #start(effects: readonly Effect[]): void {
    const unsaved = this.#unsaved.flat();
    this.ports.effects.start(
      effects.filter((effect) => !unsaved.some((outcome) => this.core.concerns(outcome, effect))),
    );
  }
}

/** Reports whether a failed commit is permanent: our code rejects the outcome, the outcome cannot be serialized, or the outbox has no room. */
function isFinal(error: unknown): boolean {
  if (error instanceof DramatisError) return !error.retriable || error.code === "QUEUE_OVERFLOW";
  return error instanceof RangeError || error instanceof TypeError;
}
