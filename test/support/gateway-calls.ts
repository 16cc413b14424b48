/** Calls of the gateway for tests. */
import { setTimeout as sleep } from "node:timers/promises";
import { createModelGateway, type GatewayPorts, secretsOf, trustedHosts } from "../../src/adapters/index.ts";
import type { ModelError } from "../../src/model/error.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import type { JsonObject } from "../../src/shared/json.ts";

export const KEY = "test-key-0123456789abcdef";

/** Time of the clock. */
export const NOW = Date.UTC(2026, 0, 1);

/** A fixed clock with real sleeps and timers. */
export const clock: GatewayPorts["clock"] = {
  now: () => NOW,
  sleep: async (milliseconds, signal) => {
    await sleep(milliseconds, undefined, signal === undefined ? {} : { signal });
  },
  timer(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return () => clearTimeout(timer);
  },
};

export interface Call {
  profile?: Partial<ModelProfile>;
  body?: JsonObject;
  ports?: Partial<GatewayPorts>;
  signal?: AbortSignal;
}

const CONTEXT = { tenant: "t", projectId: "p", agentId: "a", conversationId: "c", turnId: "u" };

/** Creates a call: `openai` with a key by default. Every server may receive the key. */
export function stream(call: Call): AsyncIterable<ModelDelta> {
  const profile: ModelProfile = { provider: "openai", modelId: "gpt-test", ...call.profile };
  const body = call.body ?? { model: profile.modelId, messages: [], stream: true };
  const secret = secretsOf({ OPENAI_API_KEY: KEY });
  const trusted = trustedHosts({ profiles: [profile] });
  const gateway = createModelGateway({ secret, fetch, clock, trustedHosts: trusted, ...call.ports });
  return gateway.stream({ profile, body, context: CONTEXT }, call.signal ?? new AbortController().signal);
}

export function deltasOf(call: Call): Promise<ModelDelta[]> {
  return allOf(stream(call));
}

/** Collects all deltas. */
export async function allOf<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Returns the error of a call. Throws if it is missing, not the last delta, or contains the key. */
export async function errorOf(call: Call): Promise<ModelError> {
  const deltas = await deltasOf(call);
  const last = deltas.at(-1);
  const ends = deltas.filter(({ type }) => type === "error" || type === "finish");
  if (last?.type !== "error" || ends.length !== 1)
    throw new Error(`not one error: ${JSON.stringify(deltas)}`);
  if (last.error.message.includes(KEY)) throw new Error("the error shows the key");
  return last.error;
}

export function textOf(deltas: readonly ModelDelta[]): string {
  return deltas.flatMap((delta) => (delta.type === "text" ? [delta.text] : [])).join("");
}
