/**
 * Guards the servers of models: a concurrency limit for each provider and host, and a breaker for each model and account. The state belongs
 * to one isolate. All gateways with the same guards share it.
 *
 * BREAKER-5  The guards keep at most `MAX_BREAKERS` breakers, the most recently used. Breakers without recent failures are dropped.
 * BREAKER-6  A timeout before `PATIENCE_MS` is not a failure of the model, so a short time limit of one tenant cannot close the model to
 *            others.
 * BREAKER-7  A failure with one model and key leaves other keys and other models of the host available. Guards store a fingerprint instead
 *            of the key.
 */
import { z } from "zod";
import type { ModelError } from "../../model/error.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { Clock } from "../../ports/clock.ts";
import { validate } from "../../shared/validation.ts";
import { ModelFailure } from "../errors/model-errors.ts";
import { httpProvider } from "../gateway/http-providers.ts";
import { keyNameOf } from "../gateway/trusted-hosts.ts";
import {
  admitCall,
  type BreakerSettings,
  type BreakerState,
  CLOSED,
  record,
  type Verdict,
} from "./breaker.ts";
import { Limiter } from "./limiter.ts";

export interface ConcurrencyLimit {
  /** Maximum number of concurrent calls. */
  concurrent: number;
  /** Maximum number of waiting calls. A tenant's first call may wait beyond it. */
  queued: number;
}

export interface HostGuardOptions {
  /**
   * Consecutive failures of a model, with one key, that stop calls for a while: 10 within 60 s, for 15 s. `false` disables
   * the breaker.
   */
  breaker?: Partial<BreakerSettings> | false;
  /** Limit of concurrent calls to one host. Unlimited by default. `queued` further calls may wait (default: 100). */
  concurrency?: (Pick<ConcurrencyLimit, "concurrent"> & Partial<ConcurrencyLimit>) | false;
}

/** Breakers of one isolate. Beyond this number, the least recently used breaker is dropped. */
const MAX_BREAKERS = 1_000;
/** Every healthy model server begins to answer within this time, in milliseconds. */
const PATIENCE_MS = 10_000;

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

/** The health of a model, by the end of one call; `silent` after a timeout without any response. */
export type CallEnd = Verdict | "silent";

/** Permission to make one call. */
export interface Pass {
  /** Ends the call. Further calls of `leave` have no effect. */
  leave(end: CallEnd): void;
}

/** A call that requests permission. */
export interface Entry {
  /** Calls of different tenants take turns. Calls without a tenant share a turn. */
  tenant?: string;
  /** Milliseconds. Exceeds the longest duration of the call. */
  leaseMs: number;
  /** Identifies the key that the call uses. Default: the name of the key's variable. */
  account?: string | undefined;
  /** Ends the wait. */
  signal: AbortSignal;
}

export class HostGuards {
  readonly #settings: z.output<typeof schema>;
  readonly #breakers = new Map<string, BreakerState>();
  readonly #limiters = new Map<string, Limiter>();

  /** Throws `INVALID_INPUT` for invalid options. */
  constructor(
    private readonly clock: Pick<Clock, "now" | "sleep">,
    options: HostGuardOptions = {},
  ) {
    this.#settings = validate(schema, options, "/models/resilience", "The configuration of resilience");
  }

  /**
   * Waits for permission to call this profile's model. Throws `ModelFailure` if the model must not be called now, or the
   * signal's reason.
   */
  async enter(profile: ModelProfile, { account, ...entry }: Entry): Promise<Pass> {
    const key = breakerKey(profile, account);
    const release = await this.#slot(hostKey(profile), entry);
    const enteredAt = this.clock.now();
    let isOver = false;
    try {
      const isProbe = this.#admit(key);
      return {
        leave: (end) => {
          if (isOver) return;
          isOver = true;
          const wasPatient = this.clock.now() - enteredAt >= PATIENCE_MS;
          this.#record(key, isProbe, end === "silent" ? (wasPatient ? "failed" : "unknown") : end);
          release();
        },
      };
    } catch (error) {
      release();
      throw error;
    }
  }

  async #slot(key: string, { tenant = "", leaseMs, signal }: Entry): Promise<() => void> {
    const { concurrency } = this.#settings;
    if (concurrency === false) return () => undefined;
    const { concurrent: total, queued } = concurrency;
    const limiter = this.#limiters.get(key) ?? new Limiter({ total, queued }, this.clock);
    this.#limiters.set(key, limiter);
    const forget = () => {
      if (limiter.isIdle && this.#limiters.get(key) === limiter) this.#limiters.delete(key);
    };
    try {
      const release = await limiter.enter({ tenant, leaseMs }, signal);
      return () => {
        release();
        forget();
      };
    } catch (error) {
      forget();
      throw error;
    }
  }

  /** Admits a call, or throws `ModelFailure`. Reports whether the call is a probe. */
  #admit(key: string): boolean {
    const { breaker } = this.#settings;
    if (breaker === false) return false;
    const admission = admitCall(this.#breakers.get(key) ?? CLOSED, breaker, this.clock.now());
    this.#keep(key, admission.state);
    if (admission.admitted) return admission.isProbe;
    const { retryAfterMs } = admission;
    throw new ModelFailure(
      "transient",
      `The model failed ${breaker.failures} times in a row. It will be called again in ${Math.ceil(retryAfterMs / 1000)} s.`,
      { retryAfterMs },
    );
  }

  #record(key: string, isProbe: boolean, verdict: Verdict): void {
    const { breaker } = this.#settings;
    if (breaker === false) return;
    const state = this.#breakers.get(key) ?? CLOSED;
    this.#keep(key, record(state, { isProbe, verdict }, breaker, this.clock.now()));
  }

  #keep(key: string, state: BreakerState): void {
    this.#breakers.delete(key);
    if (state.phase === "closed" && state.failures.length === 0) return;
    this.#breakers.set(key, state);
    const [oldest] = this.#breakers.keys();
    if (this.#breakers.size > MAX_BREAKERS && oldest !== undefined) this.#breakers.delete(oldest);
  }
}

/** Returns the key of a host's limit: provider and HTTP host, or the provider alone if it is not reached over HTTP. */
export function hostKey({ provider, baseUrl }: Pick<ModelProfile, "provider" | "baseUrl">): string {
  const url = baseUrl ?? httpProvider(provider)?.defaultBaseUrl;
  return url !== undefined && URL.canParse(url) ? `${provider} ${new URL(url).host}` : provider;
}

function breakerKey(profile: ModelProfile, account = keyNameOf(profile)): string {
  return JSON.stringify([hostKey(profile), profile.modelId, account]);
}

/** Derives the health of a model from the end of a call. A refusal proves that the model is alive. */
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
