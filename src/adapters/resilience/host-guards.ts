/**
 * What guards the hosts of models: a breaker and a limit of concurrent calls for each provider and host. The state is that
 * of one isolate, shared by everything in it that is given the same guards.
 *
 * BREAKER-5  At most `MAX_HOSTS` hosts are remembered; a host without a recent failure and without calls is forgotten.
 * BREAKER-6  Whoever gives a host less than `PATIENCE_MS` shows nothing by its silence: one tenant's short time limit does not
 *            close the host to the others.
 */
import { z } from "zod";
import type { ModelError } from "../../model/error.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { Clock } from "../../ports/clock.ts";
import { validate } from "../../shared/validation.ts";
import { ModelFailure } from "../errors/model-errors.ts";
import { httpProvider } from "../gateway/http-providers.ts";
import {
  askBreaker,
  type BreakerSettings,
  type BreakerState,
  CLOSED,
  judge,
  type Verdict,
} from "./breaker.ts";
import { type ConcurrencyLimit, ConcurrencyLimiter } from "./limiter.ts";

export interface HostGuardOptions {
  /** Failures in a row that stop calls for a while: 10 within 60 s, for 15 s. `false` = never. */
  breaker?: Partial<BreakerSettings> | false;
  /** Calls of one host at once; absent = any number. `queued` more wait, 100 when absent. */
  concurrency?: (Pick<ConcurrencyLimit, "concurrent"> & Partial<ConcurrencyLimit>) | false;
}

const MAX_HOSTS = 1_000;
/** Milliseconds in which every model server that is well has begun to answer. */
const PATIENCE_MS = 10_000;
/** How often who waits in line looks whether it is its turn, in milliseconds. */
const ASK_AGAIN_MS = 20;

const schema = z.strictObject({
  breaker: z
    .union([
      z.literal(false),
      z.strictObject({
        failures: z.int().min(1).max(1_000).default(10),
        windowMs: z.int().min(1).default(60_000),
        coolDownMs: z.int().min(1).default(15_000),
      }),
    ])
    .prefault({}),
  concurrency: z
    .union([
      z.literal(false),
      z.strictObject({ concurrent: z.int().min(1), queued: z.int().min(0).default(100) }),
    ])
    .default(false),
});

/** What the end of a call shows of its host; `silent` = nothing came in the time that it was given. */
export type CallEnd = Verdict | "silent";

/** The permission to make one call. */
export interface Pass {
  /** Call it once, when the call is over. */
  leave(end: CallEnd): void;
}

export class HostGuards {
  readonly #settings: z.output<typeof schema>;
  readonly #breakers = new Map<string, BreakerState>();
  readonly #limiters = new Map<string, ConcurrencyLimiter>();

  /** Throws `INVALID_INPUT` for options that make no sense. */
  constructor(
    private readonly clock: Pick<Clock, "now" | "sleep">,
    options: HostGuardOptions = {},
  ) {
    this.#settings = validate(schema, options, "/models/resilience", "The configuration of resilience");
  }

  /**
   * Waits until this profile's host may be called. `leaseMs` is more than the call can take. Throws `ModelFailure` where it
   * may not be called now, or the signal's reason.
   */
  async enter(profile: ModelProfile, leaseMs: number, signal: AbortSignal): Promise<Pass> {
    const key = hostKey(profile);
    const release = await this.#slot(key, leaseMs, signal);
    const enteredAt = this.clock.now();
    let isOver = false;
    try {
      const isProbe = this.#admit(key);
      return {
        leave: (end) => {
          if (isOver) return;
          isOver = true;
          const wasPatient = this.clock.now() - enteredAt >= PATIENCE_MS;
          this.#judge(key, isProbe, end === "silent" ? (wasPatient ? "failed" : "unknown") : end);
          release();
        },
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #slot(key: string, leaseMs: number, signal: AbortSignal): Promise<() => void> {
    const { concurrency } = this.#settings;
    if (concurrency === false) return () => undefined;
    const limiter = this.#limiters.get(key) ?? new ConcurrencyLimiter(concurrency, () => this.clock.now());
    this.#limiters.set(key, limiter);
    const slot = limiter.ask(leaseMs);
    const release = () => {
      slot.release();
      if (limiter.isIdle && this.#limiters.get(key) === limiter) this.#limiters.delete(key);
    };
    try {
      while (!slot.take()) await this.clock.sleep(ASK_AGAIN_MS, signal);
      return release;
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Whether the call is a probe. */
  #admit(key: string): boolean {
    const { breaker } = this.#settings;
    if (breaker === false) return false;
    const admission = askBreaker(this.#breakers.get(key) ?? CLOSED, breaker, this.clock.now());
    this.#keep(key, admission.state);
    if (admission.admitted) return admission.isProbe;
    const { retryAfterMs } = admission;
    throw new ModelFailure(
      "transient",
      `The model server failed ${breaker.failures} times in a row. It is called again in ${Math.ceil(retryAfterMs / 1000)} s.`,
      { retryAfterMs },
    );
  }

  #judge(key: string, isProbe: boolean, verdict: Verdict): void {
    const { breaker } = this.#settings;
    if (breaker === false) return;
    const state = this.#breakers.get(key) ?? CLOSED;
    this.#keep(key, judge(state, { isProbe, verdict }, breaker, this.clock.now()));
  }

  #keep(key: string, state: BreakerState): void {
    this.#breakers.delete(key);
    if (state.phase === "closed" && state.failures.length === 0) return;
    this.#breakers.set(key, state);
    const [oldest] = this.#breakers.keys();
    if (this.#breakers.size > MAX_HOSTS && oldest !== undefined) this.#breakers.delete(oldest);
  }
}

/** A host of HTTP with its provider; the provider alone for what is reached otherwise. */
export function hostKey({ provider, baseUrl }: Pick<ModelProfile, "provider" | "baseUrl">): string {
  const url = baseUrl ?? httpProvider(provider)?.defaultBaseUrl;
  return url !== undefined && URL.canParse(url) ? `${provider} ${new URL(url).host}` : provider;
}

/** What the end of a call shows of its host. A refusal shows that it is there. */
export function callEndOf(error: ModelError | undefined): CallEnd {
  if (error === undefined) return "alive";
  switch (error.category) {
    case "network":
      return "failed";
    case "transient":
      return error.status !== undefined && error.status < 500 ? "alive" : "failed";
    case "timeout":
      return error.status === undefined ? "silent" : "failed";
    default:
      return error.status === undefined ? "unknown" : "alive";
  }
}
