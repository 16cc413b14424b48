/**
 * A gateway that owns its attempts: it retries, falls back to the next model and reports one outcome. For callers with attempts that need
 * not survive a crash. Conversations own durable attempts instead: `agents/conversation/core/planning/model-failure.ts`.
 *
 * RESIL-7  Each request ends with one outcome, the last delta. If the consumer leaves before it, the outcome is only reported.
 * RESIL-8  A `reset` delta withdraws the output of a failed attempt, before the next attempt or model.
 * RESIL-9  After an abort, or after the consumer has left, the request is canceled without a retry.
 */
import type { RequestOutcome } from "../../model/call-record.ts";
import { costOf } from "../../model/cost.ts";
import type { ModelError } from "../../model/error.ts";
import type { ModelGateway, ModelRequest, RequestTrace } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { ModelDelta, RateLimitFeedback } from "../../model/reply.ts";
import type { TokenUsage } from "../../model/usage.ts";
import type { Clock } from "../../ports/clock.ts";
import { Deadline } from "../../ports/deadline.ts";
import { defined } from "../../shared/defined.ts";
import { hasCode } from "../../shared/errors.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import type { JsonObject } from "../../shared/json.ts";
import { modelError, thrownError } from "../errors/model-errors.ts";
import { type AttemptEnd, type GuardedGatewayOptions, runAttempt } from "./guarded-gateway.ts";
import { type Classifier, classified, nextStep } from "./next-step.ts";
import { completeResilience, DEFAULT_CLIENT, type ResilienceProfile, requestDeadline } from "./profile.ts";
import { type MetricsSink, reportMetrics, requestInfo } from "./telemetry.ts";

export type ResilientDelta =
  | ModelDelta
  /** Withdraws all deltas so far: another attempt begins. */
  | { type: "reset" }
  /** The last delta, with the profile of the last tried model. */
  | { type: "outcome"; outcome: RequestOutcome; profile: ModelProfile };

/** One logical request. */
export interface ResilientRequest {
  /** The models to try, in order. */
  profiles: readonly [ModelProfile, ...ModelProfile[]];
  /** Builds the request in the format of the profile's provider. Throws `UNSUPPORTED` for unsupported content. */
  body: (profile: ModelProfile) => JsonObject;
  context: CallContext;
  trace?: Omit<RequestTrace, "attempt">;
  /** Overrides the gateway's own settings, field by field. */
  resilience?: Partial<ResilienceProfile>;
  /** The caller's own deadline, in milliseconds since the epoch. */
  deadline?: number;
}

export interface ResilientGatewayOptions extends GuardedGatewayOptions {
  clock: Clock;
  /** Overrides `DEFAULT_CLIENT`, field by field. */
  resilience?: Partial<ResilienceProfile>;
  classify?: Classifier;
  metrics?: MetricsSink;
  /** The first half of span names. Default: `dramatis`. */
  client?: string;
  /** The source of jitter, from 0 to below 1. Default: `Math.random`. */
  random?: () => number;
}

export interface ResilientGateway {
  /** Never throws: a failed request yields one `error` delta before its outcome. */
  stream(request: ResilientRequest, signal: AbortSignal): AsyncIterable<ResilientDelta>;
}

/**
 * Adds retries and fallbacks to a gateway that makes one attempt per call, such as `createModelGateway`'s.
 *
 * @example createResilientGateway(createModelGateway(ports), { clock, ids, guards })
 */
export function createResilientGateway(
  gateway: ModelGateway,
  options: ResilientGatewayOptions,
): ResilientGateway {
  return { stream: (request, signal) => new LogicalCall(gateway, options, request, signal).run() };
}

interface Failure {
  error: ModelError;
  stopped: boolean;
}

interface Candidate {
  profile: ModelProfile;
  /** Attempts so far. */
  failed: number;
  /** Milliseconds since the epoch. */
  from: number;
}

class LogicalCall {
  readonly #requestId: string;
  readonly #startedAt: number;
  #attempts = 0;
  #status: number | undefined;
  #rateLimit: RateLimitFeedback | undefined;
  #usage: TokenUsage | undefined;
  /** The current attempt has yielded deltas that a retry must withdraw. */
  #streamed = false;
  #last: Pick<ModelRequest, "profile" | "body">;
  #isComplete = false;
  #isReported = false;

  constructor(
    private readonly gateway: ModelGateway,
    private readonly options: ResilientGatewayOptions,
    private readonly request: ResilientRequest,
    private readonly signal: AbortSignal,
  ) {
    this.#requestId = request.trace?.requestId ?? options.ids.ulid();
    this.#startedAt = options.clock.now();
    this.#last = { profile: request.profiles[0], body: {} };
  }

  async *run(): AsyncGenerator<ResilientDelta, void> {
    try {
      const error = yield* this.#answer();
      if (error !== undefined) yield { type: "error", error };
      const outcome = this.#report(error?.category);
      yield { type: "outcome", outcome, profile: this.#last.profile };
    } finally {
      // RESIL-7: the consumer has left.
      if (!this.#isReported) this.#report(this.#isComplete ? undefined : "canceled");
    }
  }

  /** Tries one model after the other. Returns the error of the last failure, if all fail. */
  async *#answer(): AsyncGenerator<ResilientDelta, ModelError | undefined> {
    const { options, request } = this;
    try {
      const resilience = completeResilience({
        ...DEFAULT_CLIENT,
        ...options.resilience,
        ...request.resilience,
      });
      const deadline = requestDeadline(resilience, this.#startedAt, request.deadline);
      const queue: Candidate[] = request.profiles.map((profile) => ({ profile, failed: 0, from: 0 }));
      for (;;) {
        const candidate = queue.shift();
        if (candidate === undefined) return undefined;
        const wait = candidate.from - options.clock.now();
        if (wait > 0) await options.clock.sleep(wait, this.signal);
        const end = yield* this.#tryModel(candidate, resilience, deadline, queue.length > 0);
        const { error, later } = end;
        if (later !== undefined) queue.push(later);
        queue.sort((one, other) => one.from - other.from);
        if (!end.fallBack || queue.length === 0) return error;
      }
    } catch (thrown) {
      return thrownError(thrown, this.#last.profile.provider, this.signal);
    }
  }

  /** Makes all attempts with one model, or stops at a pause that the provider requests. */
  async *#tryModel(
    { profile, failed: before }: Candidate,
    resilience: ResilienceProfile,
    deadline: number,
    hasFallback: boolean,
  ): AsyncGenerator<ResilientDelta, { error?: ModelError; fallBack: boolean; later?: Candidate }> {
    const { clock, classify, random = Math.random } = this.options;
    const built = this.#build(profile);
    if ("error" in built) return { error: built.error, fallBack: hasFallback && built.isUnsupported };
    for (let failed = before + 1; ; failed++) {
      const failure = yield* this.#attempt(built, resilience, deadline);
      if (failure === undefined) return { fallBack: false };
      const classification = classified(failure.error, classify);
      const { category, retryable: retriable } = classification;
      const error = { ...failure.error, category, retriable };
      if (failure.stopped || this.signal.aborted) return { error, fallBack: false };
      const next = nextStep({
        profile: resilience,
        error: classification,
        failed,
        hasFallback,
        now: clock.now(),
        deadline,
        random: random(),
      });
      if (next.type === "give-up") return { error, fallBack: false };
      if (this.#streamed) yield { type: "reset" };
      this.#streamed = false;
      this.#usage = undefined;
      if (next.type === "fall-back") {
        const later = next.retryAt === undefined ? undefined : { profile, failed, from: next.retryAt };
        return { error, fallBack: true, ...defined({ later }) };
      }
      await clock.sleep(next.delayMs, this.signal);
    }
  }

  /** Makes one attempt within its time limit. Returns its failure instead of yielding it. */
  async *#attempt(
    { profile, body }: Pick<ModelRequest, "profile" | "body">,
    { perAttemptTimeoutMs }: ResilienceProfile,
    deadline: number,
  ): AsyncGenerator<ResilientDelta, Failure | undefined> {
    const { clock } = this.options;
    const { provider, executionConfig } = profile;
    const left = deadline - clock.now();
    if (left <= 0) {
      const message = "The deadline of the request has passed.";
      return { error: modelError(provider, "timeout", message), stopped: true };
    }
    if (this.signal.aborted) return { error: thrownError(undefined, provider, this.signal), stopped: true };
    this.#last = { profile, body };
    this.#status = undefined;
    this.#attempts += 1;
    const request = this.#lastRequest();
    const limitMs = Math.min(executionConfig?.timeoutMs ?? perAttemptTimeoutMs, left);
    const limit = new Deadline(clock, limitMs, { outer: this.signal });
    const deltas = runAttempt(this.gateway, this.options, request, this.#requestId, limit.signal);
    try {
      let error: ModelError | undefined;
      let next = await deltas.next();
      for (; !next.done; next = await deltas.next()) {
        if (next.value.type === "error") error = next.value.error;
        else yield this.#observed(next.value);
      }
      return this.#ended(next.value, error);
    } finally {
      limit.stop();
      await deltas.return({ sent: true, stopped: true });
    }
  }

  #observed(delta: ModelDelta): ModelDelta {
    if (delta.type === "response") {
      this.#status = delta.response.status;
      this.#rateLimit = delta.response.rateLimit ?? this.#rateLimit;
    } else {
      this.#streamed = true;
    }
    if (delta.type === "finish") this.#isComplete = true;
    if (delta.type === "usage") this.#usage = delta.usage;
    return delta;
  }

  #ended({ sent, stopped }: AttemptEnd, error: ModelError | undefined): Failure | undefined {
    if (!sent) this.#attempts -= 1;
    this.#status = error?.status ?? this.#status;
    return error === undefined ? undefined : { error, stopped };
  }

  /** `isUnsupported`: this provider cannot express the request, but another provider may. */
  #build(
    profile: ModelProfile,
  ): Pick<ModelRequest, "profile" | "body"> | { error: ModelError; isUnsupported: boolean } {
    try {
      return { profile, body: this.request.body(profile) };
    } catch (thrown) {
      const isUnsupported = hasCode(thrown, "UNSUPPORTED");
      return { error: thrownError(thrown, profile.provider), isUnsupported };
    }
  }

  /** Returns the request of the newest attempt. */
  #lastRequest(): ModelRequest {
    const { context, trace } = this.request;
    const attempt = Math.max(1, this.#attempts);
    return { ...this.#last, context, trace: { ...trace, requestId: this.#requestId, attempt } };
  }

  #report(category: ModelError["category"] | undefined): RequestOutcome {
    this.#isReported = true;
    const { clock, metrics, client = "dramatis" } = this.options;
    const outcome: RequestOutcome = {
      ok: category === undefined,
      errorCategory: category ?? "none",
      attempts: this.#attempts,
      startedAt: this.#startedAt,
      finishedAt: clock.now(),
      ...defined({ status: this.#status, rateLimitFeedback: this.#rateLimit }),
    };
    const info = requestInfo(this.#lastRequest(), this.#requestId);
    const usage = this.#usage;
    reportMetrics(metrics, {
      span: `${client}.${info.extensions["ai.request_type"]}`,
      outcome,
      info,
      ...defined({ usage, cost: costOf(usage, this.#last.profile) }),
    });
    return outcome;
  }
}
