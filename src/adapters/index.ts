/** Public surface of `dramatis/adapters`: provider formats, the gateway, and the assembly of replies. */

export type * from "../model/context.ts";
export { costOf, type Prices } from "../model/cost.ts";
export { type ErrorCategory, type ModelError, mayFallBack } from "../model/error.ts";
export type * from "../model/format-adapter.ts";
export type * from "../model/gateway.ts";
export * from "../model/profile.ts";
export type * from "../model/reply.ts";
export type { TokenUsage } from "../model/usage.ts";
export type { CallContext } from "../shared/identifiers.ts";
export type { JsonObject } from "../shared/json.ts";
export { defaultModelProfile, type ModelEnvironment, OFFLINE_PROFILE } from "./default-profile.ts";
export { aiSdkAdapter, aiSdkFormat } from "./formats/ai-sdk/adapter.ts";
export { anthropicAdapter, anthropicFormat } from "./formats/anthropic/adapter.ts";
export { geminiAdapter, geminiFormat } from "./formats/gemini/adapter.ts";
export { adapterFor, resolveProvider } from "./formats/lookup.ts";
export { offlineAdapter, offlineFormat } from "./formats/offline/adapter.ts";
export { offlineModel } from "./formats/offline/model.ts";
export { openaiAdapter, openaiFormat } from "./formats/openai/adapter.ts";
export { openaiResponsesAdapter, openaiResponsesFormat } from "./formats/openai-responses/adapter.ts";
export {
  type WorkersAIChatMessage,
  workersAIAdapter,
  workersAIFormat,
} from "./formats/workers-ai/adapter.ts";
export { createModelGateway, secretsOf } from "./gateway/gateway.ts";
export type { AiBinding, GatewayPorts } from "./gateway/ports.ts";
export { mayReceiveKey, type TrustedHost, type TrustOptions, trustedHosts } from "./gateway/trusted-hosts.ts";
export { collectReply, ReplyAccumulator, type ReplyOutcome } from "./reply.ts";
export type { BreakerSettings } from "./resilience/breaker.ts";
export { type GuardedGatewayOptions, guardGateway } from "./resilience/guarded-gateway.ts";
export { type ConcurrencyLimit, type HostGuardOptions, HostGuards } from "./resilience/host-guards.ts";
export type { CompletedAttempt, Interceptor } from "./resilience/interceptors.ts";
export type { ClassifiedError, Classifier } from "./resilience/next-step.ts";
export type { ResilienceProfile } from "./resilience/profile.ts";
export {
  createResilientGateway,
  type ResilientDelta,
  type ResilientGateway,
  type ResilientGatewayOptions,
  type ResilientRequest,
} from "./resilience/resilient-gateway.ts";
export {
  type MetricsSink,
  type RequestInfo,
  type RequestMetrics,
  reportMetrics,
  requestInfo,
} from "./resilience/telemetry.ts";
export { type OtlpOptions, otlpExporter } from "./telemetry/otlp-exporter.ts";
