/** The ports of the gateway, and the interface of its transports. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelRequest } from "../../model/gateway.ts";
import type { ResponseInfo } from "../../model/reply.ts";
import type { Clock } from "../../ports/clock.ts";
import type { AttemptDeadlines } from "./deadlines.ts";
import type { TrustedHost } from "./trusted-hosts.ts";

/** The used part of a Workers AI binding. */
export interface AiBinding {
  run(model: string, input: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<unknown>;
}

export interface GatewayPorts {
  /** Returns the value of a secret that a model profile names. Usually `secretsOf(env)`. */
  secret: (name: string) => string | undefined;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  clock: Clock;
  /** Hosts that may receive keys, from `trustedHosts(…)`. Default: the providers' own hosts. */
  trustedHosts?: readonly TrustedHost[];
  /** Absent in a Worker without an AI binding. */
  ai?: AiBinding;
  /** Returns the AI SDK model with this id, for the provider `ai-sdk`, if it exists. */
  languageModel?: (modelId: string) => LanguageModelV4 | undefined;
}

/** One attempt, as its transport sees it: its signal, and the reports that its deadlines need. */
export type AttemptWatch = Pick<AttemptDeadlines, "signal" | "reading" | "received" | "waiting">;

/**
 * A step of a response. `response` comes once and first, `payloads` follow in order. A transport passes its payloads one
 * batch at a time, or all of them as one stream of batches, which is cheaper.
 */
export type Arrival =
  | { response: ResponseInfo }
  | { payloads: readonly string[] | AsyncIterable<readonly string[]> };

/** Sends one request. Throws `ModelFailure`, or the reason of the attempt's signal after an abort. */
export type Transport = (
  request: ModelRequest,
  ports: GatewayPorts,
  attempt: AttemptWatch,
) => AsyncIterable<Arrival>;
