/**
 * Tells the directory which dead letters an actor has. The actor owns the fact; the directory follows.
 *
 * DEAD-2  A change is noted in the transaction that makes it, and the note goes only when the directory has taken the
 *         state it is about: a directory that is down for a while learns of everything later.
 */
import { deadLetterView } from "./dead-letter.ts";
import { PUBLISH_RETRY_MS } from "./limits.ts";
import type { MailboxPorts } from "./ports.ts";
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
  }

  /** Whether the directory is known, or suspected after a wake, to be behind. */
  get behind(): boolean {
    this.#behind ??= this.store.unpublished(1).length > 0;
    return this.#behind;
  }

  /** Tells the directory what it does not know yet; what does not work is tried again by a later wake-up. */
  async publish(): Promise<void> {
    const [directory, self] = [this.ports.directory(), this.ports.self()];
    if (this.#running || directory === null || self === null || !this.behind) return;
    this.#running = true;
    try {
      for (;;) {
        const notes = this.store.unpublished(BATCH);
        this.#behind = notes.length > 0;
        if (!this.#behind) return;
        for (const [operationId, mark] of notes) {
          const letter = this.store.deadLetter(operationId);
          if (letter === undefined) await directory.remove(self.tenant, operationId);
          else await directory.put(self.tenant, deadLetterView(letter));
          this.store.published(operationId, mark);
        }
      }
    } catch (error) {
      console.error("The directory could not be told of a dead letter:", error);
      await this.ports.arm(PUBLISH_RETRY_MS);
    } finally {
      this.#running = false;
    }
  }
}
