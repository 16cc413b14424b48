/** Decodes payloads of a provider: texts as they are, other values as JSON. */
import { expect } from "vitest";
import { adapterFor, ReplyAccumulator, type ReplyOutcome } from "../../src/adapters/index.ts";
import type { ProviderId } from "../../src/model/profile.ts";
import type { ModelDelta, ModelReply } from "../../src/model/reply.ts";

export function payloadText(payload: unknown): string {
  return typeof payload === "string" ? payload : JSON.stringify(payload);
}

export function decode(provider: ProviderId, payloads: readonly unknown[]): ModelDelta[] {
  const decoder = adapterFor(provider).decoder();
  return [...payloads.flatMap((payload) => decoder.push(payloadText(payload))), ...decoder.end()];
}

export function assemble(provider: ProviderId, deltas: readonly ModelDelta[]): ReplyOutcome {
  const reply = new ReplyAccumulator(provider);
  for (const delta of deltas) reply.add(delta);
  return reply.outcome();
}

export function outcomeOf(provider: ProviderId, payloads: readonly unknown[]): ReplyOutcome {
  return assemble(provider, decode(provider, payloads));
}

/** Returns the reply. Throws its error if the reply is absent. */
export function replyOf(provider: ProviderId, payloads: readonly unknown[]): ModelReply {
  const outcome = outcomeOf(provider, payloads);
  if (outcome.ok) return outcome.reply;
  throw new Error(`${outcome.error.category}: ${outcome.error.message}`);
}

/** Expects that a reply ends once: with its finish, or with a typed error that has a message. */
export function expectOneEnd(deltas: readonly ModelDelta[]): void {
  const ends = deltas.filter(({ type }) => type === "finish" || type === "error");
  expect(ends).toHaveLength(1);
  expect(deltas.at(-1)).toBe(ends[0]);
  const [end] = ends;
  if (end?.type === "error") expect(end.error.message).not.toBe("");
}
