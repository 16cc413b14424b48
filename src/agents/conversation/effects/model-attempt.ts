/**
 * One attempt of a model call: waits for the backoff, builds the request, streams the reply, and returns the outcome with the
 * attempt's measurements. Never throws. A timeout is a failure.
 *
 * CALLROOM-1  A call waits for memory for its media, at most for the time limit of an attempt. The attempt, its record and its
 *             own time limit begin when the memory is reserved.
 * CALLROOM-2  A call without memory in that time makes no attempt. Its turn fails as retriable, and no model gets a failure.
 */
import { modelError } from "../../../adapters/errors/model-errors.ts";
import { ReplyAccumulator } from "../../../adapters/reply.ts";
import { leaseOf } from "../../../adapters/resilience/guarded-gateway.ts";
import { type MediaBudget, TooManyWaiting } from "../../../adapters/resilience/media-budget.ts";
import { estimateTokens } from "../../../memory/session/tokens.ts";
import type { ModelError } from "../../../model/error.ts";
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import { MODEL_TIMEOUT_MS, type ModelProfile } from "../../../model/profile.ts";
import type { ModelDelta, ModelReply, ResponseInfo } from "../../../model/reply.ts";
import { type RequestTaint, taintOfRequest } from "../../../model/taint.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, type ErrorData, hasCode } from "../../../shared/errors.ts";
import type { CallContext } from "../../../shared/identifiers.ts";
import type { JsonObject } from "../../../shared/json.ts";
import type { RuntimeContext } from "../context.ts";
import { requestTokens } from "../core/planning/context.ts";
import type { PlannedRequest } from "../core/planning/request.ts";
import type { AttemptFacts } from "../core/signals.ts";
import { lookedUpOnce, MediaReads, mediaBytes, withMedia } from "./media.ts";

/** The abort reason of a call that waited too long for memory. */
const NO_ROOM = Symbol("no room");

export type ModelCallContext = Pick<
  RuntimeContext,
  "clock" | "ids" | "gateway" | "adapters" | "media" | "mediaBudget"
>;

export interface AttemptInput {
  profile: ModelProfile;
  context: CallContext;
  /** Earliest start of the attempt. */
  notBefore: number;
  /** Reads the request. Called after the backoff. */
  request: () => PlannedRequest;
  /** Gets a reader of the attempt's measurements when the attempt begins. */
  onBegin?: (facts: () => AttemptFacts) => void;
  onText?: (text: string) => void;
}

/** The outcome of an attempt. `streamed` reports whether text was streamed. `notCalled` is the error of a call without an attempt. */
export type AttemptResult = { notCalled: ErrorData } | MadeAttempt;

type MadeAttempt = { notCalled?: never; facts: AttemptFacts; streamed: boolean } & (
  | { ok: true; reply: ModelReply }
  | { ok: false; error: ModelError }
);

export async function performAttempt(
  { clock, ids, gateway, adapters, media, mediaBudget }: ModelCallContext,
  { profile, context, notBefore, request, onBegin, onText }: AttemptInput,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const timeoutMs = profile.executionConfig?.timeoutMs ?? MODEL_TIMEOUT_MS;
  const observed: Partial<AttemptFacts> = {};
  let startedAt = clock.now();
  let sent: PlannedRequest | undefined;
  let taint: RequestTaint = {};
  let received = "";
  let streamed = false;
  let isOver = false;
  /** Estimates the tokens that the provider has not counted; `undefined` before the request is sent, and if it has counted all. */
  const estimate = (isWhole: boolean) => {
    if (sent === undefined) return undefined;
    const outputTokens = estimateTokens(received);
    if (observed.usage === undefined) return { inputTokens: requestTokens(sent), outputTokens };
    // If a reply broke off, some providers have counted only its beginning.
    const missing = outputTokens - (observed.usage.outputTokens ?? 0);
    return isWhole || missing <= 0 ? undefined : { inputTokens: 0, outputTokens: missing };
  };
  const facts = (isCharged = true, isWhole = false): AttemptFacts => ({
    ...observed,
    ...taint,
    ...defined({ estimate: isCharged ? estimate(isWhole) : undefined }),
    startedAt,
    finishedAt: clock.now(),
  });
  const failed = (error: ModelError): AttemptResult => {
    const { status, requestId, refusal } = error;
    if (refusal !== undefined) return { notCalled: refusal };
    // Providers do not charge for refused requests.
    const isCharged = received !== "" || error.category === "timeout" || error.category === "canceled";
    return { ok: false, error, facts: { ...facts(isCharged), ...defined({ status, requestId }) }, streamed };
  };

  let release = () => {};

  const isStreamed = () => gateway.streamsMedia?.(profile) ?? false;
  const attachments = media && lookedUpOnce(media);
  const within = <Value>(work: (limit: AbortSignal) => Promise<Value>, reason?: () => unknown) =>
    withDeadline(clock, timeoutMs, work, { outer: signal, ...defined({ reason }) });

  /** Reserves memory for the media of messages. Throws `NO_ROOM` if no memory is free in time. */
  async function reserve(messages: readonly ContextMessage[], budget: MediaBudget): Promise<void> {
    const bytes = await within(() => mediaBytes(messages, attachments, isStreamed()));
    const claim = { bytes, tenant: context.tenant, leaseMs: leaseOf(profile) };
    const reserved = async (limit: AbortSignal) => {
      release = await budget.reserve({ ...claim, signal: limit });
      if (isOver) release();
    };
    await within(reserved, () => NO_ROOM);
    startedAt = clock.now();
  }

  async function perform(made: PlannedRequest, limit: AbortSignal): Promise<AttemptResult> {
    const { base, moves } = made;
    const adapter = adapters(profile.provider);
    const reads = new MediaReads(attachments, ids, () => release());
    const messages = await withMedia(base.messages, attachments, isStreamed() ? reads : undefined);
    const { assembled, body } = requestBody(adapter, profile, made, messages);
    limit.throwIfAborted();
    const reply = new ReplyAccumulator(profile.provider);
    const call = { profile, body, context, ...(reads.deferred.size > 0 && { media: reads.deferred }) };
    sent = { base, moves, ...defined({ assembled }) };
    for await (const delta of gateway.stream(call, AbortSignal.any([limit, reads.signal]))) {
      reply.add(delta);
      // The request is sent.
      release();
      if (isOver) continue;
      if (delta.type === "response") observeResponse(observed, delta.response);
      if (delta.type === "usage") observed.usage = delta.usage;
      received += receivedIn(delta);
      if (delta.type !== "text" || delta.text === "") continue;
      observed.firstTextAt ??= clock.now();
      streamed = true;
      onText?.(delta.text);
    }
    const outcome = reply.outcome();
    if (outcome.ok) return { ok: true, reply: outcome.reply, facts: facts(true, true), streamed };
    // Throws the error of the attachments instead of the provider's error.
    reads.signal.throwIfAborted();
    return failed(outcome.error);
  }

  try {
    const wait = notBefore - clock.now();
    if (wait > 0) await clock.sleep(wait, signal);
    startedAt = clock.now();
    const made = request();
    taint = taintOfRequest([...made.base.messages, ...made.moves], made.taint);
    // The time limits bound the wait for attachments and for a gateway that never answers.
    if (mediaBudget !== undefined && made.base.messages.some(({ parts }) => parts !== undefined))
      await reserve(made.base.messages, mediaBudget);
    onBegin?.(facts);
    return await within((limit) => perform(made, limit));
  } catch (error) {
    if (error === NO_ROOM) {
      const message = `The memory for attachments was busy for ${timeoutMs / 1_000} s. Send the message again.`;
      return { notCalled: { code: "UNAVAILABLE", message, retriable: true } };
    }
    if (error instanceof TooManyWaiting)
      return { notCalled: { code: "UNAVAILABLE", message: error.message, retriable: true } };
    return failed(asModelError(error, profile));
  } finally {
    isOver = true;
    release();
  }
}

/** Returns the body of a request in its provider's form. `messages` replace those of `base`; `assembled` has the choice of tools. */
export function requestBody(
  adapter: FormatAdapter,
  profile: ModelProfile,
  { base, assembled: given, toolChoice, moves }: PlannedRequest,
  messages: readonly ContextMessage[],
): { assembled: JsonObject | undefined; body: JsonObject } {
  const assembled = given && toolChoice !== undefined ? adapter.choose(given, toolChoice) : given;
  const first = assembled ?? adapter.buildRequest(profile, { ...base, messages });
  return { assembled, body: moves.length === 0 ? first : adapter.extend(profile, first, moves) };
}

function receivedIn(delta: ModelDelta): string {
  if (delta.type === "text" || delta.type === "reasoning") return delta.text;
  return delta.type === "tool-call" ? `${delta.name ?? ""}${delta.arguments ?? ""}` : "";
}

function observeResponse(observed: Partial<AttemptFacts>, response: ResponseInfo): void {
  const { status, requestId, rateLimit } = response;
  if (status !== undefined) observed.status = status;
  if (requestId !== undefined) observed.requestId = requestId;
  if (rateLimit?.isRateLimited) observed.rateLimit = rateLimit;
}

/** Converts an error of the adapter, an abort or a defect. The message of a defect appears only in the log. */
function asModelError(error: unknown, { provider }: ModelProfile): ModelError {
  if (hasCode(error, "UNSUPPORTED")) return modelError(provider, "validation", error.message);
  if (error instanceof DramatisError && error.retriable)
    return modelError(provider, "transient", error.message);
  if (error instanceof DOMException && error.name === "TimeoutError")
    return modelError(provider, "timeout", error.message);
  if (error instanceof DOMException && error.name === "AbortError")
    return modelError(provider, "canceled", "The call was cancelled.");
  console.error(error);
  return modelError(provider, "unknown", "The request could not be made.");
}
