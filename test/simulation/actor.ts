/**
 * A conversation's actor on the Node adapters. It wakes when called, dies at a fault, and wakes again on the same
 * database. This file simulates the platform: one life at a time, sockets that survive an eviction but not a crash, and
 * a wake-up that is set in the current transaction.
 */
import type { Connection } from "agents";
import type { ConnectionMemory } from "../../src/agents/base/sockets/client.ts";
import type { ConversationState } from "../../src/agents/conversation/core/state.ts";
import { openConnection, receiveFrame } from "../../src/agents/conversation/inbound/connections.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { asResult, DramatisError } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { unnamedWaits } from "./check-waits.ts";
import { Crash, InjectedError } from "./faults.ts";
import { nextStep } from "./history.ts";
import { type ActorSurroundings, Life, type LifeHost } from "./life.ts";
import type { ActorTools } from "./tools.ts";

export const TENANT = "sim";
/** Delay before the platform repeats a failed wake-up, in milliseconds. */
const ALARM_RETRY_MS = 2_000;

/** The error of a caller when the actor dies during its call. */
export class ActorLost extends DramatisError {
  constructor() {
    super("UNAVAILABLE", "The actor was lost.", { retriable: true });
  }
}

/** The actor's end of a connection. */
export interface ServerSocket {
  send(text: string): void;
  close(code: number, reason: string): void;
  /** Reports that the actor died, and the connection with it. */
  lost(): void;
}

export class Actor implements LifeHost {
  readonly database = new NodeSqlDatabase();
  readonly keyValue = new NodeKeyValue(this.database);
  readonly #sockets = new Map<ServerSocket, Connection<ConnectionMemory>>();
  #life: Life | null = null;
  #starting: Promise<Life> | null = null;
  #alarm: { due: number; cancel: () => void } | null = null;
  /** Time of the armed wake-up. `null` if no wake-up is armed, `undefined` until the next read. */
  #due: number | null | undefined;
  #wasIdle = false;
  #looked: ConversationState | null = null;
  #newest = 0;
  /** Number of lives. */
  lives = 0;

  constructor(readonly surroundings: ActorSurroundings) {
    this.database.run("CREATE TABLE _alarm (id INTEGER PRIMARY KEY, due INTEGER NOT NULL)");
    const { record, history, order, budget, variant } = surroundings;
    if (record === null) return;
    const settings = { order: variant.order?.(order) ?? order, ...(budget === undefined ? {} : { budget }) };
    new Life(this).runtime.create(record, { history, ...settings });
  }

  /** The current life, if there is one. */
  get living(): Life | null {
    return this.#life?.alive ? this.#life : null;
  }

  /** Calls the actor and wakes it if needed. Throws `ActorLost` if it dies before it answers. */
  async call<Result>(use: (life: Life) => Result | Promise<Result>): Promise<Result> {
    const life = this.living ?? (await this.#wake());
    try {
      const result = await Promise.race([use(life), life.death]);
      if (!life.alive) throw new ActorLost();
      return result;
    } catch (error) {
      throw life.alive ? error : new ActorLost();
    }
  }

  /** The RPC surface for tools and their executor. */
  tools(): ActorTools {
    return {
      die: () => this.crash(),
      handleTaskResult: (result) =>
        this.call((life) =>
          asResult(async () => {
            await life.runtime.results.takeResult(result);
            return null;
          }),
        ),
      toolStateGet: (key) => this.call((life) => asResult(() => life.runtime.toolState.get(key))),
      toolStatePut: (key, value) =>
        this.call((life) =>
          asResult(() => {
            life.runtime.toolState.put(key, value);
            return null;
          }),
        ),
      toolStateList: (prefix) => this.call((life) => asResult(() => life.runtime.toolState.list(prefix))),
    };
  }

  async connect(socket: ServerSocket, principal: Principal, from: number | null, acks = true): Promise<void> {
    await this.call((life) => {
      const connection = connectionOf(socket);
      this.#sockets.set(socket, connection);
      openConnection(life.ports, connection, principal, from === null ? { acks } : { from, acks });
    });
  }

  async receive(socket: ServerSocket, text: string): Promise<void> {
    const connection = this.#sockets.get(socket);
    if (connection !== undefined) await this.call((life) => receiveFrame(life.ports, connection, text));
  }

  disconnect(socket: ServerSocket): void {
    this.#sockets.delete(socket);
  }

  /** Ends a life, and with it its sockets. */
  onDeath(): void {
    this.surroundings.note(this.surroundings.conversation, `life ${this.lives} ends`);
    for (const socket of this.#sockets.keys()) socket.lost();
    this.#sockets.clear();
  }

  connections(): Iterable<Connection<ConnectionMemory>> {
    return this.#sockets.values();
  }

  /** Kills the actor. */
  crash(): void {
    this.living?.die();
  }

  /** Does the platform's work between two events: wake-ups and evictions. */
  tend(): void {
    this.#watchAlarm();
    try {
      this.#tendLife();
    } catch (error) {
      // The state had to be read again, and a fault struck.
      if (!(error instanceof Crash || error instanceof InjectedError)) throw error;
    }
  }

  #tendLife(): void {
    const life = this.living;
    const isIdle = life !== null && !life.isAtWork;
    if (isIdle && !this.#wasIdle) {
      for (const fault of this.surroundings.plane.cross(this.surroundings.conversation, "idle")) {
        this.surroundings.plane.fire(fault);
        if (fault.kind === "crash") life.die();
        if (fault.kind === "evict") this.#evict(life);
      }
    }
    this.#wasIdle = isIdle;
    this.#look();
  }

  /** Looks for stuck turns. */
  #look(): void {
    const { records, conversation } = this.surroundings;
    const state = this.living?.isThere ? this.living.runtime.state : null;
    if (state === null || state === this.#looked) return;
    this.#looked = state;
    for (const n of unnamedWaits(state)) records.stuck.push(`${conversation}: turn ${n}`);
  }

  onCommit(): void {
    const { records, conversation, clock } = this.surroundings;
    if (!this.hasJournal) return;
    const [row] = this.database.all<{ seq: number }>("SELECT max(seq) AS seq FROM journal");
    const seq = row?.seq ?? 0;
    if (seq <= this.#newest) return;
    this.#newest = seq;
    const { lives: life } = this;
    records.commits.push({ conversation, seq, step: nextStep(records), at: clock.elapsed, life });
  }

  /** `false` for a fork before its first part. */
  get hasJournal(): boolean {
    const { record } = this.surroundings;
    return (
      record !== null || this.database.all("SELECT name FROM sqlite_master WHERE name = 'journal'").length > 0
    );
  }

  get armed(): boolean {
    return this.database.all("SELECT due FROM _alarm").length > 0;
  }

  arm(milliseconds: number): void {
    this.#due = undefined;
    const due = this.surroundings.clock.now() + milliseconds;
    this.database.run(
      "INSERT INTO _alarm (id, due) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET due = min(due, excluded.due)",
      due,
    );
  }

  disarm(): void {
    this.#due = undefined;
    this.database.run("DELETE FROM _alarm");
  }

  #evict(life: Life): void {
    life.leave();
    this.surroundings.note(this.surroundings.conversation, "evicted");
  }

  #wake(): Promise<Life> {
    this.#starting ??= this.#begin().finally(() => (this.#starting = null));
    return this.#starting;
  }

  async #begin(): Promise<Life> {
    this.lives += 1;
    const life = new Life(this);
    this.surroundings.note(this.surroundings.conversation, `life ${this.lives} begins`);
    try {
      await Promise.race([life.wake(), life.death]);
      if (!life.alive) throw new ActorLost();
    } catch (error) {
      if (life.alive) life.die();
      if (!(error instanceof Crash || error instanceof InjectedError || error instanceof ActorLost))
        throw error;
      throw new ActorLost();
    }
    this.#life = life;
    return life;
  }

  /** Reads the wake-up from the database. It may have been set, moved or rolled back, and the clock may have jumped. */
  #watchAlarm(): void {
    const { clock } = this.surroundings;
    // Between two events no transaction is open, and a failed one has been rolled back.
    if (this.#due === undefined)
      this.#due = this.database.all<{ due: number }>("SELECT due FROM _alarm")[0]?.due ?? null;
    const due = this.#due === null ? undefined : clock.elapsed + Math.max(0, this.#due - clock.now());
    if (this.#alarm?.due === due) return;
    this.#alarm?.cancel();
    this.#alarm =
      due === undefined ? null : { due, cancel: clock.timer(due - clock.elapsed, () => void this.#ring()) };
  }

  async #ring(): Promise<void> {
    this.#alarm = null;
    const { plane, conversation, clock, note } = this.surroundings;
    const faults = plane.cross(conversation, "alarm");
    const delay = faults.find((fault) => fault.kind === "delay");
    if (delay !== undefined) {
      plane.fire(delay);
      this.#postpone(delay.ms);
      return;
    }
    note(conversation, "wake-up");
    const crash = faults.find((fault) => fault.kind === "crash");
    const twice = faults.find((fault) => fault.kind === "duplicate");
    // The wake-up stays armed until it succeeds. If its actor dies, it repeats.
    this.#postpone(ALARM_RETRY_MS);
    const handle = (life: Life) => {
      if (crash?.when === "before") {
        plane.fire(crash);
        life.die();
        return;
      }
      const dueIn = life.wakeUp();
      if (!life.alive) return;
      if (crash !== undefined) {
        plane.fire(crash);
        life.die();
        return;
      }
      if (dueIn !== null) this.#setAlarm(clock.now() + dueIn);
      else this.disarm();
    };
    try {
      await this.call(handle);
      if (twice === undefined) return;
      plane.fire(twice);
      await this.call(handle);
    } catch (error) {
      // The platform repeats a wake-up that failed.
      if (!(error instanceof ActorLost || error instanceof InjectedError)) throw error;
    }
  }

  #postpone(ms: number): void {
    this.#setAlarm(this.surroundings.clock.now() + ms);
  }

  #setAlarm(due: number): void {
    this.#due = undefined;
    this.database.run(
      "INSERT INTO _alarm (id, due) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET due = excluded.due",
      due,
    );
  }
}

function connectionOf(socket: ServerSocket): Connection<ConnectionMemory> {
  const connection = {
    state: null as ConnectionMemory | null,
    setState(state: ConnectionMemory) {
      connection.state = state;
    },
    send: (text: string) => socket.send(text),
    close: (code: number, reason: string) => socket.close(code, reason),
  };
  // SAFETY: these are the members that `connections.ts` uses.
  return connection as unknown as Connection<ConnectionMemory>;
}
