/**
 * Runs a trigger: commits due times, attempts their starts, and stores the outcomes. Runs unchanged in a Durable Object and in Node.
 *
 * FIRE-8  A commit arms the wake-up for its state in the same transaction. A start begins after the commit that marks it as due.
 * FIRE-9  A time that comes during an attempt waits for the end of the attempt. Until then the wake-up fires at most once a second.
 */
import { unanswered, withDeadline } from "../../ports/deadline.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { TriggerStarted } from "../../protocol/trigger-api.ts";
import { DramatisError, toErrorData } from "../../shared/errors.ts";
import { ArmedWakeup, type WakeupPorts } from "../base/runtime/armed-wakeup.ts";
import { dueIn, failed, started, takeDue } from "./core/firing.ts";
import type { Firing, TriggerRecord } from "./core/record.ts";
import { ATTEMPT_MS, DELIVERY_KEPT_MS, MIN_PAUSE_MS } from "./core/trigger-limits.ts";
import { TriggerStore } from "./store/trigger-store.ts";

export interface TriggerPorts extends WakeupPorts {
  database: ActorDatabase;
  keyValue: KeyValue;
  /** Publishes a change, as `Copy.note`. Called in the transaction of the change. */
  note(): Promise<void>;
  /** Starts a run or a turn, once per key. Rethrows a refusal. */
  start(firing: Firing): Promise<TriggerStarted>;
}

export class TriggerRuntime {
  readonly store: TriggerStore;
  readonly #wakeup: ArmedWakeup;
  /** The key of the scheduled start that this instance attempts. */
  #attempted: string | null = null;

  constructor(private readonly ports: TriggerPorts) {
    this.store = new TriggerStore(ports);
    this.#wakeup = new ArmedWakeup(ports, () => this.dueIn);
  }

  /** Milliseconds until the next call of `reconcile`, or `null`. */
  get dueIn(): number | null {
    const record = this.store.find();
    const due = record === undefined ? null : dueIn(record, this.ports.clock.now());
    return due === null || this.#attempted === null ? due : Math.max(MIN_PAUSE_MS, due);
  }

  whenArmed(): Promise<void> {
    return this.#wakeup.whenArmed();
  }

  /** Creates the trigger. Throws `CONFLICT` if it exists. Resolves when its wake-up is armed. */
  async create(record: TriggerRecord): Promise<void> {
    await this.#commit(() => {
      this.store.create(record);
      return record;
    }, true);
  }

  /** Commits a requested change that lists show. Throws `NOT_FOUND`. Resolves when its wake-ups are armed. */
  update(change: (record: TriggerRecord, now: number) => TriggerRecord): Promise<TriggerRecord> {
    return this.#change(change, true);
  }

  /** Changes the trigger. Throws `NOT_FOUND` if it does not exist. Resolves when its wake-up is armed. */
  async #change(
    change: (record: TriggerRecord, now: number) => TriggerRecord,
    isListed = false,
  ): Promise<TriggerRecord> {
    const now = this.ports.clock.now();
    let record = this.store.get();
    await this.#commit(() => {
      record = change(this.store.get(), now);
      this.store.put(record);
      return record;
    }, isListed);
    return record;
  }

  /** Retries attempts of an earlier instance. Call it once, when the actor wakes. Throws if they cannot be stored. */
  wake(): void {
    this.#begin({ isLost: true });
    this.#wakeup.doubt();
  }

  /** Commits and attempts due starts. Throws if they cannot be stored. */
  reconcile(): void {
    this.#begin();
  }

  /**
   * Starts the run or the turn of a delivery. A repeated delivery returns the same result. Throws `IDEMPOTENCY_CONFLICT` if the body
   * differs. If the start is refused, rethrows the refusal, and the id can be used again.
   */
  async deliver(delivery: { id: string; hash: string }, firing: Firing): Promise<TriggerStarted> {
    const { id, hash } = delivery;
    const { clock } = this.ports;
    const before = this.store.delivery(id, clock.now() - DELIVERY_KEPT_MS);
    if (before !== undefined) {
      if (before.hash === hash) return before.started;
      throw new DramatisError(
        "IDEMPOTENCY_CONFLICT",
        `The delivery "${id}" was received with another body. Use a new id for each delivery.`,
      );
    }
    try {
      const result = await this.#start(firing);
      await this.#change((record, now) => {
        this.store.addDelivery(id, { hash, started: result }, now, now - DELIVERY_KEPT_MS);
        return started(record, firing.key, result, now);
      });
      return result;
    } catch (error) {
      await this.#change((record, now) => failed(record, firing.key, toErrorData(error), now));
      throw error;
    }
  }

  #begin(options?: { isLost: boolean }): void {
    const record = this.store.find();
    if (record === undefined || this.#attempted !== null) return;
    const taken = takeDue(record, this.ports.clock.now(), options);
    if (taken === null) return;
    const armed = this.#commit(() => {
      this.store.put(taken.record);
      return taken.record;
    });
    armed.catch((error: unknown) => console.error(error));
    this.#attempted = taken.firing.key;
    this.#attempt(taken.firing).catch((error: unknown) => console.error(error));
  }

  async #attempt(firing: Firing): Promise<void> {
    const { key } = firing;
    const outcome = await this.#start(firing).then(
      (result) => (record: TriggerRecord, now: number) => started(record, key, result, now),
      (error: unknown) => {
        if (!(error instanceof DramatisError)) console.error(error);
        return (record: TriggerRecord, now: number) => failed(record, key, toErrorData(error), now);
      },
    );
    this.#attempted = null;
    // If this write fails, the attempt counts as lost and is repeated.
    if (this.store.find() !== undefined) await this.#change(outcome);
    this.#begin();
  }

  #start(firing: Firing): Promise<TriggerStarted> {
    const reason = unanswered("The start of the trigger", ATTEMPT_MS);
    return withDeadline(this.ports.clock, ATTEMPT_MS, () => this.ports.start(firing), { reason });
  }

  /** Commits the writes of `body` with the wake-up. Throws at once if either write fails. Resolves when the wake-up is armed. */
  #commit(body: () => TriggerRecord, isListed = false): Promise<unknown> {
    const { database, clock } = this.ports;
    const { armed, noted } = database.transaction(() => {
      const due = dueIn(body(), clock.now());
      return {
        armed: due === null ? null : this.#wakeup.write(due),
        noted: isListed ? this.ports.note() : null,
      };
    });
    if (armed !== null) this.#wakeup.adopt(armed);
    return Promise.all([armed, noted]);
  }
}
