/** Entry `dramatis/sessions`: contexts of a model from the events of a session, and compaction. */

export {
  type Compaction,
  type CompactionPlan,
  type CompactOptions,
  type PlanCompactionOptions,
  planCompaction,
  type Summariser,
  type SummariserInput,
} from "./memory/session/compaction.ts";
export { dehydrateEvent, hydrateEvent } from "./memory/session/event-rows.ts";
export { eventToMessage, messageToEvent } from "./memory/session/events.ts";
export {
  EventAction,
  type LoadEventsOptions,
  type SessionEvent,
  type StoredEvent,
  type StoredSession,
} from "./memory/session/session-event.ts";
export {
  extractiveSummariser,
  type ModelSummariserOptions,
  modelSummariser,
} from "./memory/session/summarisers.ts";
export { type CountedTool, estimateTokens, type TokenCounter } from "./memory/session/tokens.ts";
export {
  type BuildContextOptions,
  buildWorkingContext,
  type ContextBuilderOptions,
  WorkingContext,
} from "./memory/session/working-context.ts";
export { DurableSqlDatabase } from "./ports/workers/durable-storage.ts";
