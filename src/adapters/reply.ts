/**
 * Assembles a reply from its deltas.
 *
 * REPLY-1  Equal deltas give an equal reply, wherever their text was cut.
 * REPLY-2  Every tool call has an id, and no two calls of a reply share one.
 * REPLY-3  A reply without a `finish` delta is a failure, never a short reply.
 * REPLY-4  Texts are well-formed, arguments of calls and native parts included: a surrogate that lost its other half becomes
 *          U+FFFD.
 * REPLY-5  A call with missing, blank or `null` arguments is a call without arguments.
 */
import type { ModelError } from "../model/error.ts";
import type { ProviderId } from "../model/profile.ts";
import type { FinishReason, ModelDelta, ModelReply, RequestedToolCall } from "../model/reply.ts";
import type { TokenUsage } from "../model/usage.ts";
import { defined } from "../shared/defined.ts";
import { isJson, isJsonObject, parseJson, wellFormed } from "../shared/json.ts";
import { incompleteReply } from "./errors/model-errors.ts";

/** A reply, or the error that replaces it. */
export type ReplyOutcome = { ok: true; reply: ModelReply } | { ok: false; error: ModelError };

interface CallParts {
  id?: string;
  name?: string;
  arguments: string[];
}

/**
 * Collects the deltas of one reply.
 * @example
 * const reply = new ReplyAccumulator("openai");
 * for await (const delta of deltas) reply.add(delta);
 * const outcome = reply.outcome();
 */
export class ReplyAccumulator {
  readonly #provider: ProviderId;
  readonly #calls = new Map<number, CallParts>();
  #text = "";
  #reasoning = "";
  #usage: TokenUsage | undefined;
  #messageId: string | undefined;
  #finish: FinishReason | undefined;
  #native: ModelReply["native"];
  #error: ModelError | undefined;

  constructor(provider: ProviderId) {
    this.#provider = provider;
  }

  /** The text so far. Its length in UTF-16 units is the sum of the text deltas' lengths. */
  get partialText(): string {
    return this.#text.toWellFormed();
  }

  add(delta: ModelDelta): void {
    switch (delta.type) {
      case "message-id":
        this.#messageId ??= delta.id;
        return;
      case "text":
        this.#text += delta.text;
        return;
      case "reasoning":
        this.#reasoning += delta.text;
        return;
      case "tool-call":
        this.#addCall(delta);
        return;
      case "usage":
        this.#usage = delta.usage;
        return;
      case "native":
        this.#native = delta.parts;
        return;
      case "finish":
        this.#finish = delta.reason;
        return;
      case "response":
        return;
      case "error":
        this.#error ??= delta.error;
        return;
      default:
        delta satisfies never;
    }
  }

  /** Returns the reply, or its first error. Called once the stream has ended. */
  outcome(): ReplyOutcome {
    if (this.#error !== undefined) return { ok: false, error: this.#error };
    if (this.#finish === undefined) return { ok: false, error: incompleteReply(this.#provider) };
    return {
      ok: true,
      reply: {
        text: this.partialText,
        ...(this.#reasoning === "" ? {} : { reasoning: this.#reasoning.toWellFormed() }),
        toolCalls: toToolCalls(this.#calls),
        finishReason: this.#finish,
        ...defined({ usage: this.#usage, providerMessageId: this.#messageId?.toWellFormed() }),
        ...(this.#native === undefined ? {} : { native: wellFormed(this.#native) }),
      },
    };
  }

  #addCall({ index, id, name, arguments: fragment }: Extract<ModelDelta, { type: "tool-call" }>): void {
    const call = this.#calls.get(index) ?? { arguments: [] };
    this.#calls.set(index, call);
    if (id) call.id ??= id;
    if (name) call.name ??= name;
    if (fragment) call.arguments.push(fragment);
  }
}

/** Assembles a reply from a stream of deltas, which it reads to the end. */
export async function collectReply(
  provider: ProviderId,
  deltas: AsyncIterable<ModelDelta>,
): Promise<ReplyOutcome> {
  const accumulator = new ReplyAccumulator(provider);
  for await (const delta of deltas) accumulator.add(delta);
  return accumulator.outcome();
}

function toToolCalls(calls: ReadonlyMap<number, CallParts>): RequestedToolCall[] {
  const inOrder = [...calls].sort(([one], [other]) => one - other);
  const used = new Set<string>();
  return inOrder.map(([index, call]) => {
    const wanted = (call.id ?? `call_${index}`).toWellFormed();
    let id = wanted;
    for (let suffix = 2; used.has(id); suffix++) id = `${wanted}_${suffix}`;
    used.add(id);
    return { id, name: (call.name ?? "").toWellFormed(), ...parseArguments(call.arguments.join("")) };
  });
}

function parseArguments(text: string): Pick<RequestedToolCall, "arguments" | "invalidArguments"> {
  if (text.trim() === "") return { arguments: {} };
  const value = parseJson(text);
  if (value === null) return { arguments: {} };
  // Deeper values and numbers out of range cannot be written as JSON everywhere.
  if (isJsonObject(value) && isJson(value)) return { arguments: wellFormed(value) };
  return { arguments: {}, invalidArguments: text.toWellFormed() };
}
