/**
 * The removal of a deleted actor. Its tombstone stores the remaining steps.
 *
 * REMOVE-6  The step of an unbound store stays open until the store is bound again. The actor checks once a day, for 90 days after its
 *           deletion.
 */
import {
  dropRetainedVectors,
  type PublishedVectors,
  retainedVectors,
} from "../../../memory/corpus/index/owned-vectors.ts";
import type { Clock } from "../../../ports/clock.ts";
import { defined } from "../../../shared/defined.ts";
import { DAY_MS } from "../../../shared/time.ts";
import { type ActorStores, StorageRefusal } from "../storage/schema-upgrade.ts";
import type { Wakeup } from "../timers/wakeups.ts";
import { deleteValues, dropTables } from "./actor-tables.ts";
import { type OwnedStore, type RemovedOwner, VECTORS } from "./owned-stores.ts";
import { Removal, type RemovalStep } from "./removal.ts";

/** The record of a deleted actor. Its id is never reused. Times are milliseconds since the epoch. */
export interface ActorTombstone extends Omit<RemovedOwner, "kind" | "vectors"> {
  deletedAt: number;
  /** The remaining steps of its removal. */
  left: readonly string[];
  /** The vectors of an agent that the vector store may have. */
  vectors?: PublishedVectors;
  /** The next piece of each step that removes in pieces, by the name of the step. */
  places?: Readonly<Record<string, number>>;
}

export interface ActorRemovalPorts extends ActorStores {
  kind: RemovedOwner["kind"];
  clock: Pick<Clock, "now" | "timer">;
  wakeup: Wakeup;
  /** The prefixes of the keys of the actor's values, without its tombstone. */
  keys: readonly string[];
  stores(): readonly OwnedStore[];
  /** As `Mailbox.forget`. */
  forgetMail(): boolean;
  tombstone(): ActorTombstone | undefined;
  /** Replaces the actor's record with the tombstone. */
  bury(tombstone: ActorTombstone): void;
}

/**
 * Milliseconds after which all writes that began before the deletion have taken effect. A request times out after 30 seconds, and may take
 * effect within another minute.
 */
const LATE_WRITE_MS = 90_000;
const MAIL_PAUSE_MS = 60_000;
/** Time between two pieces, in milliseconds. */
const NEXT_PIECE_MS = 100;
/** Milliseconds after the deletion during which the actor checks for unbound stores. */
const MISSED_MS = 90 * DAY_MS;

export abstract class ActorRemoval<Ports extends ActorRemovalPorts = ActorRemovalPorts> {
  readonly #job: Removal;

  constructor(protected readonly ports: Ports) {
    this.#job = new Removal({
      clock: ports.clock,
      wakeup: ports.wakeup,
      left: () => this.#left(),
      done: (name) => this.#done(name),
      steps: () => this.#steps(),
    });
  }

  /** Reports whether the actor was deleted. Throws `UNAVAILABLE` for storage of a newer release. */
  get isDeleted(): boolean {
    return this.ports.tombstone() !== undefined;
  }

  /** As `isDeleted`, but `false` for storage of a newer release. */
  get isKnownDeleted(): boolean {
    try {
      return this.isDeleted;
    } catch (error) {
      if (error instanceof StorageRefusal) return false;
      throw error;
    }
  }

  /** The name of the first step. It is stored. */
  protected abstract readonly first: string;

  /** The first step, or a piece of it from `from` on. It deletes other actors, or leaves them. Returns the start of the next piece. */
  protected abstract removeFirst(tombstone: ActorTombstone, from?: number): Promise<number | undefined>;

  /** Buries the actor and arms the wake-up, in the current transaction. Call `run` after the commit, when the promise has resolved. */
  protected bury(owner: Omit<ActorTombstone, "deletedAt" | "left" | "places">): Promise<void> {
    const steps = this.#steps().map(({ name }) => name);
    const isUnbound = owner.vectors !== undefined && !steps.includes(VECTORS);
    const left = isUnbound ? [...steps, VECTORS] : steps;
    this.ports.bury({ ...owner, deletedAt: this.ports.clock.now(), left });
    return this.#job.note();
  }

  /** As `Removal.run`. */
  protected run(): Promise<void> {
    return this.#job.run();
  }

  /** As `Removal.wake`. */
  wake(): number | null {
    return this.#job.wake() ?? this.#waitForStores();
  }

  /** Resumes a removal that a crash interrupted. */
  resume(): void {
    if (this.#left().length > 0) void this.#job.run();
  }

  /**
   * Returns the milliseconds until the next check for unbound stores. Returns `null` if no store is missing, or the period is over
   * (REMOVE-6).
   */
  #waitForStores(): number | null {
    const { left = [], deletedAt = 0 } = this.ports.tombstone() ?? {};
    return left.length > 0 && this.ports.clock.now() - deletedAt < MISSED_MS ? DAY_MS : null;
  }

  /** The remaining steps, without the steps of unbound stores. */
  #left(): string[] {
    const { left = [] } = this.ports.tombstone() ?? {};
    if (left.length === 0) return [];
    const known = new Set(this.#steps().map(({ name }) => name));
    return left.filter((name) => known.has(name));
  }

  #done(name: string): void {
    const tombstone = this.ports.tombstone();
    if (tombstone === undefined) return;
    const left = tombstone.left.filter((step) => step !== name);
    this.ports.bury({ ...tombstone, left });
    // An unbound store still needs the numbers of the vectors.
    if (!left.includes("late") && !left.includes(VECTORS)) dropRetainedVectors(this.ports.database);
  }

  #steps(): RemovalStep[] {
    const outside = this.ports.stores();
    return [
      { name: this.first, run: () => this.#runFirst() },
      ...outside.map((store) => ({ name: store.name, run: () => this.#emptied(store, store.name) })),
      { name: "database", isAfterAll: true, run: async () => this.#emptyDatabase() },
      { name: "late", isAfterAll: true, run: () => this.#removeLate(outside) },
      {
        name: "mail",
        isAfterAll: true,
        run: async () => (this.ports.forgetMail() ? undefined : MAIL_PAUSE_MS),
      },
    ];
  }

  async #runFirst(): Promise<number | undefined> {
    const tombstone = this.ports.tombstone();
    return (
      tombstone && this.#next(this.first, await this.removeFirst(tombstone, tombstone.places?.[this.first]))
    );
  }

  /** Empties a store, or a piece of it. Returns the milliseconds until the next piece. */
  async #emptied({ empty }: OwnedStore, name: string): Promise<number | undefined> {
    const { kind, tombstone, database } = this.ports;
    const before = tombstone();
    if (before === undefined) return undefined;
    const { tenant, id, createdAt } = before;
    const vectors = before.vectors && retainedVectors(database, before.vectors);
    const owner = { kind, tenant, id, createdAt, ...defined({ vectors }) };
    return this.#next(name, await empty(owner, before.places?.[name]));
  }

  /** Stores the start of the next piece of a step. Returns the milliseconds until that piece. */
  #next(name: string, next: unknown): number | undefined {
    const { tombstone, bury } = this.ports;
    const now = tombstone();
    if (typeof next !== "number" || now === undefined) return undefined;
    bury({ ...now, places: { ...now.places, [name]: next } });
    return NEXT_PIECE_MS;
  }

  /** Empties the stores once more. A write that began before the deletion may have arrived after the first pass. */
  async #removeLate(stores: readonly OwnedStore[]): Promise<number | undefined> {
    const { clock, tombstone } = this.ports;
    const wait = (tombstone()?.deletedAt ?? 0) + LATE_WRITE_MS - clock.now();
    if (wait > 0) return wait;
    this.#emptyDatabase();
    for (const store of stores) {
      const again = await this.#emptied(store, `late ${store.name}`);
      if (again !== undefined) return again;
    }
    return undefined;
  }

  #emptyDatabase(): undefined {
    dropTables(this.ports);
    deleteValues(this.ports, this.ports.keys);
  }
}
