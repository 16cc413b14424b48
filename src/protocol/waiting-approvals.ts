/** Requests that wait for people, as the inbox lists them: calls of tools, and gates of runs. */
import { z } from "zod";
import type { PageOptions } from "../shared/page.ts";
import { answeredBy } from "./move-schemas.ts";
import { anyJson, count, ids, runId, time } from "./scalars.ts";
import { HUMAN_KINDS } from "./task-definition.ts";

const area = z.record(z.string(), anyJson);

const waiting = {
  operationId: z.string().describe("Names the request in the answer."),
  projectId: z.string(),
  ...answeredBy,
  input: area.describe("Absent if it is too large for the list.").exactOptional(),
  requestedAt: time,
  /** Absent if the request waits without a limit. */
  expiresAt: time.exactOptional(),
};

const waitingCall = z.strictObject({
  kind: z.literal("tool"),
  ...waiting,
  conversationId: ids.conversation,
  turnId: ids.turn,
  agentId: ids.agent,
  name: z.string().describe("The name of the tool."),
  /** The task or the workflow that runs, as `library/id`. Absent if the tool has no target. */
  target: z.string().exactOptional(),
});

/** A call of a tool that waits for a person. */
export type WaitingCall = z.infer<typeof waitingCall>;

const waitingGate = z.strictObject({
  kind: z.literal("gate"),
  ...waiting,
  runId,
  workflow: z.strictObject({ library: ids.library, id: ids.definition, version: count }),
  /** Absent if the run itself asks for more time. */
  node: z.string().exactOptional(),
  question: z.enum(HUMAN_KINDS),
  prompt: z.string(),
  schema: area.describe("JSON Schema of the answer."),
});

/** A gate of a run. */
export type WaitingGate = z.infer<typeof waitingGate>;

export const waitingApproval = z
  .union([waitingCall, waitingGate])
  .meta({ id: "WaitingApproval", description: "A call of a tool, or a gate, that waits for a person." });

export type WaitingApproval = WaitingCall | WaitingGate;

/** A request, and the people who may answer it, by the names that `namesOf` returns. */
export interface ListedApproval {
  approval: WaitingApproval;
  approvers: string[];
}

/** Selects the requests of a list. Absent members do not filter. */
export interface ApprovalFilter {
  kind?: WaitingApproval["kind"];
  agent?: string;
  conversation?: string;
  run?: string;
  /** Requests since this time, in milliseconds since the epoch. */
  since?: number;
}

export type ApprovalsRequest = PageOptions & ApprovalFilter;
