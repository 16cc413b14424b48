/**
 * Performs one attempt of a model call: waits out the backoff, streams the reply, and returns the outcome as a signal, with
 * the attempt's measurements. Never throws; a timeout is a failure like any other.
 */

import { modelError } from "../../../adapters/errors/model-errors.ts";
import { ReplyAccumulator } from "../../../adapters/reply.ts";
import { profileAt } from "../../../library/version-chain.ts";
import type { ModelError } from "../../../model/error.ts";
import type { AdapterLookup } from "../../../model/format-adapter.ts";
import type { ModelGateway } from "../../../model/gateway.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { MODEL_TIMEOUT_MS } from "../../../model/profile.ts";
import type { ResponseInfo } from "../../../model/reply.ts";
import type { Clock } from "../../../ports/clock.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { baseContext, moveMessages } from "../core/planning/context.ts";
import type { AttemptFacts, EffectSignal } from "../core/signals.ts";
import { type ConversationIdentity, callContext, chainOf, type ModelCall, type Turn } from "../core/state.ts";
import { type ConversationMedia, lookedUpOnce, mediaBytes, withMedia } from "./media.ts";
import type { MediaBudget } from "./media-budget.ts";

export interface ModelCallPorts {
  clock: Clock;
  gateway: ModelGateway;
  adapters: AdapterLookup;
  /** Absent where attachments are not stored. */
  media?: ConversationMedia;
  /** The memory for media; unlimited when absent. */
  mediaBudget?: MediaBudget;
}

export interface ModelCallInput {
  record: ConversationIdentity;
  turn: Turn;
  call: ModelCall;
  /** Reads the window of the session. Called after the backoff. */
  history: () => ContextMessage[];
  onText: (text: string) => void;
}

export async function performModelCall(
  { clock, gateway, adapters, media, mediaBudget }: ModelCallPorts,
  { record, turn, call, history, onText }: ModelCallInput,
  signal: AbortSignal,
): Promise<EffectSignal> {
  const address = { turn: turn.n, item: call.item, attempt: call.attempt };
  const chain = chainOf(record, turn.agentId);
  const profile = profileAt(chain, call.profile ?? 0) ?? chain.modelProfile.definition;
  const timeoutMs = profile.executionConfig?.timeoutMs ?? MODEL_TIMEOUT_MS;
  const context = callContext(record, turn);
  const observed: Partial<AttemptFacts> = {};
  let startedAt = clock.now();
  let streamed = false;
  let isOver = false;
  const facts = (): AttemptFacts => ({ ...observed, startedAt, finishedAt: clock.now() });
  const failed = (error: ModelError): EffectSignal => {
    const { status, requestId } = error;
    const known = { ...facts(), ...defined({ status, requestId }) };
    return { type: "conversation.llm.failed", ...address, error, facts: known, streamed };
  };

  let release = () => {};

  async function request(limit: AbortSignal): Promise<JsonObject> {
    const adapter = adapters(profile.provider);
    const base = baseContext(record, readHistory(history), turn);
    const attachments = media && lookedUpOnce(media);
    if (mediaBudget !== undefined && base.messages.some(({ parts }) => parts !== undefined)) {
      const bytes = await mediaBytes(base.messages, attachments);
      release = await mediaBudget.reserve(bytes, { clock, signal: limit });
      if (isOver) release();
      limit.throwIfAborted();
    }
    const messages = await withMedia(base.messages, attachments);
    const first = adapter.buildRequest(profile, { ...base, messages });
    const moves = moveMessages(turn);
    return moves.length === 0 ? first : adapter.extend(profile, first, moves);
  }

  async function perform(limit: AbortSignal): Promise<EffectSignal> {
    const body = await request(limit);
    limit.throwIfAborted();
    const reply = new ReplyAccumulator(profile.provider);
    for await (const delta of gateway.stream({ profile, body, context }, limit)) {
      reply.add(delta);
      // The request is sent.
      release();
      if (isOver) continue;
      if (delta.type === "response") observeResponse(observed, delta.response);
      if (delta.type === "usage") observed.usage = delta.usage;
      if (delta.type !== "text" || delta.text === "") continue;
      observed.firstTextAt ??= clock.now();
      streamed = true;
      onText(delta.text);
    }
    const outcome = reply.outcome();
    if (!outcome.ok) return failed(outcome.error);
    return { type: "conversation.llm.completed", ...address, reply: outcome.reply, facts: facts() };
  }

  try {
    const wait = call.notBefore - clock.now();
    if (wait > 0) await clock.sleep(wait, signal);
    startedAt = clock.now();
    // Attachments or a gateway that never answer must not hold up the turn for ever.
    return await withDeadline(clock, timeoutMs, perform, { outer: signal });
  } catch (error) {
    return failed(asModelError(error, profile));
  } finally {
    isOver = true;
    release();
  }
}

function observeResponse(observed: Partial<AttemptFacts>, response: ResponseInfo): void {
  const { status, requestId, rateLimit } = response;
  if (status !== undefined) observed.status = status;
  if (requestId !== undefined) observed.requestId = requestId;
  if (rateLimit?.isRateLimited) observed.rateLimit = rateLimit;
}

/** Reads the history. A store that fails for now fails the attempt as `UNAVAILABLE`; the next attempt reads again. */
function readHistory(history: () => ContextMessage[]): ContextMessage[] {
  try {
    return history();
  } catch (cause) {
    console.error(cause);
    const message = "The history of the conversation could not be read.";
    throw new DramatisError("UNAVAILABLE", message, { retriable: true, cause });
  }
}

/** Converts what the adapter, an abort or a defect threw. The message of a defect stays in the log. */
function asModelError(error: unknown, { provider }: ModelProfile): ModelError {
  if (error instanceof DramatisError && error.code === "UNSUPPORTED") {
    return modelError(provider, "validation", error.message);
  }
  if (error instanceof DramatisError && error.retriable)
    return modelError(provider, "transient", error.message);
  if (error instanceof DOMException && error.name === "TimeoutError") {
    return modelError(provider, "timeout", error.message);
  }
  if (error instanceof DOMException && error.name === "AbortError") {
    return modelError(provider, "canceled", "The call was cancelled.");
  }
  console.error(error);
  return modelError(provider, "unknown", "The request could not be made.");
}
