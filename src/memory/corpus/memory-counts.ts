/** The stored counts of an agent's memories. Writing methods run in a transaction. */
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

  /** Counts a change of a memory. `before` is `undefined` for a new memory, `after` for a deleted memory. */
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

  /** Writes all counts of `body` once, at its end. Use `attempt` for a part that may roll back. */
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

  /** Runs `body` and discards its counts if it throws. */
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
