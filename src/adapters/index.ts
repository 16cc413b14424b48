/** Public surface of `dramatis/adapters`: provider formats, the gateway, and what assembles a reply. */
export { aiSdkFormat } from "./ai-sdk.ts";
export { anthropicFormat } from "./anthropic.ts";
export { costOf, type Prices } from "./cost.ts";
export { defaultModelProfile, type ModelEnvironment, OFFLINE_PROFILE } from "./default-profile.ts";
export type { AiBinding, GatewayPorts } from "./gateway/ports.ts";
export { createModelGateway, secretsOf } from "./gateway.ts";
export { geminiFormat } from "./gemini.ts";
export { adapterFor, resolveProvider } from "./lookup.ts";
export { type ModelSummariserOptions, modelSummariser } from "./model-summariser.ts";
export { offlineModel } from "./offline/model.ts";
export { offlineFormat } from "./offline.ts";
export { openaiFormat } from "./openai.ts";
export { openaiResponsesFormat } from "./openai-responses.ts";
export { collectReply, ReplyAccumulator, type ReplyOutcome } from "./reply.ts";
export type { BreakerSettings } from "./resilience/breaker.ts";
export type { ClassifiedError, Classifier } from "./resilience/classify.ts";
export { mayFallBack } from "./resilience/classify.ts";
export { type GuardedGatewayOptions, guardGateway } from "./resilience/guarded-gateway.ts";
export { type HostGuardOptions, HostGuards } from "./resilience/host-guards.ts";
export type { CompletedAttempt, Interceptor } from "./resilience/interceptors.ts";
export type { ConcurrencyLimit } from "./resilience/limiter.ts";
export { type MetricsSink, type RequestMetrics, reportMetrics } from "./resilience/metrics.ts";
export type { ResilienceProfile } from "./resilience/profile.ts";
export { type RequestInfo, requestInfo } from "./resilience/request-info.ts";
export {
  createResilientGateway,
  type ResilientDelta,
  type ResilientGateway,
  type ResilientGatewayOptions,
  type ResilientRequest,
} from "./resilience/resilient-gateway.ts";
export { mayReceiveKey, type TrustedHost, type TrustOptions, trustedHosts } from "./trusted-hosts.ts";
export * from "./types.ts";
export {
  type ModelFormatAdapter,
  type WorkersAIChatMessage,
  workersAIAdapter,
  workersAIFormat,
} from "./workers-ai.ts";
