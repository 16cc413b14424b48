/**
 * The removal of everything that a deleted actor has stored: in its own database, in the directory, and as objects. The actor itself is
 * gone for everybody when its deletion commits. This job follows, and only a tombstone stays.
 *
 * REMOVE-1  The steps that are left are stored with the deletion. A crash at any time, or a store that fails or does not answer, delays its
 *           own step and those that need it, and loses none. A step that is silent for 30 seconds counts as failed.
 * REMOVE-2  A step may run twice: it empties what is there.
 * REMOVE-3  Failed steps are tried again after 15 seconds at first, and after 15 minutes at most.
 */
import type { Clock } from "../../../ports/clock.ts";
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import type { Wakeup } from "../timers/wakeups.ts";

/** A part of the removal. */
export interface RemovalStep {
  readonly name: string;
  /** It begins when all steps before it are done. */
  readonly isAfterAll?: true;
  /** Removes the part. Throws to be tried again. Returns the milliseconds after which to try again, where it is too early. */
  run(): Promise<number | undefined>;
}

export interface RemovalPorts {
  clock: Pick<Clock, "timer">;
  /** The wake-up that calls `wake`. */
  wakeup: Wakeup;
  /** Returns the names of the steps that are left; none where the actor is not deleted. */
  left(): readonly string[];
  /** Notes that a step is done. */
  done(name: string): void;
  /** In the order in which they begin. */
  steps(): readonly RemovalStep[];
}

/** Milliseconds of one step. What it does after that is done again. */
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

  /** Runs the steps that are left. Leaves those that fail to the wake-up; never rejects. */
  async run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  /** Starts what is left. Returns the milliseconds until the next call; `null` when nothing is left. */
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
