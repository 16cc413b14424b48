/** What a provider's decoder makes of payloads: texts as they are, other values as JSON. */
import { adapterFor, ReplyAccumulator, type ReplyOutcome } from "../../src/adapters/index.ts";
import type { ModelDelta, ProviderId } from "../../src/adapters/types.ts";

export function decode(provider: ProviderId, payloads: readonly unknown[]): ModelDelta[] {
  const decoder = adapterFor(provider).decoder();
  const texts = payloads.map((payload) => (typeof payload === "string" ? payload : JSON.stringify(payload)));
  return [...texts.flatMap((payload) => decoder.push(payload)), ...decoder.end()];
}

export function outcomeOf(provider: ProviderId, payloads: readonly unknown[]): ReplyOutcome {
  const accumulator = new ReplyAccumulator(provider);
  for (const delta of decode(provider, payloads)) accumulator.add(delta);
  return accumulator.outcome();
}
