/** The ports of an agent's memory. */
import type { Clock } from "../../ports/clock.ts";
import type { Ids } from "../../ports/ids.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { ObjectStore } from "../../ports/object-store.ts";
import type { ActorDatabase } from "../../ports/sql-database.ts";
import type { MemoryIndex } from "./memory-index.ts";

export interface CorpusPorts {
  database: ActorDatabase;
  keyValue: KeyValue;
  clock: Pick<Clock, "now">;
  ids: Ids;
  index: MemoryIndex;
  /** The store of long texts, or `null` if the application has no object store. */
  objects(): ObjectStore | null;
  /** Throws `NOT_FOUND` if the agent was never created. */
  agent(): { id: string; tenant: string };
  /** Arms the wake-up that brings the copies up to date, in the transaction. Resolves when the wake-up is armed. */
  noted(): Promise<void>;
  /** Starts to bring the copies up to date, after the commit. */
  committed(): void;
}
