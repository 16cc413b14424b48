/**
 * The copy of an actor's dead letters in the directory. The actor owns the letters; the directory follows.
 *
 * DEAD-2  The transaction of a change also notes it. The note is deleted only after the directory has taken the change, so a directory
 *         catches up after an outage.
 * DEAD-3  Without a directory there is no wake-up. A failed put is retried as PUB-3 states. A rejected letter does not delay other letters.
 */
import type { DeadLetterWriter } from "../../../d1/dead-letters.ts";
import { Copy } from "../copies/copy.ts";
import { deadLetterView } from "./dead-letter.ts";
import type { MailboxPorts } from "./ports.ts";
import type { MailboxStore } from "./store.ts";

/** Notes that are read at once. */
const BATCH = 50;
/** Failures in one attempt that count as an outage of the directory. */
const MAX_FAILURES = 10;

export class DeadLetterCopy {
  #notes = 0;
  readonly #copy: Copy;

  constructor(
    private readonly ports: MailboxPorts,
    private readonly store: MailboxStore,
  ) {
    this.#copy = new Copy({
      clock: ports.clock,
      directory: () => this.#target(),
      put: ({ directory, tenant }) => this.#put(directory, tenant),
      mayBeBehind: () => store.unpublished(1).length > 0,
      // The mailbox shares this wake-up, so do not disarm it.
      wakeup: { arm: (milliseconds) => ports.arm(milliseconds), disarm: () => undefined },
    });
  }

  /** Notes that a letter has changed. Call it in the transaction that changes it, and `publish` after the commit. */
  note(operationId: string): void {
    if (this.ports.directory() === null) return;
    this.store.markUnpublished(operationId, `${this.ports.clock.now()}:${++this.#notes}`);
    this.#copy.note().catch((error: unknown) => console.error(error));
  }

  /** As `Copy.publish`. */
  publish(): void {
    void this.#copy.publish();
  }

  /** As `Copy.wake`. */
  wake(): number | null {
    return this.#copy.wake();
  }

  #target() {
    const [directory, self] = [this.ports.directory(), this.ports.self()];
    return directory === null || self === null ? null : { directory, tenant: self.tenant };
  }

  /** Puts each noted letter, or removes it if it is no longer dead. Throws after a failure. */
  async #put(directory: DeadLetterWriter, tenant: string): Promise<void> {
    const failed = new Set<string>();
    const next = () => this.store.unpublished(BATCH + failed.size).filter(([id]) => !failed.has(id));
    for (let notes = next(); notes.length > 0 && failed.size < MAX_FAILURES; notes = next()) {
      for (const [operationId, mark] of notes) {
        if (failed.size >= MAX_FAILURES) break;
        try {
          const letter = this.store.deadLetter(operationId);
          if (letter === undefined) await directory.remove(tenant, operationId);
          else await directory.put(tenant, deadLetterView(letter));
          this.store.published(operationId, mark);
        } catch (error) {
          failed.add(operationId);
          console.error("A dead letter could not be published:", error);
        }
      }
    }
    if (failed.size > 0) throw new Error(`${failed.size} dead letters could not be published.`);
  }
}
