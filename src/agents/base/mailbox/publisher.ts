/**
 * Tells the directory which dead letters an actor has. The actor owns the fact; the directory follows.
 *
 * DEAD-2  A change is noted in the transaction that makes it, and the note goes only when the directory has taken the
 *         state it is about: a directory that is down for a while learns of everything later.
 * DEAD-3  Without a directory nobody is woken; one that fails is tried again after 15 s, and then twice as long each time,
 *         up to 15 minutes. What it does not take keeps nothing else from it.
 */

import type { DeadLetterPublication } from "../../../d1/dead-letters.ts";
import { deadLetterView } from "./dead-letter.ts";
import { MAX_PUBLISH_RETRY_MS, PUBLISH_RETRY_MS } from "./limits.ts";
import type { MailboxPorts } from "./ports.ts";
import type { MailboxStore } from "./store.ts";

/** Operations that the directory is told of in one go. */
const BATCH = 50;
/** So many failures in one go are the directory's, not those of single letters. */
const MAX_FAILURES = 10;

export class Publisher {
  #marks = 0;
  #running = false;
  #behind: boolean | null = null;
  /** Times in a row that something was left over. */
  #failures = 0;
  #retryAt = 0;

  constructor(
    private readonly ports: MailboxPorts,
    private readonly store: MailboxStore,
  ) {}

  /** Call it in the transaction that changes a dead letter, and `publish` after the commit. */
  note(operationId: string): void {
    if (this.ports.directory() === null) return;
    this.store.markUnpublished(operationId, `${this.ports.clock.now()}:${++this.#marks}`);
    this.#behind = true;
    this.#retryAt = 0;
    this.ports.arm(PUBLISH_RETRY_MS).catch((error: unknown) => console.error(error));
  }

  /** Publishes what is due. Answers after how many milliseconds to come again; `null` when there is nothing to tell. */
  wake(): number | null {
    if (this.#target() === null || !this.#isBehind()) return null;
    const wait = this.#retryAt - this.ports.clock.now();
    if (wait > 0) return wait;
    void this.publish();
    return this.#delay();
  }

  /** Tells the directory what it does not know yet. What does not work is left to a later wake-up; never rejects. */
  async publish(): Promise<void> {
    if (this.#running || this.ports.clock.now() < this.#retryAt) return;
    this.#running = true;
    try {
      const target = this.#target();
      if (target !== null && this.#isBehind()) await this.#publishTo(target.directory, target.tenant);
    } catch (error) {
      console.error("The directory could not be told of dead letters:", error);
    } finally {
      this.#running = false;
    }
  }

  #target(): { directory: DeadLetterPublication; tenant: string } | null {
    const [directory, self] = [this.ports.directory(), this.ports.self()];
    return directory === null || self === null ? null : { directory, tenant: self.tenant };
  }

  /** Whether the directory is known, or suspected after a wake, to be behind. */
  #isBehind(): boolean {
    this.#behind ??= this.store.unpublished(1).length > 0;
    return this.#behind;
  }

  #delay(): number {
    return Math.min(PUBLISH_RETRY_MS * 2 ** this.#failures, MAX_PUBLISH_RETRY_MS);
  }

  async #publishTo(directory: DeadLetterPublication, tenant: string): Promise<void> {
    const startedAt = this.ports.clock.now();
    const failed = new Set<string>();
    while (failed.size < MAX_FAILURES) {
      const notes = this.store.unpublished(BATCH + failed.size);
      this.#behind = notes.length > 0;
      const next = notes.filter(([operationId]) => !failed.has(operationId));
      if (next.length === 0) break;
      for (const [operationId, mark] of next) {
        if (failed.size >= MAX_FAILURES) break;
        if (await this.#tell(directory, tenant, operationId)) this.store.published(operationId, mark);
        else failed.add(operationId);
      }
    }
    if (failed.size === 0) {
      this.#failures = 0;
      return;
    }
    this.#retryAt = startedAt + this.#delay();
    this.#failures += 1;
  }

  async #tell(directory: DeadLetterPublication, tenant: string, operationId: string): Promise<boolean> {
    const letter = this.store.deadLetter(operationId);
    try {
      if (letter === undefined) await directory.remove(tenant, operationId);
      else await directory.put(tenant, deadLetterView(letter));
      return true;
    } catch (error) {
      console.error("The directory could not be told of a dead letter:", error);
      return false;
    }
  }
}
