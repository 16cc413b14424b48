/** What the gateway needs from outside, and what each of its transports is. */
import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { Clock } from "../../ports/clock.ts";
import type { ModelRequest } from "../types.ts";

/** The part of a Workers AI binding that is used. */
export interface AiBinding {
  run(model: string, input: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<unknown>;
}

export interface GatewayPorts {
  /** The value of a secret that a model profile names; `secretsOf(env)` is the usual one. */
  secret: (name: string) => string | undefined;
  fetch: (url: string, init: RequestInit) => Promise<Response>;
  clock: Pick<Clock, "now" | "sleep">;
  /** Absent where the Worker has no AI binding. */
  ai?: AiBinding;
  /** The AI SDK's model of this id, for the provider `ai-sdk`; `undefined` for one that there is not. */
  languageModel?: (modelId: string) => LanguageModelV4 | undefined;
}

/**
 * Sends one request and yields the payloads of its reply. Throws `ModelFailure`, or the signal's reason after an abort.
 */
export type Transport = (
  request: ModelRequest,
  ports: GatewayPorts,
  signal: AbortSignal,
) => AsyncIterable<string>;
