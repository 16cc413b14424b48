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

  /** Writes all that `body` counts once, at its end. Nothing in it may be rolled back alone. */
  together<Value>(body: () => Value): Value {
    const waiting = { memories: 0, archived: 0 };
    this.#waiting = waiting;
    let value: Value;
    try {
      value = body();
    } finally {
      this.#waiting = null;
    }
    this.#add(waiting);
    return value;
  }

  #add({ memories, archived }: Counts): void {
    if (memories !== 0 || archived !== 0) this.database.run(ADD, memories, archived);
  }
}
