/** Schemas of runs of workflows, as clients see them. */
import { z } from "zod";
import { definitionIdSchema } from "../shared/id-schemas.ts";
import { answeredBy, wireError } from "./move-schemas.ts";
import { anyJson, count, ids, runId, time } from "./scalars.ts";
import { HUMAN_KINDS } from "./task-definition.ts";
import { spending } from "./usage-schemas.ts";
import type { WorkflowDefinition } from "./workflow-definition.ts";
import { RUN_ENTRY_TYPES, RUN_STATUSES } from "./workflow-run.ts";

const ACTIVE_STATUSES = [
  "pending",
  "executing",
  "lost",
  "waiting_for_subworkflow",
  "waiting_for_part",
  "waiting_for_agent",
  "awaiting_human_input",
] as const;

const runError = z.strictObject({ code: z.string(), message: z.string() });
const area = z.record(z.string(), anyJson);
const nodeRef = z.string().describe("The `ref` of a node.");

export const activeToken = z.strictObject({
  token: count,
  node: nodeRef,
  status: z
    .enum(ACTIVE_STATUSES)
    .describe(
      "`lost`: the work was interrupted and may have taken effect; its result may still come. `waiting_for_part`: a run of its own has a part of the branches of a wide fan-out.",
    ),
  path: z.string().meta({ description: "The branches around it.", example: "root.start.0" }),
  /** The attempt of its work. */
  attempt: z.int().min(1).exactOptional(),
  /** The run exists a moment after its id: until then a request for it is `NOT_FOUND`. */
  runId: runId.describe("The run of its sub-workflow, or of its part.").exactOptional(),
  /** The conversation of the agent: its own, or with `loop_in` the conversation that started the run. */
  conversationId: ids.conversation.exactOptional(),
});

/** A token that has not ended. */
export type ActiveToken = z.infer<typeof activeToken>;

export const gate = z.strictObject({
  /** Names the gate in answers. */
  operationId: z.string(),
  token: count.exactOptional(),
  node: nodeRef.describe("Absent where the run itself asks for more time.").exactOptional(),
  kind: z.enum(HUMAN_KINDS),
  prompt: z.string(),
  input: area.describe("The subject of the question."),
  schema: area.describe("JSON Schema of the answer."),
  /** Absent if the gate waits without a limit. */
  expiresAt: time.exactOptional(),
  ...answeredBy,
});

/** A question that waits for a person. The rule is present if its definition has one. */
export type GateView = z.infer<typeof gate>;

const workflow = z.strictObject({ library: ids.library, id: ids.definition, version: count });
const runMembers = {
  id: runId,
  name: z
    .string()
    .meta({
      description: "The name that its request gave, or the name of its workflow. Absent without both.",
      example: "Summaries of March",
    })
    .exactOptional(),
  workflow,
  projectId: definitionIdSchema,
  status: z.enum(RUN_STATUSES),
  startedBy: z.string().describe("The subject that started it."),
  createdAt: time,
  endedAt: time.exactOptional().describe("Absent before the end."),
};

export const runSummary = z
  .strictObject({
    ...runMembers,
    inputPreview: z
      .string()
      .meta({ description: "The beginning of the input as JSON.", example: '{"month":"2026-03"}' })
      .exactOptional(),
    errorCode: z.string().exactOptional().describe("The code of the run's error."),
  })
  .meta({ id: "RunSummary", description: "A run in a list." });

/** A run in a list. */
export type RunSummary = z.infer<typeof runSummary>;

export const run = z
  .strictObject({
    ...runMembers,
    correlationId: z
      .string()
      .describe(
        "The id that the run shares with all work that follows from the same message, request or trigger.",
      ),
    input: area,
    /** Values after the first 4 Mi characters are `null`. */
    state: area,
    omitted: z
      .array(z.string())
      .describe("Members of `state` that are `null` because it is too large.")
      .exactOptional(),
    output: area.exactOptional(),
    error: runError.exactOptional(),
    retry: z
      .strictObject({
        tokens: count.describe("The tokens that begin again."),
        repeatsOnce: z
          .array(nodeRef)
          .describe("Nodes with effects that may happen twice. A retry must set `repeatOnce`."),
      })
      .describe("Present where the run has failed and can be retried.")
      .exactOptional(),
    seq: count.describe("The number of its newest journal entry."),
    tokens: count.describe("Tokens that were made."),
    usage: spending.describe(
      "The usage of its tasks, sub-workflows and agents so far. `toolCalls` counts the calls of its agents.",
    ),
    issues: z
      .array(
        z.strictObject({
          code: z.literal("UNDELIVERED"),
          deadLetter: ids.deadLetter,
          message: z.string(),
        }),
      )
      .describe("Reports to the caller of the run that did not arrive, so the caller still waits.")
      .exactOptional(),
    gates: z.array(gate).describe("Questions that wait for a person; the first 100."),
    active: z.array(activeToken).describe("Tokens that have not ended; the first 1 000."),
  })
  .meta({ id: "Run", description: "A run of a workflow." });

/** A run. */
export type RunView = z.infer<typeof run>;

const entryMembers = {
  seq: z.int().min(1),
  time,
  type: z.enum(RUN_ENTRY_TYPES),
  token: count.exactOptional(),
  node: nodeRef.exactOptional(),
  data: anyJson.exactOptional(),
};

export const runEntry = z
  .strictObject(entryMembers)
  .meta({ id: "RunEntry", description: "An entry of the journal of a run." });

/** An entry of the journal of a run. */
export type RunEntryView = z.infer<typeof runEntry>;

export const entryEvent = z.strictObject({ v: z.literal(1), ...entryMembers });

/** An event of a stream that follows a run. Its `id` is the `seq`. */
export type RunEvent = z.infer<typeof entryEvent>;
const streamError = z.strictObject({
  v: z.literal(1),
  type: z.literal("error"),
  data: wireError,
});

/** The last event of a stream after the principal expired. It has no `id`. */
export type RunStreamError = z.infer<typeof streamError>;

export const runEvent = z.union([entryEvent, streamError]).meta({
  id: "RunEvent",
  description:
    "An entry of the journal of a run as a server-sent event: each `data:` is one, and each `id:` its `seq`. An `error`, which has no `seq`, ends the stream of an expired token.",
});

export const workflowDefinition = z
  .looseObject({ nodes: z.array(z.unknown()), transitions: z.array(z.unknown()) })
  .meta({
    id: "Workflow",
    description: "A graph of tasks, workflows and agents.",
    example: {
      inputSchema: { type: "object" },
      initialNode: "greet",
      nodes: [{ ref: "greet", task: "demo/greet" }],
      transitions: [],
    },
  });

export const runWorkflow = z
  .strictObject({
    ...workflow.shape,
    hash: z.string().describe("SHA-256 of the definition as canonical JSON, in hex."),
    // SAFETY: the schema describes a part of the definition, whose own schema has checked it.
    definition: workflowDefinition as unknown as z.ZodType<WorkflowDefinition>,
  })
  .meta({ id: "RunWorkflow", description: "The workflow of a run, as the run keeps it." });

/** The workflow of a run, as the run keeps it. It never changes. */
export type RunWorkflow = z.infer<typeof runWorkflow>;
