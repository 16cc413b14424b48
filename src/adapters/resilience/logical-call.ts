/** One logical request on its way: its attempts, one after the other, and what is known of them. */

import type { RequestOutcome } from "../../model/call-record.ts";
import { costOf } from "../../model/cost.ts";
import type { ModelError } from "../../model/error.ts";
import type { ModelGateway, ModelRequest } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { ModelDelta, RateLimitFeedback } from "../../model/reply.ts";
import type { TokenUsage } from "../../model/usage.ts";
import { Deadline } from "../../ports/deadline.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError } from "../../shared/errors.ts";
import { modelError } from "../errors/model-errors.ts";
import { thrownError } from "../errors/thrown.ts";
import { type AttemptEnd, runAttempt } from "./attempt.ts";
import { nextStep } from "./backoff.ts";
import { classified } from "./classify.ts";
import { reportMetrics } from "./metrics.ts";
import { completeResilience, DEFAULT_CLIENT, type ResilienceProfile, requestDeadline } from "./profile.ts";
import { requestInfo } from "./request-info.ts";
import type { ResilientDelta, ResilientGatewayOptions, ResilientRequest } from "./resilient-request.ts";

/** How one attempt ended. */
interface Failure {
  error: ModelError;
  stopped: boolean;
}

export class LogicalCall {
  readonly #requestId: string;
  readonly #startedAt: number;
  #attempts = 0;
  #status: number | undefined;
  #rateLimit: RateLimitFeedback | undefined;
  #usage: TokenUsage | undefined;
  /** What streamed and would have to be taken back. */
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
      const error = yield* this.#answered();
      if (error !== undefined) yield { type: "error", error };
      const outcome = this.#report(error?.category);
      yield { type: "outcome", outcome, profile: this.#last.profile };
    } finally {
      // RESIL-7: whoever reads has left.
      if (!this.#isReported) this.#report(this.#isComplete ? undefined : "canceled");
    }
  }

  async *#answered(): AsyncGenerator<ResilientDelta, ModelError | undefined> {
    try {
      return yield* this.#ask();
    } catch (thrown) {
      return thrownError(thrown, this.#last.profile.provider, this.signal);
    }
  }

  /** Asks one model after the other; `undefined` if one has answered. */
  async *#ask(): AsyncGenerator<ResilientDelta, ModelError | undefined> {
    const resilience = this.#resilience();
    const deadline = requestDeadline(resilience, this.#startedAt, this.request.deadline);
    let error: ModelError | undefined;
    for (const [index, profile] of this.request.profiles.entries()) {
      const hasFallback = index + 1 < this.request.profiles.length;
      const asked = yield* this.#askOne(profile, resilience, deadline, hasFallback);
      error = asked.error;
      if (!asked.fallBack) break;
    }
    return error;
  }

  /** All attempts of one model. */
  async *#askOne(
    profile: ModelProfile,
    resilience: ResilienceProfile,
    deadline: number,
    hasFallback: boolean,
  ): AsyncGenerator<ResilientDelta, { error?: ModelError; fallBack: boolean }> {
    const { clock, classify, random = Math.random } = this.options;
    const built = this.#build(profile);
    if ("error" in built) return { error: built.error, fallBack: hasFallback && built.isForeign };
    for (let failed = 1; ; failed++) {
      const failure = yield* this.#attempt(built, resilience, deadline);
      if (failure === undefined) return { fallBack: false };
      const error = classified(failure.error, classify);
      const told = { ...failure.error, category: error.category, retriable: error.retryable };
      if (failure.stopped || this.signal.aborted) return { error: told, fallBack: false };
      const now = clock.now();
      const at = { profile: resilience, error, failed, hasFallback, now, deadline, random: random() };
      const next = nextStep(at);
      if (next.type === "give-up") return { error: told, fallBack: false };
      if (this.#streamed) yield { type: "reset" };
      this.#streamed = false;
      this.#usage = undefined;
      if (next.type === "fall-back") return { error: told, fallBack: true };
      try {
        await clock.sleep(next.delayMs, this.signal);
      } catch (thrown) {
        return { error: thrownError(thrown, profile.provider, this.signal), fallBack: false };
      }
    }
  }

  /** One attempt, within its time; its failure is answered and not told. */
  async *#attempt(
    { profile, body }: Pick<ModelRequest, "profile" | "body">,
    { perAttemptTimeoutMs }: ResilienceProfile,
    deadline: number,
  ): AsyncGenerator<ResilientDelta, Failure | undefined> {
    const { clock, guards, interceptors = [] } = this.options;
    const left = deadline - clock.now();
    if (left <= 0)
      return { error: modelError(profile.provider, "timeout", "Its time is up."), stopped: true };
    if (this.signal.aborted) {
      return { error: thrownError(undefined, profile.provider, this.signal), stopped: true };
    }
    this.#last = { profile, body };
    this.#status = undefined;
    this.#attempts += 1;
    const request: ModelRequest = {
      profile,
      body,
      context: this.request.context,
      trace: { ...this.request.trace, requestId: this.#requestId, attempt: this.#attempts },
    };
    const limitMs = Math.min(profile.executionConfig?.timeoutMs ?? perAttemptTimeoutMs, left);
    const limit = new Deadline(clock, limitMs, { outer: this.signal });
    const input = {
      gateway: this.gateway,
      interceptors,
      request,
      info: requestInfo(request, this.#requestId),
    };
    const deltas = runAttempt({ ...input, ...defined({ guards }) }, limit.signal);
    try {
      let error: ModelError | undefined;
      let next = await deltas.next();
      for (; !next.done; next = await deltas.next()) {
        if (next.value.type === "error") error = next.value.error;
        else yield this.#heard(next.value);
      }
      return this.#ended(next.value, error);
    } finally {
      limit.stop();
      await deltas.return({ sent: true, stopped: true });
    }
  }

  #heard(delta: ModelDelta): ModelDelta {
    if (delta.type === "response") {
      this.#status = delta.response.status;
      this.#rateLimit = delta.response.rateLimit ?? this.#rateLimit;
    } else {
      this.#streamed = true;
    }
    if (delta.type === "finish") this.#isComplete = true;
    if (delta.type === "usage") this.#usage = { ...this.#usage, ...delta.usage };
    return delta;
  }

  #ended({ sent, stopped }: AttemptEnd, error: ModelError | undefined): Failure | undefined {
    if (!sent) this.#attempts -= 1;
    this.#status = error?.status ?? this.#status;
    return error === undefined ? undefined : { error, stopped };
  }

  #resilience(): ResilienceProfile {
    return completeResilience({ ...DEFAULT_CLIENT, ...this.options.resilience, ...this.request.resilience });
  }

  /** `isForeign`: the provider has no words for the request, but another may. */
  #build(
    profile: ModelProfile,
  ): Pick<ModelRequest, "profile" | "body"> | { error: ModelError; isForeign: boolean } {
    try {
      return { profile, body: this.request.body(profile) };
    } catch (thrown) {
      const isForeign = thrown instanceof DramatisError && thrown.code === "UNSUPPORTED";
      return { error: thrownError(thrown, profile.provider, new AbortController().signal), isForeign };
    }
  }

  /** Says once what became of the request. */
  #report(category: ModelError["category"] | undefined): RequestOutcome {
    this.#isReported = true;
    const { clock, metrics, client = "dramatis" } = this.options;
    const outcome: RequestOutcome = {
      ok: category === undefined,
      ...(this.#status === undefined ? {} : { status: this.#status }),
      errorCategory: category ?? "none",
      attempts: this.#attempts,
      startedAt: this.#startedAt,
      finishedAt: clock.now(),
      ...(this.#rateLimit === undefined ? {} : { rateLimitFeedback: this.#rateLimit }),
    };
    const { context, trace = {} } = this.request;
    const last = { ...this.#last, context, trace: { ...trace, attempt: Math.max(1, this.#attempts) } };
    const info = requestInfo(last, this.#requestId);
    const cost = this.#usage === undefined ? undefined : costOf(this.#usage, this.#last.profile);
    reportMetrics(metrics, {
      span: `${client}.${info.extensions["ai.request_type"]}`,
      outcome,
      info,
      ...(this.#usage === undefined ? {} : { usage: this.#usage }),
      ...defined({ cost }),
    });
    return outcome;
  }
}
