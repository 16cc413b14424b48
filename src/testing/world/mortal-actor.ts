/** An actor with a mailbox in Node: it wakes when called, dies at a crossing of its storage, and wakes on the same database. */
import { Mailbox } from "../../agents/base/mailbox/mailbox.ts";
import type { Wakeup } from "../../agents/base/timers/wakeups.ts";
import type { Clock } from "../../ports/clock.ts";
import { sleepWith } from "../../ports/deadline.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import { NodeKeyValue } from "../../ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../ports/node/node-sql-database.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { ActorAddress, Envelope } from "../../protocol/envelope.ts";
import type { Answer, Attempt } from "../../protocol/mailbox-api.ts";

class Death extends Error {
  override readonly name = "Death";
}

const JOB = "job:";
/** A delay before a wake-up that failed is repeated. */
const AGAIN_MS = 5_000;

export interface MortalWorld {
  readonly clock: Clock;
  strikes(): boolean;
  /** Takes an error. Throws unless a crash or a plan explains it. */
  swallow(error: unknown): void;
  /** Brings an envelope to its receiver. */
  carry(sender: MortalLife, envelope: Envelope, attempt: Attempt): Promise<Answer>;
}

export interface MortalLife {
  alive: boolean;
  readonly mailbox: Mailbox;
  /** The handlers of its jobs, without the job of the mailbox. */
  readonly jobs: Readonly<Record<string, () => number | null>>;
  /** Resumes interrupted work. */
  wake(): Promise<void>;
  /** Resolves when its wake-ups are armed. */
  whenArmed(): Promise<void>;
}

/** The ports of one life. They fail once the life is over. */
export interface LifePorts {
  database: ActorDatabase;
  keyValue: KeyValue;
  clock: Clock;
  wakeup(name: string): Wakeup;
}

export abstract class MortalActor<World extends MortalWorld, Life extends MortalLife> {
  readonly database = new NodeSqlDatabase();
  readonly keyValue = new NodeKeyValue(this.database);
  #life: Life | null = null;
  lives = 0;

  constructor(
    readonly world: World,
    readonly address: ActorAddress,
  ) {}

  /** Adds the parts of a new life to `life`, which has its mailbox. */
  protected abstract build(life: Life, ports: LifePorts): void;

  get id(): string {
    return this.address.id;
  }

  /** Returns the present life; begins one after a death. */
  awake(): Life {
    if (this.#life?.alive) return this.#life;
    const life = this.#begin();
    this.#life = life;
    this.lives += 1;
    life.wake().catch((error: unknown) => this.world.swallow(error));
    return life;
  }

  /** The present life; `null` for an actor that is dead. */
  get life(): Life | null {
    return this.#life?.alive === true ? this.#life : null;
  }

  /** Ends this life, at no crossing: an eviction, or a deployment. */
  kill(): void {
    if (this.#life !== null) this.#life.alive = false;
  }

  async receive(envelope: Envelope, attempt: Attempt): Promise<Answer> {
    return this.awake().mailbox.receive(envelope, attempt);
  }

  get due(): number | undefined {
    const times = this.keyValue.list<number>(JOB, 10).map(([, time]) => time);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** Runs the jobs that are due, as the SDK's queue does. */
  fire(): void {
    for (const [key, time] of this.keyValue.list<number>(JOB, 10)) {
      if (time > this.world.clock.now()) continue;
      let again: number | null = AGAIN_MS;
      let life: Life | null = null;
      try {
        life = this.awake();
        const name = key.slice(JOB.length);
        again = (name === "mail" ? life.mailbox.wake() : life.jobs[name]?.()) ?? null;
      } catch (error) {
        this.world.swallow(error);
      }
      if (this.keyValue.get<number>(key) !== time) continue;
      if (life !== null && !life.alive) again = AGAIN_MS;
      if (again === null) this.keyValue.delete(key);
      else this.keyValue.put(key, this.world.clock.now() + Math.max(1, again));
    }
  }

  #begin(): Life {
    const { world, address } = this;
    const life = { alive: true } as Life & { mailbox: Mailbox };
    const clock = clockOf(life, world.clock);
    const cross = <Value>(operation: () => Value): Value => {
      if (!life.alive) throw new Death("dead");
      if (world.strikes()) {
        life.alive = false;
        throw new Death("struck");
      }
      return operation();
    };
    const keyValue = crossed(this.keyValue, cross);
    const database = this.#database(cross, () => life.alive);
    const wakeup = (name: string): Wakeup => ({
      arm: (milliseconds) => {
        const [known, wanted] = [keyValue.get<number>(JOB + name), clock.now() + milliseconds];
        if (known === undefined || known <= clock.now() || known > wanted) keyValue.put(JOB + name, wanted);
        return Promise.resolve();
      },
      disarm: () => {
        keyValue.delete(JOB + name);
      },
    });
    life.mailbox = new Mailbox({
      database,
      keyValue,
      clock,
      checkStorage: () => undefined,
      whenArmed: () => life.whenArmed(),
      self: () => address,
      deliver: (envelope, attempt) => world.carry(life, envelope, attempt),
      arm: wakeup("mail").arm,
      directory: () => null,
    });
    this.build(life, { database, keyValue, clock, wakeup });
    return life;
  }

  /** Rolls back if the process died within the transaction. */
  #database(cross: <Value>(operation: () => Value) => Value, isAlive: () => boolean): ActorDatabase {
    const { database } = this;
    return {
      run: (statement, ...values) => cross(() => database.run(statement, ...values)),
      all: (statement, ...values) => cross(() => database.all(statement, ...values)),
      each: (statement, ...values) => cross(() => database.each(statement, ...values)),
      transaction: (body) =>
        cross(() =>
          database.transaction(() => {
            const result = body();
            if (!isAlive()) throw new Death("died in a transaction");
            return result;
          }),
        ),
      isInTransaction: () => database.isInTransaction(),
    };
  }
}

/** Timers end with the life that set them. */
function clockOf(life: MortalLife, clock: Clock): Clock {
  const timer: Clock["timer"] = (milliseconds, callback) =>
    clock.timer(milliseconds, () => {
      if (!life.alive) return;
      try {
        callback();
      } catch (error) {
        // An error of an actor that still lives is a defect.
        if (life.alive) throw error;
      }
    });
  return {
    now: () => clock.now(),
    timer,
    sleep: (milliseconds, signal) => sleepWith(timer, milliseconds, signal),
  };
}

function crossed(keyValue: KeyValue, cross: <Value>(operation: () => Value) => Value): KeyValue {
  return {
    get: (key) => cross(() => keyValue.get(key)),
    put: (key, value) => cross(() => keyValue.put(key, value)),
    delete: (key) => cross(() => keyValue.delete(key)),
    list: (prefix, limit) => cross(() => keyValue.list(prefix, limit)),
  };
}

export function isDeath(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // An error of a core has the death within its planning as its cause.
  return error.name === "Death" || error.message === "dead" || isDeath(error.cause);
}
