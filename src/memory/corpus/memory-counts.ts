/** The numbers of an agent's memories, in a row beside them. Every method that writes is called in a transaction. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { StoredMemory } from "./stored-memory.ts";

const GET = "SELECT memories, archived FROM memory_counts";
const ADD = "UPDATE memory_counts SET memories = memories + ?, archived = archived + ?";

type State = Pick<StoredMemory, "state"> | undefined;
type Counts = { memories: number; archived: number };

export class MemoryCounts {
  #waiting: Counts | null = null;

  constructor(private readonly database: SqlDatabase) {}

  get(): Counts {
    return this.database.all<Counts>(GET)[0] ?? { memories: 0, archived: 0 };
  }

  /** Counts a change of a memory; `undefined` where there was none, or is none any more. */
  changed(before: State, after: State): void {
    const counts = {
      memories: Number(after !== undefined) - Number(before !== undefined),
      archived: Number(after?.state === "archived") - Number(before?.state === "archived"),
    };
    if (this.#waiting === null) this.#add(counts);
    else {
      this.#waiting.memories += counts.memories;
      this.#waiting.archived += counts.archived;
    }
  }

  /** Writes all that `body` counts once, at its end. What may be rolled back alone in it is an `attempt`. */
  together<Value>(body: () => Value): Value {
    this.#waiting = { memories: 0, archived: 0 };
    let value: Value;
    let waiting: Counts;
    try {
      value = body();
      waiting = this.#waiting;
    } finally {
      this.#waiting = null;
    }
    this.#add(waiting);
    return value;
  }

  /** Forgets what `body` has counted where it throws. */
  attempt<Value>(body: () => Value): Value {
    const before = this.#waiting && { ...this.#waiting };
    try {
      return body();
    } catch (error) {
      this.#waiting = before;
      throw error;
    }
  }

  #add({ memories, archived }: Counts): void {
    if (memories !== 0 || archived !== 0) this.database.run(ADD, memories, archived);
  }
}
