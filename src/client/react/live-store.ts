/**
 * State that the components of a page share. It is live while a component uses it.
 *
 * SHARE-2  If all components leave and one returns at once, the work continues. So StrictMode repeats no request and no connection.
 * SHARE-4  Without a component, `refresh` does nothing.
 * SHARE-5  After the last component has left, and after the server has refused the caller, no data stays for the next user of the page.
 */
import type { DramatisClientError } from "../errors.ts";

export abstract class LiveStore<Snapshot extends { error?: DramatisClientError | undefined }> {
  readonly #listeners = new Set<() => void>();
  readonly #empty: Snapshot;
  #snapshot: Snapshot;
  #stop: (() => void) | undefined;

  /** `empty`: the state before the first answer. */
  constructor(empty: Snapshot) {
    this.#empty = this.#snapshot = empty;
  }

  readonly getSnapshot = (): Snapshot => this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#stop ??= this.start();
    return () => {
      this.#listeners.delete(listener);
      queueMicrotask(() => {
        if (this.#listeners.size > 0) return;
        this.#stop?.();
        this.#stop = undefined;
        this.#snapshot = this.#empty;
      });
    };
  };

  /** Reports whether a component uses the state. */
  protected get isUsed(): boolean {
    return this.#listeners.size > 0;
  }

  /** Begins the work. Returns a function that ends it. */
  protected abstract start(): () => void;

  protected change(changes: Partial<Snapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...changes };
    for (const listener of this.#listeners) listener();
  }

  /** Shows the failure of a request. The data stays if it may still be the caller's. */
  protected fail(error: DramatisClientError): void {
    if (isRefusal(error)) this.#snapshot = this.#empty;
    // SAFETY: each state has this member.
    this.change({ error } as Partial<Snapshot>);
  }
}

/** Reports whether the caller may not read the data, or no longer. */
export function isRefusal({ code }: DramatisClientError): boolean {
  return code === "UNAUTHORIZED" || code === "FORBIDDEN" || code === "NOT_FOUND";
}
