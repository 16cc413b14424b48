/** The turns of a tenant in the directory: their records, and the filters of their list. */
import { z } from "zod";
import type { PageOptions } from "../shared/page.ts";
import { startingCaller, turnIssues } from "./caller-schemas.ts";
import { ids, runId, time } from "./scalars.ts";
import { dollars, turnTokens } from "./usage-schemas.ts";

export const MAX_RECORD_MESSAGES = 8;
/** Length of a message's text in a record, in UTF-16 units. A longer text is cut and gets an ellipsis. */
export const MAX_RECORD_TEXT = 4_000;
/** Tools and runs of a turn in its record, each. */
export const MAX_RECORD_NAMES = 100;

const TURN_STATUSES = ["active", "completed", "failed"] as const;
/** The statuses of the filter. `stopped` selects failed turns that were stopped, and `failed` the other failed turns. */
export const LISTED_STATUSES = [...TURN_STATUSES, "stopped"] as const;
/** Failures that a turn survived. `tool`: a call of a tool failed. */
export const LISTED_ISSUES = ["tool"] as const;
export const TARGET_KINDS = ["code", "client", "agent", "workflow"] as const;

export const turnRecord = z
  .strictObject({
    id: ids.turn,
    conversationId: ids.conversation,
    agentId: ids.agent,
    projectId: z.string(),
    userId: z
      .string()
      .describe("The person with the message that led to the turn, if there is such a person.")
      .exactOptional(),
    caller: startingCaller.exactOptional(),
    status: z.enum(TURN_STATUSES),
    errorCode: z.string().exactOptional(),
    issues: turnIssues.describe("The failures that did not stop the turn, if there are any.").exactOptional(),
    createdAt: time,
    completedAt: time.nullable(),
    updatedAt: time
      .describe(
        "The time of the newest reply of the model, or of the newest answer to a request for approval. Only while the turn is active and has one.",
      )
      .exactOptional(),
    correlationId: z.string(),
    tools: z.array(z.string()).describe("The tools that the turn called, as `library/id`."),
    targetKinds: z.array(z.enum(TARGET_KINDS)).describe("What ran these calls."),
    runIds: z.array(runId).describe("The run that started the turn, and the runs that it started."),
    usage: turnTokens,
    /** `null` if no called model has prices. */
    cost: dollars.nullable(),
    replacedBy: ids.turn.describe("The turn that replaced this turn.").exactOptional(),
    messages: z
      .array(
        z.strictObject({
          id: ids.message,
          role: z.enum(["user", "agent"]),
          text: z.string().describe(`At most ${MAX_RECORD_TEXT} characters. An ellipsis marks a cut.`),
        }),
      )
      .describe(`The first message of the turn, and the last. At most ${MAX_RECORD_MESSAGES}.`),
  })
  .meta({ id: "TurnRecord", description: "A turn in the list of a tenant." });

export type TurnRecord = z.infer<typeof turnRecord>;

/** Selects the turns of a list. Absent members do not filter. */
export interface TurnFilter {
  agent?: string;
  user?: string;
  conversation?: string;
  status?: (typeof LISTED_STATUSES)[number];
  issues?: (typeof LISTED_ISSUES)[number];
  /** As `library/id`. */
  tool?: string;
  targetKind?: TurnRecord["targetKinds"][number];
  run?: string;
  /** Turns that began at this time or later, in milliseconds since the epoch. */
  since?: number;
  /** Turns that began before this time. */
  until?: number;
}

export type TurnsRequest = PageOptions & TurnFilter;

/** Selects tasks: the turns that messages of one person started. Absent members do not filter. */
export interface TaskFilter {
  conversation?: string;
  status?: (typeof LISTED_STATUSES)[number];
  /** Tasks that changed at this time or later, ISO 8601 in UTC with milliseconds. */
  since?: string;
}

export interface ListedTask {
  id: string;
  conversationId: string;
  status: TurnRecord["status"];
  errorCode?: string;
  /** The time of its last change, ISO 8601. */
  at: string;
  /** Continues the list after this task. */
  cursor: string;
}

export interface ListedTasks {
  tasks: ListedTask[];
  /** Absent on the last page. A page may have fewer tasks than its limit. */
  nextCursor?: string;
  /** The number of matching tasks among the newest 1,000 of the person. */
  total: number;
}

/** Tasks of an agent. `limit` is from 1 to 100. */
export type TasksRequest = TaskFilter & { agentId: string; limit: number; cursor?: string };
