/**
 * Tells the directory which dead letters an actor has. The actor owns the fact; the directory follows.
 *
 * DEAD-2  A change is noted in the transaction that makes it, and the note goes only when the directory has taken the
 *         state it is about: a directory that is down for a while learns of everything later.
 */
import { deadLetterView } from "./dead-letter.ts";
import { PUBLISH_RETRY_MS } from "./limits.ts";
import type { DeadLetterPublication, MailboxPorts } from "./ports.ts";
import type { MailboxStore } from "./store.ts";

/** Operations that the directory is told of in one go. */
const BATCH = 50;

export class Publisher {
  #marks = 0;
  #running = false;
  #behind: boolean | null = null;

  constructor(
    private readonly ports: MailboxPorts,
    private readonly store: MailboxStore,
  ) {}

  /** Call it in the transaction that changes a dead letter, and `publish` after the commit. */
  note(operationId: string): void {
    if (this.ports.directory() === null) return;
    this.store.markUnpublished(operationId, `${this.ports.clock.now()}:${++this.#marks}`);
    this.#behind = true;
    this.ports.arm(PUBLISH_RETRY_MS).catch((error: unknown) => console.error(error));
  }

  /** Whether the directory is known, or suspected after a wake, to be behind. */
  get behind(): boolean {
    this.#behind ??= this.store.unpublished(1).length > 0;
    return this.#behind;
  }

  /** Tells the directory what it does not know yet. What does not work is left to a later wake-up; never rejects. */
  async publish(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    try {
      const [directory, self] = [this.ports.directory(), this.ports.self()];
      if (directory !== null && self !== null && this.behind) await this.#publishTo(directory, self.tenant);
    } catch (error) {
      console.error("The directory could not be told of a dead letter:", error);
    } finally {
      this.#running = false;
    }
  }

  async #publishTo(directory: DeadLetterPublication, tenant: string): Promise<void> {
    for (;;) {
      const notes = this.store.unpublished(BATCH);
      this.#behind = notes.length > 0;
      if (!this.#behind) return;
      for (const [operationId, mark] of notes) {
        const letter = this.store.deadLetter(operationId);
        if (letter === undefined) await directory.remove(tenant, operationId);
        else await directory.put(tenant, deadLetterView(letter));
        this.store.published(operationId, mark);
      }
    }
  }
}
