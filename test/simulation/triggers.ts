/**
 * Random triggers in a world that fails: the real trigger, store and start, with crashes and errors at each port. The platform has outages, the
 * wall clock jumps forward, and people change the trigger. A coordinator keeps one run for each id.
 */
import { nextTime, parseCron } from "../../src/agents/trigger/core/cron.ts";
import { disabled, scheduled } from "../../src/agents/trigger/core/firing.ts";
import type { Due, Firing, TriggerRecord } from "../../src/agents/trigger/core/record.ts";
import { GIVE_UP_MS } from "../../src/agents/trigger/core/trigger-limits.ts";
import { start } from "../../src/agents/trigger/effects/start.ts";
import { TriggerRuntime } from "../../src/agents/trigger/runtime.ts";
import { TriggerStore } from "../../src/agents/trigger/store/trigger-store.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { sleepWith } from "../../src/ports/deadline.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { ConversationActor } from "../../src/protocol/actor-lookup.ts";
import type { CoordinatorApi } from "../../src/protocol/coordinator-api.ts";
import type { TriggerStarted } from "../../src/protocol/trigger-api.ts";
import { asResult, DramatisError } from "../../src/shared/errors.ts";
import { toIso } from "../../src/shared/time.ts";
import { Random } from "../../src/testing/random.ts";
import { Crossings, crossKeyValue, crossSql, Fault } from "../support/crossings.ts";
import { MortalClock, WorldClock } from "./clocks.ts";

/** The findings of one seed. */
export interface SimulatedTrigger {
  violations: string[];
  /** Runs that began, attempts to start them, and lives of the actor. */
  runs: number;
  attempts: number;
  lives: number;
}

const MINUTE = 60_000;
const CRONS = ["* * * * *", "*/5 * * * *", "7 * * * *"] as const;
const LAST_POINT = 500;
/** Minutes with faults, then minutes without faults. */
const WILD_MINUTES = 240;
const CALM_MINUTES = 150;
/** With this many jobs in one second, the trigger is busy without work. */
const MAX_RINGS = 5;
/** Delay before the platform repeats a wake-up that failed. */
const AGAIN_MS = 5_000;

export function simulateTrigger(seed: number): Promise<SimulatedTrigger> {
  return new Simulated(new Random(seed).fork("trigger")).run();
}

class Simulated {
  readonly #clock = new WorldClock();
  readonly #database = new NodeSqlDatabase();
  readonly #keyValue = new NodeKeyValue(this.#database);
  readonly #crossings: Crossings;
  readonly #violations: string[] = [];
  /** The request of each key, the keys with a run, and the keys with a final failure. */
  readonly #requests = new Map<string, string>();
  readonly #runs = new Set<string>();
  readonly #failed = new Set<string>();
  readonly #crons = new Set<string>();
  #life = new MortalClock(this.#clock);
  #runtime: TriggerRuntime;
  #lives = 0;
  #attempts = 0;
  #isCalm = false;
  /** The platform runs no job until then. */
  #downUntil = 0;
  #due: Due | undefined;
  /** The second of the last job, and the jobs in it. */
  #second = -1;
  #rings = 0;
  /** Resolves when the start under way reaches the coordinator. */
  #hashing = Promise.resolve();
  /** A person has disabled the trigger since the last check. */
  #isDropped = false;

  constructor(private readonly random: Random) {
    const points = (most: number) =>
      random.list(random.int(0, most), () => random.int(0, LAST_POINT)).sort((one, other) => one - other);
    this.#crossings = new Crossings(points(5), points(5));
    this.#runtime = this.#begin();
  }

  async run(): Promise<SimulatedTrigger> {
    const log = console.error;
    console.error = (...values: unknown[]) => {
      const isPlanned = values.some((value) => value instanceof Fault || this.#crossings.isCrash(value));
      if (!isPlanned) this.#violations.push(`Reported: ${values.map(String).join(" ")}`);
    };
    try {
      await this.#runtime.create(this.#record());
      this.#crossings.arm();
      for (let minute = 0; minute < WILD_MINUTES; minute++) {
        if (this.random.chance(0.05)) await this.#act();
        await this.#pass(MINUTE);
      }
      this.#calm();
      await this.#change((record, now) => scheduled({ ...record, enabled: true }, now));
      const since = this.#clock.now();
      await this.#pass(CALM_MINUTES * MINUTE);
      this.#judge(since);
    } finally {
      console.error = log;
    }
    return {
      violations: this.#violations,
      runs: this.#runs.size,
      attempts: this.#attempts,
      lives: this.#lives,
    };
  }

  get #stored(): TriggerRecord {
    return new TriggerStore({ database: this.#database, keyValue: this.#keyValue }).get();
  }

  #record(): TriggerRecord {
    const now = this.#clock.now();
    const who = { id: "trig_01JD0000000000000000000000", tenant: "acme", createdBy: "ada", actsAs: "ada" };
    const times = { createdAt: now, updatedAt: now };
    const record = { ...who, ...times, when: this.#when(), starts: { workflow: "lib/a" }, enabled: true };
    return scheduled(record, now);
  }

  #when() {
    const cron = this.random.pick(CRONS);
    this.#crons.add(cron);
    return { cron };
  }

  #begin(): TriggerRuntime {
    this.#lives += 1;
    this.#life.die();
    this.#life = new MortalClock(this.#clock);
    const life = this.#crossings.beginLife();
    return new TriggerRuntime({
      database: crossSql(this.#database, life),
      keyValue: crossKeyValue(this.#keyValue, life),
      clock: this.#mortal(),
      armWakeup: async (milliseconds) => life.cross("alarm", () => this.#arm(milliseconds)),
      note: async () => undefined,
      start: async (firing) => {
        try {
          return await life.cross("start", () => this.#start(firing));
        } catch (error) {
          if (this.#crossings.isCrash(error)) return new Promise<never>(() => undefined);
          if (error instanceof Fault) throw new DramatisError("UNAVAILABLE", "It cannot be reached.");
          throw error;
        }
      },
    });
  }

  #start(firing: Firing): Promise<TriggerStarted> {
    const { key, starts, actsAs } = firing;
    this.#attempts += 1;
    const request = JSON.stringify([starts, actsAs]);
    if ((this.#requests.get(key) ?? request) !== request)
      this.#violations.push(`${key} makes another request.`);
    this.#requests.set(key, request);
    const time = Date.parse(key);
    if (![...this.#crons].some((cron) => nextTime(parseCron(cron), time - 1) === time))
      this.#violations.push(`${key} is no time of the trigger.`);
    const own = this.random.fork(`start ${this.#attempts}`);
    const { promise, resolve: reached } = Promise.withResolvers<void>();
    // The id of a run is a digest, which takes no virtual time.
    this.#hashing = promise;
    const take = async () => {
      reached();
      if (!this.#isCalm && own.chance(0.1)) await this.#clock.sleep(own.int(1, 45_000));
      if (!this.#isCalm && own.chance(0.15)) throw new DramatisError("UNAVAILABLE", "Not now.");
      if (!this.#isCalm && own.chance(0.05)) {
        this.#failed.add(key);
        throw new DramatisError("NOT_FOUND", "There is no such workflow.");
      }
      this.#runs.add(key);
      if (!this.#isCalm && own.chance(0.1)) throw new DramatisError("UNAVAILABLE", "The answer is lost.");
      return {};
    };
    // SAFETY: a start of a run calls this method only.
    const coordinator = { start: () => asResult(take) } as unknown as CoordinatorApi;
    const conversation = async (): Promise<ConversationActor> => {
      throw new Error("The trigger starts runs.");
    };
    const actors = { coordinator: async () => coordinator, conversation };
    const started = start({ actors, mayAct: () => true }, firing);
    // A dead life learns of no failure.
    started.catch(reached);
    return started;
  }

  /** The clock of the newest life. Its timers die with it. */
  #mortal(): Clock {
    const life = this.#life;
    const timer = (milliseconds: number, callback: () => void) =>
      life.timer(milliseconds, () => {
        try {
          callback();
        } catch (error) {
          if (!this.#crossings.isCrash(error)) throw error;
        }
      });
    const sleep: Clock["sleep"] = (milliseconds, signal) => sleepWith(timer, milliseconds, signal);
    return { now: () => life.now(), timer, sleep };
  }

  #arm(milliseconds: number): void {
    const time = this.#clock.now() + milliseconds;
    const job = this.#keyValue.get<number>("job");
    if (job === undefined || job > time) this.#keyValue.put("job", time);
  }

  async #act(): Promise<void> {
    const { random } = this;
    switch (random.pick(["disable", "enable", "cron", "request", "outage", "jump", "kill"] as const)) {
      case "disable":
        this.#isDropped = true;
        return this.#change(disabled);
      case "enable":
        return this.#change((record, now) => scheduled({ ...record, enabled: true }, now));
      case "cron": {
        const when = this.#when();
        return this.#change((record, now) => scheduled({ ...record, when }, now));
      }
      case "request":
        return this.#change((record) => ({ ...record, starts: { workflow: "lib/b" }, actsAs: "ben" }));
      case "outage":
        this.kill();
        this.#downUntil = this.#clock.now() + random.int(1, 90) * MINUTE;
        return;
      case "jump":
        return this.#clock.jump(random.int(1, 60) * MINUTE);
      case "kill":
        return this.kill();
    }
  }

  kill(): void {
    this.#runtime = this.#begin();
  }

  #calm(): void {
    this.#isCalm = true;
    this.#downUntil = 0;
    this.#crossings.disarm();
    this.kill();
  }

  /** Changes the trigger, and repeats the change if it fails. */
  async #change(change: (record: TriggerRecord, now: number) => TriggerRecord): Promise<void> {
    for (let tries = 0; tries < 20; tries++) {
      this.#revive();
      try {
        await this.#runtime.update(change);
        return;
      } catch (error) {
        if (!(error instanceof Fault || this.#crossings.isCrash(error))) throw error;
      }
    }
  }

  async #pass(milliseconds: number): Promise<void> {
    const end = this.#clock.elapsed + milliseconds;
    for (;;) {
      await breathe();
      await this.#hashing;
      await breathe();
      this.#look();
      this.#revive();
      const job = this.#keyValue.get<number>("job");
      const wait =
        job === undefined
          ? Number.POSITIVE_INFINITY
          : Math.max(0, Math.max(job, this.#downUntil) - this.#clock.now());
      const left = end - this.#clock.elapsed;
      const next = Math.min(wait, this.#clock.nextIn ?? Number.POSITIVE_INFINITY);
      if (next > left) {
        await this.#clock.advance(left);
        return;
      }
      await this.#clock.advance(next);
      if (wait <= next) this.#ring();
    }
  }

  #ring(): void {
    this.#keyValue.delete("job");
    const second = Math.floor(this.#clock.elapsed / 1_000);
    this.#rings = second === this.#second ? this.#rings + 1 : 1;
    this.#second = second;
    if (this.#rings === MAX_RINGS) this.#violations.push(`It is busy in second ${second}.`);
    this.#guarded(() => {
      this.#runtime.reconcile();
      const due = this.#runtime.dueIn;
      if (due !== null) this.#arm(Math.max(1, due));
    });
  }

  /** Begins the next life after a crash, as the next job does. */
  #revive(): void {
    if (!this.#crossings.crashed) return;
    this.kill();
    this.#guarded(() => this.#runtime.wake());
  }

  #guarded(body: () => void): void {
    try {
      body();
    } catch (error) {
      if (!(error instanceof Fault || this.#crossings.isCrash(error))) throw error;
      this.#arm(AGAIN_MS);
    }
  }

  /** Checks that no due time disappears without a run, a final failure, a day of attempts or a person's change. */
  #look(): void {
    const { due } = this.#stored;
    const before = this.#due;
    this.#due = due;
    if (before === undefined || before.scheduledAt === due?.scheduledAt) {
      this.#isDropped = false;
      return;
    }
    const key = toIso(before.scheduledAt);
    const isOver = this.#runs.has(key) || this.#failed.has(key) || this.#isDropped;
    this.#isDropped = false;
    if (!isOver && this.#clock.now() - before.since < GIVE_UP_MS / 2)
      this.#violations.push(`${key} was due, and is forgotten.`);
    if (due !== undefined && due.scheduledAt < before.scheduledAt)
      this.#violations.push(`${toIso(due.scheduledAt)} comes after ${key}.`);
  }

  /** Checks that each time since `since` has its run, and that the next time is armed. */
  #judge(since: number): void {
    const { when, due, nextAt, lastError } = this.#stored;
    if (!("cron" in when)) return;
    const cron = parseCron(when.cron);
    const times: number[] = [];
    // Older due times are merged into one run.
    for (
      let at = nextTime(cron, since + 10 * MINUTE);
      at !== undefined && at < this.#clock.now();
      at = nextTime(cron, at)
    )
      times.push(at);
    if (times.length === 0) this.#violations.push("Nothing was to fire.");
    for (const at of times) if (!this.#runs.has(toIso(at))) this.#violations.push(`${toIso(at)} has no run.`);
    if (due !== undefined || lastError !== undefined) this.#violations.push("It does not come to rest.");
    const job = this.#keyValue.get<number>("job");
    if (nextAt === undefined || job === undefined || job > nextAt)
      this.#violations.push(`The time ${nextAt} is not armed: ${job}.`);
  }
}

/** Runs all promise reactions that are ready. */
function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
