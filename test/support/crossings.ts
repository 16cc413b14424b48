/**
 * Counted crossings of the ports, with a crash at chosen crossings. A crash throws out of the port. Then every port of
 * that life is dead: its remaining code can neither write nor be observed.
 */

import type { ModelGateway } from "../../src/model/gateway.ts";
import type { KeyValue } from "../../src/ports/key-value.ts";
import type { ActorDatabase } from "../../src/ports/sql-database.ts";
import type { TaskExecutor } from "../../src/protocol/executor-api.ts";

class Crash extends Error {
  override readonly name = "Crash";
}

/** A single failure of a port. */
export class Fault extends Error {
  override readonly name = "Fault";
}

/** One life of the actor. */
export interface Life {
  readonly alive: boolean;
  /** Crosses a port. A crash may happen before the operation, or after its effect and before its result. */
  cross<Result>(name: string, operation: () => Result): Result;
}

export class Crossings {
  /** Names of the crossings so far, in order. Each has two crash points, before and after. */
  readonly names: string[] = [];
  /** Faults that have happened. */
  failed = 0;
  #armed = false;
  #point = 0;
  #life: { alive: boolean } = { alive: true };

  /**
   * `points` are the crash points, ascending: 2k is before crossing k, 2k + 1 after it. At `faults` the port fails and
   * the actor survives.
   */
  constructor(
    private readonly points: readonly number[] = [],
    private readonly faults: readonly number[] = [],
  ) {}

  arm(): void {
    this.#armed = true;
  }

  disarm(): void {
    this.#armed = false;
  }

  /** Number of crash points of the run. */
  get count(): number {
    return this.#point;
  }

  /** Reports whether the newest life has crashed. */
  get crashed(): boolean {
    return !this.#life.alive;
  }

  /** Ends the newest life, at no crossing. */
  kill(): void {
    this.#life.alive = false;
  }

  isCrash(error: unknown): boolean {
    return error instanceof Crash;
  }

  beginLife(): Life {
    const life = { alive: true };
    this.#life = life;
    const crossings = this;
    return {
      get alive() {
        return life.alive;
      },
      cross<Result>(name: string, operation: () => Result): Result {
        if (!life.alive) throw new Crash("dead");
        if (!crossings.#armed) return operation();
        crossings.names.push(name);
        crossings.#pass(life);
        const result = operation();
        crossings.#pass(life);
        return result;
      },
    };
  }

  #pass(life: { alive: boolean }): void {
    const point = this.#point++;
    if (this.faults.includes(point)) {
      this.failed += 1;
      throw new Fault(`at point ${point}`);
    }
    if (!this.points.includes(point)) return;
    life.alive = false;
    throw new Crash(`at point ${point}`);
  }
}

export function crossSql(database: ActorDatabase, life: Life): ActorDatabase {
  return {
    run: (statement, ...values) => life.cross("sql.run", () => database.run(statement, ...values)),
    all: (statement, ...values) => life.cross("sql.all", () => database.all(statement, ...values)),
    each: (statement, ...values) => life.cross("sql.each", () => database.each(statement, ...values)),
    transaction: (body) => life.cross("sql.transaction", () => database.transaction(body)),
    isInTransaction: () => database.isInTransaction(),
  };
}

export function crossKeyValue(keyValue: KeyValue, life: Life): KeyValue {
  return {
    get: (key) => life.cross("kv.get", () => keyValue.get(key)),
    put: (key, value) => life.cross("kv.put", () => keyValue.put(key, value)),
    delete: (key) => life.cross("kv.delete", () => keyValue.delete(key)),
    list: (prefix, limit) => life.cross("kv.list", () => keyValue.list(prefix, limit)),
  };
}

export function crossGateway(gateway: ModelGateway, life: Life): ModelGateway {
  return {
    async *stream(request, signal) {
      const deltas = await pass(life, "model.call", () => gateway.stream(request, signal));
      for await (const delta of deltas) yield await pass(life, "model.delta", () => delta);
    },
  };
}

export function crossExecutor(executor: TaskExecutor, life: Life): TaskExecutor {
  return {
    run: (calls, { report, cancelled }) =>
      // The executor is another process: it completes accepted calls even if the caller dies.
      pass(life, "tool.call", () =>
        executor.run(calls, {
          report: (reports) => pass(life, "tool.report", () => report(reports)),
          cancelled,
        }),
      ),
  };
}

/** Same as `cross`, for background work: a crashed life receives no result and no error. */
async function pass<Result>(
  life: Life,
  name: string,
  operation: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    const result = await life.cross(name, operation);
    if (life.alive) return result;
  } catch (error) {
    if (!(error instanceof Crash)) throw error;
  }
  return new Promise<never>(() => undefined);
}
