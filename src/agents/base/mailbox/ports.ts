/** What a mailbox needs from outside. It runs unchanged in a Durable Object and in Node. */
import type { DeadLetterPublication } from "../../../d1/dead-letters.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { KeyValue } from "../../../ports/key-value.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { ActorAddress, Envelope } from "../../../protocol/envelope.ts";
import type { Attempt } from "../../../protocol/mailbox-api.ts";

export interface MailboxPorts {
  database: SqlDatabase;
  keyValue: KeyValue;
  clock: Clock;
  /** Throws `UNAVAILABLE` while the actor's storage is of a newer release: nothing may be written to it then. */
  checkStorage(): void;
  /** This actor's address; `null` for one that has none, because its name is not `{tenant}:{id}`. */
  self(): ActorAddress | null;
  /** Calls the receiver once, and gives its answer as it came. Rejects when there was none. */
  deliver(envelope: Envelope, attempt: Attempt): Promise<unknown>;
  /**
   * Sees to it that `Mailbox.wake` is called in at most `milliseconds`, also after a crash. What it writes commits with
   * the transaction it is called in, or throws at once; the promise resolves when the platform's alarm is set.
   */
  arm(milliseconds: number): Promise<void>;
  /** Where dead letters are published for their tenant; `null` where they are not. */
  directory(): DeadLetterPublication | null;
}
