/** What the gateway needs from outside, and what each of its transports is. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelRequest } from "../../model/gateway.ts";
import type { ResponseInfo } from "../../model/reply.ts";
import type { Clock } from "../../ports/clock.ts";
import type { AttemptDeadlines } from "./deadlines.ts";
import type { TrustedHost } from "./trusted-hosts.ts";

/** The part of a Workers AI binding that is used. */
export interface AiBinding {
  run(model: string, input: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<unknown>;
}

export interface GatewayPorts {
  /** The value of a secret that a model profile names; `secretsOf(env)` is the usual one. */
  secret: (name: string) => string | undefined;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  clock: Clock;
  /** Where keys may go, by `trustedHosts(…)`; absent = to the providers' own hosts only. */
  trustedHosts?: readonly TrustedHost[];
  /** Absent where the Worker has no AI binding. */
  ai?: AiBinding;
  /** The AI SDK's model of this id, for the provider `ai-sdk`; `undefined` for one that there is not. */
  languageModel?: (modelId: string) => LanguageModelV4 | undefined;
}

/**
 * What comes from a provider: that it answers, once and before all else, then the payloads of its reply, in order; as they
 * come, or a stream of them, which saves handing on each.
 */
export type Arrival =
  | { response: ResponseInfo }
  | { payloads: readonly string[] | AsyncIterable<readonly string[]> };

/** Sends one request. Throws `ModelFailure`, or the reason of the attempt's signal after an abort. */
export type Transport = (
  request: ModelRequest,
  ports: GatewayPorts,
  attempt: AttemptDeadlines,
) => AsyncIterable<Arrival>;
