/**
 * The memory for media in model calls, which all callers of an isolate share. A request holds media that it does not stream
 * several times: as bytes, as base64, and in the body.
 *
 * MEDIABUDGET-1  Calls with media hold at most `total` bytes of media together, and those of one tenant at most half of
 *                them, or one larger call. The others wait, as `limiter.ts` orders them. A call with at most `SMALL_BYTES` of
 *                media never waits.
 * MEDIABUDGET-2  A silent provider holds no more than the share of its tenant.
 */
import type { Clock } from "../../ports/clock.ts";
import { type Claim, Limiter } from "./limiter.ts";

/** Bytes of media in the calls of an isolate that are being sent. */
const MAX_SENDING_BYTES = 12 * 1024 * 1024;
/** Bytes of media that need no reservation. */
const SMALL_BYTES = 16 * 1024;

export interface Reservation extends Omit<Claim, "units"> {
  bytes: number;
  /** Ends the wait. */
  signal: AbortSignal;
}

export class MediaBudget {
  readonly #limiter: Limiter;

  constructor(clock: Pick<Clock, "now" | "sleep">, total = MAX_SENDING_BYTES) {
    this.#limiter = new Limiter({ total, perTenant: total / 2 }, clock);
  }

  /** The bytes that are reserved. */
  get held(): number {
    return this.#limiter.held;
  }

  /** Reserves bytes once there is room. Returns a function that releases them. Throws the reason of `signal`. */
  async reserve({ bytes, signal, ...claim }: Reservation): Promise<() => void> {
    return bytes <= SMALL_BYTES ? () => undefined : this.#limiter.enter({ ...claim, units: bytes }, signal);
  }
}
