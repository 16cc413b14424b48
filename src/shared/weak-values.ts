/** A map that does not keep its values alive, with at most `capacity` of them. The oldest are forgotten first. */
export class WeakValues<Key, Value extends WeakKey> {
  readonly #values = new Map<Key, WeakRef<Value>>();
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Returns a value that was set and has not been collected. */
  get(key: Key): Value | undefined {
    return this.#values.get(key)?.deref();
  }

  set(key: Key, value: Value): void {
    if (this.get(key) === value) return;
    this.#values.delete(key);
    this.#values.set(key, new WeakRef(value));
    const [oldest] = this.#values.keys();
    if (this.#values.size > this.#capacity && oldest !== undefined) this.#values.delete(oldest);
  }
}
