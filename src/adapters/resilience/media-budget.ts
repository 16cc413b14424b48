/**
 * The memory for media in model calls, shared by all callers of an isolate. A request that does not stream its media holds them several
 * times: as bytes, as base64, and in the body.
 *
 * MEDIABUDGET-1  Calls with media hold at most `total` bytes together. A tenant's calls hold at most half of them, or one larger call. The
 *                others wait in the order of `limiter.ts`. A call with at most `SMALL_BYTES` of media never waits. At most `MAX_WAITING`
 *                calls of a tenant wait. Further calls are refused at once.
 * MEDIABUDGET-2  A silent provider holds at most the share of its tenant.
 */
import type { Clock } from "../../ports/clock.ts";
import { DramatisError } from "../../shared/errors.ts";
import { ModelFailure } from "../errors/model-errors.ts";
import { type Claim, Limiter } from "./limiter.ts";

/** Bytes of media in the calls of an isolate that are being sent. */
const MAX_SENDING_BYTES = 12 * 1024 * 1024;
const MAX_WAITING = 256;
/** Bytes of media that need no reservation. */
const SMALL_BYTES = 16 * 1024;

export interface Reservation extends Omit<Claim, "units"> {
  bytes: number;
  /** Ends the wait. */
  signal: AbortSignal;
}

/** The refusal of a call if too many calls of its tenant wait. */
export class TooManyWaiting extends DramatisError {
  constructor() {
    const message = "Too many messages with attachments wait to be sent. Send the message again later.";
    super("UNAVAILABLE", message, { retriable: true });
  }
}

export class MediaBudget {
  readonly #limiter: Limiter;

  constructor(clock: Pick<Clock, "now" | "sleep">, total = MAX_SENDING_BYTES) {
    this.#limiter = new Limiter({ total, perTenant: total / 2, queuedPerTenant: MAX_WAITING }, clock);
  }

  get held(): number {
    return this.#limiter.held;
  }

  /**
   * Reserves bytes once there is room. Returns a function that releases them. Throws the reason of `signal`, and
   * `TooManyWaiting`.
   */
  async reserve({ bytes, signal, ...claim }: Reservation): Promise<() => void> {
    if (bytes <= SMALL_BYTES) return () => undefined;
    try {
      return await this.#limiter.enter({ ...claim, units: bytes }, signal);
    } catch (error) {
      throw error instanceof ModelFailure ? new TooManyWaiting() : error;
    }
  }
}
