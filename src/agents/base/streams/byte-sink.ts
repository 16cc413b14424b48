/** The written side of a stream of bytes to a client: each write may find that the client has left, and may call `pull`. */
import type { Clock } from "../../../ports/clock.ts";

type Controller = ReadableStreamDefaultController<Uint8Array>;

export class ByteSink {
  #controller: Controller | undefined;
  #isWriting = false;
  #writtenAt: number;

  /** `leave` is called when the stream has ended or its client has left. Repeating it must do no harm. */
  constructor(
    private readonly clock: Pick<Clock, "now">,
    private readonly leave: () => void,
  ) {
    this.#writtenAt = clock.now();
  }

  /** Milliseconds since the epoch at the last write, or at the beginning. */
  get writtenAt(): number {
    return this.#writtenAt;
  }

  /** Bytes that the stream has room for; negative if it holds more. */
  get room(): number {
    return this.#controller?.desiredSize ?? 0;
  }

  open(controller: Controller): void {
    this.#controller = controller;
  }

  /** Runs what writes. If it throws, the client has left or the content cannot be read, and the stream ends. */
  attempt(write: () => void): void {
    // A write may call `pull` before it returns.
    if (this.#isWriting) return;
    this.#isWriting = true;
    try {
      write();
    } catch (error) {
      this.leave();
      this.#controller?.error(error);
    } finally {
      this.#isWriting = false;
    }
  }

  write(bytes: Uint8Array): void {
    this.#writtenAt = this.clock.now();
    this.#controller?.enqueue(bytes);
  }

  end(error?: Error): void {
    this.leave();
    if (error === undefined) this.#controller?.close();
    else this.#controller?.error(error);
  }
}
