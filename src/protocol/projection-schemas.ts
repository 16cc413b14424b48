/** The projections of a conversation's journal, as their readers see them. */
import { z } from "zod";
import type { PageOptions } from "../shared/page.ts";
import { content, journalEntry } from "./conversation-schemas.ts";
import { anyValue, count, ids, time } from "./scalars.ts";

export const PROJECTIONS = [
  "timeline",
  "llm_context",
  "diagnostics",
  "subagent_status",
  "pending_tool_calls",
  "canonical_timeline",
  "canonical_llm_context",
] as const;

const CANONICAL_TYPES = [
  "conv.in.message.received",
  "conv.out.assistant.delta",
  "conv.out.assistant.completed",
  "conv.out.tool.status",
  "conv.audit.policy.decision_recorded",
] as const;

const canonicalEvent = z
  .strictObject({
    specversion: z.literal("1.0"),
    id: z.string().meta({
      description: "The number of the entry. A piece of a message also has the number of the piece.",
      example: "12.1",
    }),
    type: z.enum(CANONICAL_TYPES),
    subject: z.string().meta({ example: "project/default/conversation/conv_01JD0000000000000000000000" }),
    time,
    data: z.record(z.string(), anyValue),
    extensions: z.strictObject({
      contract_major: z.literal(1),
      correlation_id: z.string().exactOptional(),
    }),
  })
  .meta({ id: "CanonicalEvent", description: "An event of the canonical timeline." });

const gate = z.enum(["idle", "running", "cancelled"]);

const toolCall = z
  .strictObject({
    operationId: ids.operation,
    turnId: ids.turn,
    name: z.string(),
    state: z.string().meta({ example: "running" }),
    input: anyValue,
    async: z.literal(true).exactOptional(),
    requestedAt: time,
  })
  .meta({ id: "PendingToolCall", description: "A call of a tool without a result." });

const subAgent = z
  .strictObject({
    operationId: ids.operation,
    turnId: ids.turn,
    template: z.string().exactOptional(),
    agentId: ids.agent.exactOptional(),
    conversationId: ids.conversation.exactOptional(),
    correlationId: z.string(),
    state: z.string().meta({ example: "completed" }),
    code: z.string().describe("The code of the error, if it failed.").exactOptional(),
    time: time.describe("The time of its newest entry."),
  })
  .meta({ id: "SubAgentStatus", description: "A sub-agent of the conversation." });

const contextMessage = z.strictObject({
  role: z.enum(["user", "agent"]),
  messageId: ids.message,
  turnId: ids.turn,
  content,
});

/** The members that all projections have. `Name` is the name of the projection. */
function projected<Name extends (typeof PROJECTIONS)[number]>(name: Name) {
  return {
    name: z.literal(name),
    conversationId: ids.conversation,
    seq: count.describe("The number of the newest entry that the projection contains."),
  };
}

const nextCursor = z.string().exactOptional();

export const projection = z
  .discriminatedUnion("name", [
    z.strictObject({ ...projected("timeline"), entries: z.array(journalEntry), nextCursor }),
    z.strictObject({
      ...projected("llm_context"),
      projectId: z.string(),
      status: gate,
      eventCount: count,
      messages: z.array(contextMessage),
      pendingToolCalls: z.array(toolCall),
    }),
    z.strictObject({
      ...projected("diagnostics"),
      status: gate,
      conversationStatus: z.enum(["active", "waiting", "completed", "failed"]),
      eventCount: count,
      eventCounts: z.record(z.string(), count).describe("The number of entries by type."),
      turnCount: count,
      activeTurnCount: count,
      queueSize: count,
      pendingToolCallCount: count,
      pendingSubagentCount: count,
      lastEventType: z.string().nullable(),
      drainIteration: count,
      maxQueueSize: count,
      maxDrainSteps: count,
    }),
    z.strictObject({
      ...projected("subagent_status"),
      active: z.array(subAgent),
      completed: z.array(subAgent),
      count,
      activeCount: count,
      completedCount: count,
    }),
    z.strictObject({ ...projected("pending_tool_calls"), calls: z.array(toolCall) }),
    z.strictObject({ ...projected("canonical_timeline"), events: z.array(canonicalEvent), nextCursor }),
    z.strictObject({
      ...projected("canonical_llm_context"),
      subject: z.string(),
      status: gate,
      messages: z.array(
        z.strictObject({
          role: z.enum(["user", "assistant", "tool"]),
          seq: z.int().min(1),
          data: canonicalEvent.shape.data,
        }),
      ),
    }),
  ])
  .meta({ id: "Projection", description: "A projection of a conversation's journal." });

/** Options of a projection. They are for the projections that are lists. */
export interface ProjectionOptions extends PageOptions {
  /** Entries of this turn; all when absent. For `timeline`. */
  turn?: string;
}

export type Projection = z.infer<typeof projection>;
export type ProjectionName = Projection["name"];
export type CanonicalEvent = z.infer<typeof canonicalEvent>;
export type PendingToolCall = z.infer<typeof toolCall>;
export type SubAgentStatus = z.infer<typeof subAgent>;
