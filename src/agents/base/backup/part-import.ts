/** Imports the file of an actor in parts. Each part is stored in one transaction. The last part makes the actor visible. */
import { z } from "zod";
import type { Clock } from "../../../ports/clock.ts";
import type { ImportPart } from "../../../protocol/data-api.ts";
import type { ExportHeader } from "../../../protocol/memory.ts";
import { defined } from "../../../shared/defined.ts";
import { conflict, invalid } from "../../../shared/errors.ts";
import { deleteValues, dropTables } from "../removal/actor-tables.ts";
import type { ActorStores } from "../storage/schema-upgrade.ts";
import type { Wakeup } from "../timers/wakeups.ts";
import { atLine, checkHeader, checkPart, inLine, parseLine } from "./lines.ts";

/** Milliseconds until a stalled import is removed. */
const ABANDONED_MS = 3_600_000;
/** Time between two attempts to remove a stalled import, in milliseconds. */
const ABANDON_RETRY_MS = 60_000;
const IMPORT = "importing";

export interface ImportedActor extends ActorStores {
  clock: Clock;
  wakeup: Wakeup;
  keys: readonly string[];
  /** Reports whether it exists or was deleted. */
  isTaken(): boolean;
  createTables?(): void;
  removeOutside?(): Promise<unknown>;
  /** Clears cached state after its tables were dropped. */
  forget?(): void;
}

/** An import that has begun, with the values that its lines gave. */
type Begun<Found> = Partial<Found> & {
  next: number;
  /** The time of the last part. */
  at: number;
  attempt?: string;
};

/** Returns the function that stores a line in the transaction of its part. Runs the external steps of the line first. */
type PrepareLine<Found> = (line: Record<string, unknown>) => Promise<(found: Partial<Found>) => void>;

export class PartImport<Found extends object> {
  #removing: Promise<unknown> | null = null;

  constructor(
    private readonly kind: ExportHeader["dramatis"],
    private readonly actor: ImportedActor,
  ) {}

  /**
   * Takes a part. `finish` runs in the transaction of the last part, and returns `null` if a line is missing. Returns the result of `finish`,
   * or `null` before the last part. Throws `CONFLICT`, and `INVALID_INPUT` for an invalid line.
   */
  async take<End>(
    given: ImportPart,
    prepare: PrepareLine<Found>,
    finish: (found: Partial<Found>) => End | null,
  ): Promise<End | null> {
    const { database, keyValue } = this.actor;
    const { from, lines, isLast, attempt } = checkPart(given);
    this.#checkFree();
    if (from === 1) {
      const hadBegun = this.#stored() !== undefined;
      // From here on, an earlier transfer cannot end, and a failure leaves the import open, so its data outside are removed later.
      await this.#begin(attempt, hadBegun);
      if (hadBegun) await this.#removeOutside();
      this.#clear(this.#begun(from, attempt));
    }
    this.#begun(from, attempt);
    const parsed = lines.map((line, index) => atLine(from + index, () => parseLine(line)));
    const changes: ((found: Partial<Found>) => void)[] = [];
    for (const [index, line] of parsed.entries()) {
      try {
        if (from + index === 1) checkHeader(line, this.kind);
        else if (!("end" in line)) {
          const store = await prepare(line);
          changes.push((found) => atLine(from + index, () => store(found)));
        }
      } catch (error) {
        throw inLine(from + index, error);
      }
    }
    const next = from + lines.length;
    return database.transaction(() => {
      // Another transfer may have begun while the lines were prepared.
      this.#checkFree();
      const begun = this.#begun(from, attempt);
      if (from === 1) this.actor.createTables?.();
      for (const change of changes) change(begun);
      keyValue.put(IMPORT, { ...begun, next, at: this.actor.clock.now() });
      const end = isLast && isEnd(parsed.at(-1), next - 1) ? finish(begun) : null;
      if (isLast && end === null)
        throw invalid(`Line ${next}: The file is incomplete. Export the ${this.kind} again.`);
      return end;
    });
  }

  async #begin(attempt: string | undefined, hadBegun: boolean): Promise<void> {
    const { database, keyValue, clock, wakeup } = this.actor;
    const { armed } = database.transaction(() => {
      keyValue.put(IMPORT, { next: 1, at: clock.now(), ...defined({ attempt }) });
      return { armed: wakeup.arm(ABANDONED_MS) };
    });
    try {
      await armed;
    } catch (error) {
      // Without a wake-up, a first import would stay if nobody begins it again.
      if (!hadBegun && this.#stored()?.attempt === attempt) this.#clear();
      throw error;
    }
  }

  /** Ends the import, in the transaction that makes the actor visible. */
  end(): void {
    this.actor.keyValue.delete(IMPORT);
  }

  /** Removes a stalled import. Returns the milliseconds until the next call; `null` without an open import. */
  wake(): number | null {
    const begun = this.#stored();
    if (begun === undefined || this.actor.isTaken()) return null;
    const left = begun.at + ABANDONED_MS - this.actor.clock.now();
    if (left > 0) return left;
    void this.#abandon(begun).catch((error: unknown) => console.error(error));
    return ABANDON_RETRY_MS;
  }

  async #abandon({ next, at }: Begun<Found>): Promise<void> {
    await this.#removeOutside();
    const now = this.#stored();
    if (!this.actor.isTaken() && now?.next === next && now.at === at) this.#clear();
  }

  /** Removes the data outside once for all transfers that wait for it. A second removal could delete data of the newest transfer. */
  async #removeOutside(): Promise<void> {
    this.#removing ??= Promise.resolve(this.actor.removeOutside?.()).finally(() => {
      this.#removing = null;
    });
    await this.#removing;
  }

  #stored(): Begun<Found> | undefined {
    return this.actor.keyValue.get<Begun<Found>>(IMPORT);
  }

  /** Returns the import that this part continues. Throws `CONFLICT`. */
  #begun(from: number, attempt: string | undefined): Begun<Found> {
    const begun = this.#stored();
    if (begun === undefined) throw conflict("No import of this id has begun. Start it with the first line.");
    if (begun.attempt !== attempt)
      throw conflict("Another import of this id has begun. Start the import again.");
    if (begun.next !== from)
      throw conflict(`The import continues with line ${begun.next}, not ${from}. Start the import again.`);
    return begun;
  }

  #checkFree(): void {
    if (!this.actor.isTaken()) return;
    const noun = this.kind === "agent" ? "An agent" : "A conversation";
    throw conflict(`${noun} with this id exists or was deleted. Choose another id.`);
  }

  /** Removes all of an import but its `claim`, or nothing: a part must not find its import without its tables. */
  #clear(claim?: Begun<Found>): void {
    this.actor.database.transaction(() => {
      dropTables(this.actor);
      deleteValues(this.actor, [...this.actor.keys, IMPORT]);
      if (claim !== undefined) this.actor.keyValue.put(IMPORT, claim);
    });
    this.actor.forget?.();
  }
}

function isEnd(line: Record<string, unknown> | undefined, lines: number): boolean {
  return z.strictObject({ end: z.strictObject({ lines: z.literal(lines) }) }).safeParse(line).success;
}
