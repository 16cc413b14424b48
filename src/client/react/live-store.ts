/**
 * State that the components of a page share. It is live while a component uses it.
 *
 * SHARE-2  If all components leave and one returns at once, the work continues. So StrictMode repeats no request and no connection.
 */
export abstract class LiveStore<Snapshot extends object> {
  readonly #listeners = new Set<() => void>();
  #snapshot: Snapshot;
  #stop: (() => void) | undefined;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
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
      });
    };
  };

  /** Begins the work. Returns a function that ends it. */
  protected abstract start(): () => void;

  protected change(changes: Partial<Snapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...changes };
    for (const listener of this.#listeners) listener();
  }
}
