/**
 * Removes the data of a deleted actor from its own database, from the directory and from the object store. The actor is unreachable as soon
 * as its deletion commits. This job runs afterwards, and leaves only a tombstone.
 *
 * REMOVE-1  The deletion stores the remaining steps, so a crash loses no step. A failed store delays only its own step and the steps that
 *           depend on it. A step times out after 30 seconds.
 * REMOVE-2  Steps are idempotent.
 * REMOVE-3  Failed steps are retried. The pause grows from 15 seconds to 15 minutes.
 */
import type { Clock } from "../../../ports/clock.ts";
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import type { Wakeup } from "../timers/wakeups.ts";

export interface RemovalStep {
  readonly name: string;
  /** The step begins after all previous steps are done. */
  readonly isAfterAll?: true;
  /** Removes the part. Returns milliseconds if it must run again after that time. If it throws, it is retried. */
  run(): Promise<number | undefined>;
}

export interface RemovalPorts {
  clock: Pick<Clock, "timer">;
  /** The wake-up that calls `wake`. */
  wakeup: Wakeup;
  /** Returns the names of the remaining steps. The list is empty if the actor is not deleted. */
  left(): readonly string[];
  done(name: string): void;
  /** In their order of execution. */
  steps(): readonly RemovalStep[];
}

/** Time limit of one step, in milliseconds. A step that takes longer is retried. */
const STEP_MS = 30_000;
const FIRST_PAUSE_MS = 15_000;
const LAST_PAUSE_MS = 15 * 60_000;

export class Removal {
  #running: Promise<void> | null = null;
  #pause = FIRST_PAUSE_MS;

  constructor(private readonly ports: RemovalPorts) {}

  /** Arms the wake-up. Call it in the transaction that deletes the actor, and `run` after the commit. */
  note(): Promise<void> {
    return this.ports.wakeup.arm(FIRST_PAUSE_MS);
  }

  /** Runs the remaining steps. The wake-up retries failed steps. Never rejects. */
  async run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  /** Starts the remaining steps. Returns the milliseconds until the next call; `null` if all steps are done. */
  wake(): number | null {
    if (this.ports.left().length === 0) return null;
    void this.run();
    this.#pause = Math.min(this.#pause * 2, LAST_PAUSE_MS);
    return this.#pause;
  }

  async #run(): Promise<void> {
    for (const { name, isAfterAll, run } of this.ports.steps()) {
      const left = this.ports.left();
      if (!left.includes(name)) continue;
      if (isAfterAll && left[0] !== name) continue;
      try {
        const again = await withDeadline(this.ports.clock, STEP_MS, run, {
          reason: unanswered(`The removal "${name}"`, STEP_MS),
        });
        if (again === undefined) this.ports.done(name);
        else void this.ports.wakeup.arm(again).catch((error: unknown) => console.error(error));
      } catch (error) {
        console.error(`The removal "${name}" failed; it will be retried:`, error);
      }
    }
  }
}

/** Milliseconds until the SDK stops a destroyed actor. */
const DESTROYED_WITHIN_MS = 1_000;

/**
 * Removes the storage of an actor, unless `isUsed` returns true. No other request runs during the removal. Any caller can address an actor that
 * was not created, so such an actor must leave no storage.
 */
export async function destroyUnused(
  ctx: Pick<DurableObjectState, "blockConcurrencyWhile">,
  destroy: () => Promise<void>,
  isUsed: () => boolean,
): Promise<void> {
  await ctx.blockConcurrencyWhile(async () => {
    if (isUsed()) return;
    await destroy();
    // The SDK stops the actor in a moment. An earlier answer would let the caller reach an actor without tables.
    await scheduler.wait(DESTROYED_WITHIN_MS);
  });
}
