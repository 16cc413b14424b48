/**
 * The wire protocol: the frames that WebSocket, server-sent events and RPC subscribers get, and those a client sends.
 *
 * WIRE-1  `seq` is the journal's entry number; frames that have one ascend strictly and may skip.
 * WIRE-2  Text deltas carry no `seq`; `offset` counts UTF-16 units from the message's beginning.
 * WIRE-3  Ids stand at the frame's top level, never in `data`.
 */
import { z } from "zod";
import type { OutputSpec } from "../model/context.ts";
import { type Content, contentSchema } from "../shared/content-schema.ts";
import type { JsonObject } from "../shared/json.ts";
import {
  clientToolsSchema,
  isOutcome,
  ONE_OUTCOME,
  outcomeFields,
  toolChoiceSchema,
} from "./client-tools.ts";

export type { Content, MediaPart, TextPart } from "../shared/content-schema.ts";

export const PROTOCOL_VERSION = 1;

/** The WebSocket subprotocol of this version. */
export const SUBPROTOCOL = "dramatis.v1";
/** A token travels as a second subprotocol, behind this prefix. */
export const BEARER_PREFIX = "bearer.";

/** The close code of a connection whose principal is not, or no longer, let in. */
export const UNAUTHORIZED_CLOSE = 4401;
/** The close code of a conversation that does not exist for this principal. */
export const NOT_FOUND_CLOSE = 4404;
/** The close code of a connection that sent, or would be, too much. */
export const FLOOD_CLOSE = 4429;

/** An uploaded image or file; `url` names it in parts of content, in its own conversation. */
export interface AttachmentView {
  id: string;
  mediaType: string;
  /** Bytes. */
  size: number;
  name?: string;
  url: string;
}

export interface WireError {
  code: string;
  message: string;
  retriable: boolean;
}

export interface MessageView {
  id: string;
  turnId: string;
  role: "user" | "agent";
  content: Content;
  /** ISO 8601 UTC. */
  createdAt: string;
  agentId?: string;
  clientId?: string;
}

export interface TurnSummary {
  id: string;
  status: "active" | "completed" | "failed";
  agentId: string;
  createdAt: string;
  completedAt: string | null;
  error?: WireError;
  issues?: TurnIssues;
  /** The data of its answer, where it asked for data. Lists of turns leave it out. */
  output?: unknown;
}

export interface TurnIssues {
  toolFailures?: number;
  memoryExtractionFailed?: boolean;
}

export interface OperationView {
  id: string;
  turnId: string;
  name: string;
  input: unknown;
  /** A client runs it: the turn waits for its result. */
  client?: true;
  state: "running" | "completed" | "failed";
  result?: unknown;
  error?: WireError;
}

export interface ConversationView {
  id: string;
  title: string | null;
  status: "active" | "waiting" | "completed" | "failed";
  gate: "idle" | "running" | "cancelled";
  agentId: string;
  projectId: string;
  participants: { type: "user" | "agent"; id: string }[];
  createdAt: string;
  /** Where it is asked for by itself; snapshots have none. */
  usage?: UsageView;
}

/** What model calls used, failed attempts included. */
export interface UsageView {
  inputTokens: number;
  /** The part of the input that came from a provider's cache. */
  cachedInputTokens: number;
  outputTokens: number;
  /** US dollars, of the calls whose model has prices. */
  cost: number;
  calls: number;
}

/** What the conversations of an agent used together. */
export interface AgentUsage extends UsageView {
  agentId: string;
  /** Conversations in which a model was called. */
  conversations: number;
}

/** A conversation as lists show it: without what changes with every turn. */
export type ConversationSummary = Omit<ConversationView, "status" | "gate" | "usage">;

export interface Snapshot {
  conversation: ConversationView;
  /** The turns of `messages`, and every active one. */
  turns: TurnSummary[];
  /** The last page; older ones by HTTP. */
  messages: MessageView[];
  partials: { messageId: string; turnId: string; text: string }[];
  operations: OperationView[];
}

interface FrameData {
  snapshot: Snapshot;
  "conversation.updated": { title?: string | null; status?: string };
  "turn.started": { clientId?: string; agentId: string };
  /** All that the turn still waits for are results of tools that a client runs. */
  "turn.waiting": { reason: "client-tools" };
  "turn.completed": { issues?: TurnIssues; output?: unknown };
  "turn.failed": { error: WireError };
  "turn.finalized": { memoryExtractionStatus: "completed" | "failed" | "skipped" };
  "message.user": { clientId?: string; content: Content };
  "message.started": { agentId: string };
  "message.delta": { offset: number; text: string };
  "message.reset": { reason: string };
  "message.completed": { agentId: string; content: string; interim?: true };
  "tool.requested": { name: string; input: unknown; async: boolean; client?: true };
  "tool.progress": { progress: unknown };
  "tool.completed": { result: unknown };
  "tool.failed": { error: WireError };
  error: { code: string; message: string; retriable?: boolean; ref?: string };
  pong: Record<string, never>;
}

export type FrameType = keyof FrameData;

export type Frame = {
  [Type in FrameType]: {
    v: 1;
    type: Type;
    /** Present on durable facts only. */
    seq?: number;
    turnId?: string;
    messageId?: string;
    operationId?: string;
    /** ISO 8601 UTC. */
    time: string;
    data: FrameData[Type];
  };
}[FrameType];

const identifier = z.string().min(1).max(200);

/** The schema is checked where the turn starts. */
const schemaObject = z.record(z.string(), z.unknown()) as unknown as z.ZodType<JsonObject>;

/** What a turn's answer must look like; `name` is told to the model. */
export const outputSchema: z.ZodType<OutputSpec> = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, "Must be 1 to 64 letters, digits, `_` and `-`.")
    .default("answer"),
  schema: schemaObject,
});

/** What a client may send over a WebSocket. `id` is the client's idempotency key. */
export const clientFrameSchema = z.discriminatedUnion("type", [
  z.strictObject({
    v: z.literal(PROTOCOL_VERSION).optional(),
    type: z.literal("turn.start"),
    id: identifier,
    content: contentSchema,
    replyToMessageId: identifier.exactOptional(),
    tools: clientToolsSchema.exactOptional(),
    toolChoice: toolChoiceSchema.exactOptional(),
    output: outputSchema.exactOptional(),
  }),
  z
    .strictObject({
      v: z.literal(PROTOCOL_VERSION).optional(),
      type: z.literal("tool.result"),
      operationId: identifier,
      ...outcomeFields,
    })
    .refine(isOutcome, ONE_OUTCOME),
  z.strictObject({ v: z.literal(PROTOCOL_VERSION).optional(), type: z.literal("ping") }),
]);

export type ClientFrame = z.infer<typeof clientFrameSchema>;

/** The types of frames that a client may send. */
export const CLIENT_FRAME_TYPES = [
  "turn.start",
  "tool.result",
  "ping",
] as const satisfies ClientFrame["type"][];
