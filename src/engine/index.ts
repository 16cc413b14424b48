/** Entry `dramatis/engine`: conversations and turns over any store and any provider, without Workers. */

export type { HistoryLimits } from "../memory/session/history.ts";
export {
  type ClosedCall,
  closeCallRecord,
  type OpenCall,
  openCallRecord,
  type ProviderCallRecord,
  type RequestOutcome,
} from "../model/call-record.ts";
export type * from "../model/context.ts";
export {
  type AgentContext,
  agentContextOf,
  type CallSite,
  extensionsOf,
  type RequestClass,
  type RequestExtensions,
  runIdOf,
} from "../model/correlation.ts";
export type { ErrorCategory, ModelError } from "../model/error.ts";
export type * from "../model/gateway.ts";
export type { ContextMessage, ContextPart, NativeReply, ToolCall } from "../model/messages.ts";
export type * from "../model/profile.ts";
export type * from "../model/reply.ts";
export type { TokenUsage } from "../model/usage.ts";
export type { Clock } from "../ports/clock.ts";
export type { Ids } from "../ports/ids.ts";
export type { SqlDatabase, SqlRow, SqlValue } from "../ports/sql-database.ts";
export { systemClock, systemIds } from "../ports/system.ts";
export { DramatisError, type ErrorCode, type InputIssue } from "../shared/errors.ts";
export type { CallContext } from "../shared/identifiers.ts";
export type { Facts } from "../shared/json.ts";
export type { CallbackContext, ConversationHooks, OnCallbackError } from "./callbacks.ts";
export type { ChunkEvent } from "./chat-call.ts";
export type { ConversationStore, ListOptions } from "./conversation-store.ts";
export { createProviderAdapter, type ProviderAdapterOptions } from "./create-provider-adapter.ts";
export type * from "./design-names.ts";
export {
  type ConversationEngine,
  type ConversationEngineConfig,
  createConversationEngine,
  type NewConversation,
} from "./engine.ts";
export { ProviderCallError } from "./failures.ts";
export {
  createHistoryBuilder,
  type HistoryBuilder,
  type HistoryBuilderContext,
  type HistoryBuilderOptions,
  type HistoryBuildResult,
} from "./history.ts";
export { InMemoryConversationStore } from "./in-memory-store.ts";
export type { MessageMedia, MessagePart } from "./message-parts.ts";
export { fromContextMessage, toContextMessages } from "./messages.ts";
export {
  type ConfiguredProvider,
  defaultPlanner,
  type PlannedTurn,
  type PlanTurnInput,
  type TurnPlanner,
} from "./planner.ts";
export type {
  CallFacts,
  ChatInputMessage,
  NewMessage,
  ProviderAdapter,
  ProviderCallOptions,
  ProviderChatRequest,
  ProviderChatResult,
  ProviderStreamChunk,
} from "./provider-adapter.ts";
export type * from "./records.ts";
export { SqliteConversationStore } from "./sqlite-store.ts";
export type { RunTurn, TurnEvent } from "./turn-execution.ts";
