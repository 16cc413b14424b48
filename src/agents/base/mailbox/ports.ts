/** The ports of a mailbox. It runs unchanged in a Durable Object and in Node. */
import type { DeadLetterWriter } from "../../../d1/dead-letters.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { KeyValue } from "../../../ports/key-value.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { ActorAddress, Envelope } from "../../../protocol/envelope.ts";
import type { Attempt } from "../../../protocol/mailbox-api.ts";

export interface MailboxPorts {
  database: SqlDatabase;
  keyValue: KeyValue;
  clock: Clock;
  /** Throws `UNAVAILABLE` if a newer release wrote the actor's storage. */
  checkStorage(): void;
  /** Returns this actor's address; `null` if its name is not `{tenant}:{id}`. */
  self(): ActorAddress | null;
  /** Calls the receiver once and returns its answer, unchecked. Rejects without an answer. */
  deliver(envelope: Envelope, attempt: Attempt): Promise<unknown>;
  /**
   * Arms the wake-up that calls `Mailbox.wake` in at most `milliseconds`, also after a crash. Its writes commit with the current
   * transaction. Throws if it cannot write. Resolves when the platform's alarm is set.
   */
  arm(milliseconds: number): Promise<void>;
  /** Resolves when the wake-ups of the work that envelopes have started are armed. */
  whenArmed(): Promise<void>;
  /** Returns the directory that lists the tenant's dead letters, if any. */
  directory(): DeadLetterWriter | null;
}
