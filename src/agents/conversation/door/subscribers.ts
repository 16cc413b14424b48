/** The subscribers of a conversation, each as a listener. */
import type { Frame } from "../../../protocol/frames.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { MAX_SUBSCRIBERS } from "./limits.ts";

export type Listener = (frames: readonly Frame[]) => void;

export class Subscribers {
  /** Listeners with the time of their expiry. */
  readonly #listeners = new Map<Listener, number>();

  /** `onExpiring` gets a new listener's expiry. Publish at expiry, even an empty batch, so that the listener ends. */
  constructor(private readonly onExpiring: (at: number) => void) {}

  /** The next expiry; `Infinity` if no listener expires. */
  get nextExpiry(): number {
    return Math.min(...this.#listeners.values());
  }

  /** Throws `RATE_LIMITED` if there are `MAX_SUBSCRIBERS` streams, beside the listener that serves all WebSockets. */
  checkRoom(): void {
    if (this.#listeners.size <= MAX_SUBSCRIBERS) return;
    // Streams whose readers have left end now.
    this.publish([]);
    throw tooManySubscribers();
  }

  add(listener: Listener, expiresAt = Infinity): void {
    this.#listeners.set(listener, expiresAt);
    if (expiresAt !== Infinity) this.onExpiring(expiresAt);
  }

  /** Collects the frames that are published while `body` runs, which gets the growing list. */
  async collect<Value>(body: (frames: readonly Frame[]) => Promise<Value>): Promise<Value> {
    const frames: Frame[] = [];
    const listener: Listener = (published) => frames.push(...published);
    this.add(listener);
    try {
      return await body(frames);
    } finally {
      this.remove(listener);
    }
  }

  remove(listener: Listener): void {
    this.#listeners.delete(listener);
  }

  /** Calls every listener. One that throws delays neither the others nor the effects of a commit. */
  publish(frames: readonly Frame[]): void {
    for (const listener of this.#listeners.keys()) {
      try {
        listener(frames);
      } catch (error) {
        console.error(error);
      }
    }
  }
}

/** Returns the error for one more subscriber than `MAX_SUBSCRIBERS`. */
export function tooManySubscribers(): DramatisError {
  const message = `At most ${MAX_SUBSCRIBERS} subscribers may follow a conversation at once; try again later.`;
  return new DramatisError("RATE_LIMITED", message, { retriable: true });
}
