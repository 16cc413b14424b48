/**
 * Actors with real mailboxes in Node, on a network that drops, delays, repeats and reorders requests, with crashes and
 * faults at their port crossings.
 */

import { encodeTime } from "ulid";
import { z } from "zod";
import { NotNow } from "../../src/agents/base/mailbox/handlers.ts";
import { Mailbox } from "../../src/agents/base/mailbox/mailbox.ts";
import type { MailboxPorts } from "../../src/agents/base/mailbox/ports.ts";
import type { KeyValue } from "../../src/ports/key-value.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { SqlDatabase } from "../../src/ports/sql-database.ts";
import type { DeadLetterView } from "../../src/protocol/conversation-schemas.ts";
import type { ActorAddress, Envelope } from "../../src/protocol/envelope.ts";
import type { Answer, Attempt } from "../../src/protocol/mailbox-api.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { Crossings, crossKeyValue, type Life } from "./crossings.ts";

/** Behavior of the network for one attempt. Times are in milliseconds. */
export interface Fate {
  /** Arrival time of each copy of the request; empty if it is lost. */
  requests: number[];
  /** Delay of the response to the first copy; `null` if it is lost. */
  answer: number | null;
  /** Time at which the sender notices the broken connection; `null` if it waits. */
  breaks: number | null;
}

const GOOD: Fate = { requests: [1], answer: 1, breaks: null };

/** Behavior of the receiver's handler at the first, second, … delivery of one envelope. */
export type Behaviour = ("accept" | "refuse" | "busy" | "defect")[];

export interface ReportedOutcome {
  status: "delivered" | "failed" | "unknown";
  late: boolean;
}

/** Maximum number of steps. A run that needs more is stuck. */
const MAX_STEPS = 20_000;

const bodySchema = z.strictObject({ reply: z.boolean() });

export class SimulatedActor {
  readonly crossings: Crossings;
  readonly address: ActorAddress;
  readonly #database = new NodeSqlDatabase();
  readonly #keyValue: NodeKeyValue;
  #life: Life;
  #mailbox: Mailbox;
  #replies = 0;

  constructor(
    private readonly world: MailWorld,
    readonly name: string,
    points: readonly number[],
    faults: readonly number[],
  ) {
    this.address = { kind: "tester", tenant: "t", id: name };
    this.#keyValue = new NodeKeyValue(this.#database);
    this.crossings = new Crossings(points, faults);
    this.crossings.arm();
    [this.#life, this.#mailbox] = this.#begin();
  }

  /** Returns the mailbox of the current life, and starts a new life after a crash. */
  awake(): { mailbox: Mailbox; life: Life } {
    if (this.crossings.crashed) [this.#life, this.#mailbox] = this.#begin();
    return { mailbox: this.#mailbox, life: this.#life };
  }

  /** Makes a decision that sends. `committed` reports whether it was committed. */
  async decide(operationId: string, to: ActorAddress, reply: boolean, rollBack: boolean): Promise<void> {
    const { mailbox, life } = this.awake();
    const [database, keyValue] = [this.#sql(life), crossKeyValue(this.#keyValue, life)];
    try {
      await database.transaction(() => {
        keyValue.put(`sent:${operationId}`, true);
        const armed = mailbox.send({ operationId, to, type: "work", body: { reply } });
        if (rollBack) throw new Error("rolled back");
        return { armed };
      }).armed;
    } catch (error) {
      this.world.swallow(error);
    }
  }

  async redeliverAll(): Promise<void> {
    for (const { id } of this.deadLetters()) {
      const { mailbox } = this.awake();
      await mailbox.redeliver(id).catch((error: unknown) => this.world.swallow(error));
    }
  }

  deadLetters(): DeadLetterView[] {
    const rest = new Mailbox({
      ...this.#ports(this.#life),
      database: this.#database,
      keyValue: this.#keyValue,
    });
    return rest.deadLetters({ limit: 200 }).items;
  }

  committed(operationId: string): boolean {
    return this.#keyValue.get(`sent:${operationId}`) === true;
  }

  acts(operationId: string): number {
    return this.#keyValue.get<number>(`acts:${operationId}`) ?? 0;
  }

  reported(operationId: string): ReportedOutcome[] {
    return this.#keyValue.get<ReportedOutcome[]>(`reported:${operationId}`) ?? [];
  }

  /** Accepted replies of an operation, each with whether it was late. */
  repliesTo(operationId: string): { late: boolean }[] {
    return this.#keyValue.get<{ late: boolean }[]>(`replies:${operationId}`) ?? [];
  }

  get isIdle(): boolean {
    return this.#keyValue.list("mailbox:out:", 1).length === 0;
  }

  get job(): number | undefined {
    return this.#keyValue.get<number>("job");
  }

  /** Runs the armed job like the SDK's queue. A time that is armed during the run overrides the handler's. */
  fire(): void {
    const { job } = this;
    const { mailbox, life } = this.awake();
    let next: number | null = null;
    try {
      next = mailbox.wake();
    } catch (error) {
      this.world.swallow(error);
      next = 5_000;
    }
    if (!life.alive || this.job !== job) return;
    if (next === null) this.#keyValue.delete("job");
    else this.#keyValue.put("job", this.world.clock.now() + next);
  }

  #begin(): [Life, Mailbox] {
    const life = this.crossings.beginLife();
    const mailbox = new Mailbox(this.#ports(life));
    const keyValue = crossKeyValue(this.#keyValue, life);
    mailbox.receives("work", bodySchema, ({ reply }, { envelope, afterCommit }) => {
      const { operationId, from } = envelope;
      afterCommit(this.#effect(life, keyValue));
      keyValue.put(`acts:${operationId}`, this.acts(operationId) + 1);
      if (reply) {
        const id = operationIdAt(this.world.clock.now(), `REP${this.name.toUpperCase()}${++this.#replies}`);
        void mailbox.send({
          operationId: id,
          to: from,
          type: "result",
          body: null,
          inReplyTo: operationId,
        });
      }
      this.world.behave(operationId);
      return { done: operationId };
    });
    mailbox.receives("result", z.null(), (_, { envelope, late }) => {
      const key = `replies:${envelope.inReplyTo}`;
      keyValue.put(key, [...(this.#keyValue.get<object[]>(key) ?? []), { late }]);
      return null;
    });
    mailbox.outcomes("work", ({ envelope, outcome, late, afterCommit }) => {
      afterCommit(this.#effect(life, keyValue));
      const key = `reported:${envelope.operationId}`;
      keyValue.put(key, [
        ...(this.#keyValue.get<ReportedOutcome[]>(key) ?? []),
        { status: outcome.status, late },
      ]);
      this.world.behave(key);
    });
    return [life, mailbox];
  }

  /** Notes a call of a handler in its transaction. Returns the effect of that call, which the world judges. */
  #effect(life: Life, keyValue: KeyValue): () => void {
    const key = `call:${this.name}:${++this.world.calls}`;
    keyValue.put(key, true);
    return () => {
      if (!life.alive) return;
      const isCommitted = this.#keyValue.get(key) === true;
      if (!isCommitted || this.world.effects.has(key)) this.world.wrongEffects.push(key);
      this.world.effects.add(key);
    };
  }

  /** The calls of handlers that have committed. */
  committedCalls(): string[] {
    return this.#keyValue.list("call:", 10_000).map(([key]) => key);
  }

  #ports(life: Life): MailboxPorts {
    const { clock } = this.world;
    const keyValue: KeyValue = crossKeyValue(this.#keyValue, life);
    return {
      database: this.#sql(life),
      keyValue,
      clock,
      checkStorage: () => undefined,
      whenArmed: () => Promise.resolve(),
      self: () => this.address,
      deliver: (envelope, attempt) => this.world.carry(life, envelope, attempt),
      arm: (milliseconds) => {
        const [job, wanted] = [this.job, clock.now() + milliseconds];
        if (job === undefined || job <= clock.now() || job > wanted) keyValue.put("job", wanted);
        return Promise.resolve();
      },
      directory: () => null,
    };
  }

  /** Rolls back if the process died within the transaction. Only the outermost transaction is a crossing. */
  #sql(life: Life): SqlDatabase {
    let depth = 0;
    return {
      run: (statement, ...values) => life.cross("sql.run", () => this.#database.run(statement, ...values)),
      all: (statement, ...values) => life.cross("sql.all", () => this.#database.all(statement, ...values)),
      each: (statement, ...values) => life.cross("sql.each", () => this.#database.each(statement, ...values)),
      transaction: (body) => {
        const run = () =>
          this.#database.transaction(() => {
            depth += 1;
            try {
              const result = body();
              if (!life.alive) throw new Error("died in a transaction");
              return result;
            } finally {
              depth -= 1;
            }
          });
        return depth > 0 ? run() : life.cross("sql.transaction", run);
      },
    };
  }
}

export interface MailWorldOptions {
  /** Behavior of the network for the first attempts, in order. All later attempts succeed. */
  fates: Fate[];
  behaviours: Map<string, Behaviour>;
}

export class MailWorld {
  readonly clock = new VirtualClock();
  readonly actors = new Map<string, SimulatedActor>();
  readonly #fates: Fate[];
  readonly #behaviours: Map<string, Behaviour>;
  /** The number of calls of handlers so far. */
  calls = 0;
  /** The calls of handlers with an effect that has run. */
  readonly effects = new Set<string>();
  /** Effects that ran twice, or for a call that did not commit. */
  readonly wrongEffects: string[] = [];
  /** First attempts, in the order of their arrival. */
  readonly carried: { operationId: string; attempt: Attempt }[] = [];

  constructor({ fates, behaviours }: MailWorldOptions) {
    this.#fates = [...fates];
    this.#behaviours = behaviours;
  }

  add(name: string, points: readonly number[] = [], faults: readonly number[] = []): SimulatedActor {
    const actor = new SimulatedActor(this, name, points, faults);
    this.actors.set(name, actor);
    return actor;
  }

  /** Throws if the receiver of the envelope fails this time. */
  behave(operationId: string): void {
    switch (this.#behaviours.get(operationId)?.shift() ?? "accept") {
      case "refuse":
        throw new DramatisError("CONFLICT", "refused for good");
      case "busy":
        throw new NotNow("too busy", 3_000);
      case "defect":
        throw new Error("a defect");
    }
  }

  carry(sender: Life, envelope: Envelope, attempt: Attempt): Promise<Answer> {
    if (!sender.alive) return new Promise(() => undefined);
    const fate = this.#fates.shift() ?? GOOD;
    this.carried.push({ operationId: envelope.operationId, attempt });
    return new Promise((resolve, reject) => {
      const { clock } = this;
      for (const [copy, delay] of fate.requests.entries()) {
        clock.timer(delay, () => {
          const receiver = this.actors.get(envelope.to.id);
          if (receiver === undefined) return reject(new Error("no such actor"));
          const { mailbox, life } = receiver.awake();
          void mailbox
            .receive(structuredClone(envelope), { ...attempt })
            .catch((error: unknown) => error)
            .then((answer) => {
              if (copy > 0 || fate.answer === null) return;
              const isAnswer = life.alive && !(answer instanceof Error);
              clock.timer(fate.answer, () => (isAnswer ? resolve(answer as Answer) : reject(answer)));
            });
        });
      }
      if (fate.breaks !== null) clock.timer(fate.breaks, () => reject(new Error("connection broken")));
    });
  }

  /** Advances time until all work is done. */
  async untilQuiet(): Promise<void> {
    for (let step = 0; step < MAX_STEPS; step++) {
      await this.clock.advance(0);
      const jobs = [...this.actors.values()].flatMap(({ job }) => job ?? []);
      const next = Math.min(...jobs, this.clock.nextDue ?? Number.POSITIVE_INFINITY);
      if (next === Number.POSITIVE_INFINITY) return;
      await this.clock.advance(Math.max(0, next - this.clock.now()));
      for (const actor of this.actors.values()) {
        if ((actor.job ?? Number.POSITIVE_INFINITY) <= this.clock.now()) actor.fire();
      }
    }
    throw new Error("The world does not come to rest.");
  }

  /** Ignores crashes, faults and rollbacks, which are planned. */
  swallow(error: unknown): void {
    if (!(error instanceof Error)) throw error;
  }
}

/** Returns an operation id with a time and a distinct tail of Crockford characters. */
export function operationIdAt(time: number, tail: string): string {
  return `op_${encodeTime(time, 10)}${tail.replaceAll(/[ILOU]/g, "X").padStart(16, "0")}`;
}
