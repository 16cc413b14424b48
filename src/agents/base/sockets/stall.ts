/** One reader in the outflow of its isolate. Decides which frames it may get now, and cuts off a reader that makes no progress. */
import type { Clock } from "../../../ports/clock.ts";
import { CHECK_MS, type Outflow, stallMs } from "./outflow.ts";

export interface StallPorts {
  outflow: Outflow;
  clock: Pick<Clock, "now" | "timer">;
}

interface Reader {
  /** Returns the length that was sent and may be unread. */
  held(): number;
  /** Returns the start of the current hold; now by default. */
  since?(): number;
  /** The id of a connection that outlives the actor's memory. */
  connection?: string;
  /** Length that the reader may hold forever. */
  spared?: number;
  /** Sends the frames that fit now. */
  advance(): void;
  /** Ends a reader that made no progress for too long. */
  cut(): void;
}

export class Stall {
  /** Length of the frame that was refused last, until it is admitted. */
  #refused = 0;
  #progressAt = 0;
  #stopTimer: (() => void) | undefined;

  /** The key of the reader in the outflow. It has no reference to the reader (OUTFLOW-3). */
  readonly #key = {};

  constructor(
    private readonly ports: StallPorts,
    private readonly reader: Reader,
  ) {}

  /** Reports whether the reader may get a frame of this length now. */
  admits(length: number): boolean {
    const isAdmitted = this.fits(length);
    this.#refused = isAdmitted ? 0 : length;
    return isAdmitted;
  }

  /** As `admits`, for a frame that is not sent again. */
  fits(length: number): boolean {
    const { outflow, clock } = this.ports;
    return outflow.admits(this.#key, this.reader.held(), length, clock.now());
  }

  /** Reports whether there is room for the frame that was refused. Until then it need not be read again. */
  hasRoom(): boolean {
    return this.admits(this.#refused);
  }

  /** Records that the reader holds more or less than before. */
  note(): void {
    const { outflow, clock } = this.ports;
    const { connection } = this.reader;
    outflow.note(this.#key, this.reader.held(), this.reader.since?.() ?? clock.now(), connection);
  }

  /** Records that the reader has taken something. */
  progress(): void {
    this.#progressAt = this.ports.clock.now();
  }

  /** Checks the reader periodically while frames wait for it. */
  watch(isWaiting: boolean): void {
    if (!isWaiting) this.#stop();
    else if (this.#stopTimer === undefined) {
      this.progress();
      this.#look();
    }
  }

  /** Ends the checks. Unless `isClosed`, the reader's length still counts for a while. */
  end(isClosed: boolean): void {
    this.#stop();
    if (isClosed) this.ports.outflow.free(this.#key, this.reader.connection);
  }

  #look(): void {
    const { clock } = this.ports;
    const { spared = 0 } = this.reader;
    this.#stopTimer = clock.timer(CHECK_MS, () => {
      const held = this.reader.held();
      if (held > spared && clock.now() - this.#progressAt > stallMs(held)) return this.reader.cut();
      this.#look();
      this.reader.advance();
    });
  }

  #stop(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }
}
