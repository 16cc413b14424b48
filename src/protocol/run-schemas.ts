/** Schemas of runs of workflows, as clients see them. */
import { z } from "zod";
import { definitionIdSchema } from "../shared/id-schemas.ts";
import { answeredBy, wireError } from "./move-schemas.ts";
import { anyJson, count, ids, runId, time } from "./scalars.ts";
import { HUMAN_KINDS } from "./task-definition.ts";
import { spending } from "./usage-schemas.ts";
import type { WorkflowDefinition } from "./workflow-definition.ts";
import { RUN_ENTRY_TYPES, RUN_STATUSES } from "./workflow-run.ts";

/** The states of a token that has not ended. */
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
const nodeRef = z.string().meta({ description: "The `ref` of a node." });

export const activeToken = z.strictObject({
  token: count,
  node: nodeRef,
  status: z.enum(ACTIVE_STATUSES).meta({
    description:
      "`lost`: the work was interrupted and may have taken effect; its result may still come. `waiting_for_part`: a run of its own has a part of the branches of a wide fan-out.",
  }),
  path: z.string().meta({ description: "The branches around it.", example: "root.start.0" }),
  /** The attempt of its work. */
  attempt: z.exactOptional(z.int().min(1)),
  /** The run exists a moment after its id: until then a request for it is `NOT_FOUND`. */
  runId: z.exactOptional(runId.meta({ description: "The run of its sub-workflow, or of its part." })),
  /** The conversation of the agent: its own, or with `loop_in` the conversation that started the run. */
  conversationId: z.exactOptional(ids.conversation),
});

/** A token that has not ended. */
export type ActiveToken = z.infer<typeof activeToken>;

export const gate = z.strictObject({
  /** Names the gate in answers. */
  operationId: z.string(),
  token: z.exactOptional(count),
  node: z.exactOptional(nodeRef.meta({ description: "Absent where the run itself asks for more time." })),
  kind: z.enum(HUMAN_KINDS),
  prompt: z.string(),
  input: area.meta({ description: "The subject of the question." }),
  schema: area.meta({ description: "JSON Schema of the answer." }),
  /** Absent if the gate waits without a limit. */
  expiresAt: z.exactOptional(time),
  ...answeredBy,
});

/** A question that waits for a person. The rule is present if its definition has one. */
export type GateView = z.infer<typeof gate>;

const workflow = z.strictObject({ library: ids.library, id: ids.definition, version: count });
const runMembers = {
  id: runId,
  name: z.exactOptional(
    z.string().meta({
      description: "The name that its request gave, or the name of its workflow. Absent without both.",
      example: "Summaries of March",
    }),
  ),
  workflow,
  projectId: definitionIdSchema,
  status: z.enum(RUN_STATUSES),
  startedBy: z.string().meta({ description: "The subject that started it." }),
  createdAt: time,
  endedAt: z.exactOptional(time).meta({ description: "Absent before the end." }),
};

export const runSummary = z
  .strictObject({
    ...runMembers,
    errorCode: z.exactOptional(z.string()).meta({ description: "The code of the run's error." }),
  })
  .meta({ id: "RunSummary", description: "A run in a list." });

/** A run in a list. */
export type RunSummary = z.infer<typeof runSummary>;

export const run = z
  .strictObject({
    ...runMembers,
    correlationId: z.string().meta({
      description:
        "The id that the run shares with all work that follows from the same message, request or trigger.",
    }),
    input: area,
    /** Values after the first 4 Mi characters are `null`. */
    state: area,
    omitted: z.exactOptional(
      z
        .array(z.string())
        .meta({ description: "Members of `state` that are `null` because it is too large." }),
    ),
    output: z.exactOptional(area),
    error: z.exactOptional(runError),
    retry: z.exactOptional(
      z
        .strictObject({
          tokens: count.meta({ description: "The tokens that begin again." }),
          repeatsOnce: z.array(nodeRef).meta({
            description: "Nodes with effects that may happen twice. A retry must set `repeatOnce`.",
          }),
        })
        .meta({ description: "Present where the run has failed and can be retried." }),
    ),
    seq: count.meta({ description: "The number of its newest journal entry." }),
    tokens: count.meta({ description: "Tokens that were made." }),
    usage: spending.meta({
      description:
        "The usage of its tasks, sub-workflows and agents so far. `toolCalls` counts the calls of its agents.",
    }),
    issues: z.exactOptional(
      z
        .array(
          z.strictObject({
            code: z.literal("UNDELIVERED"),
            deadLetter: ids.deadLetter,
            message: z.string(),
          }),
        )
        .meta({
          description: "Reports to the caller of the run that did not arrive, so the caller still waits.",
        }),
    ),
    gates: z.array(gate).meta({ description: "Questions that wait for a person; the first 100." }),
    active: z.array(activeToken).meta({ description: "Tokens that have not ended; the first 1 000." }),
  })
  .meta({ id: "Run", description: "A run of a workflow." });

/** A run. */
export type RunView = z.infer<typeof run>;

const entryMembers = {
  seq: z.int().min(1),
  time,
  type: z.enum(RUN_ENTRY_TYPES),
  token: z.exactOptional(count),
  node: z.exactOptional(nodeRef),
  data: z.exactOptional(anyJson),
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
    hash: z.string().meta({ description: "SHA-256 of the definition as canonical JSON, in hex." }),
    // SAFETY: the schema describes a part of the definition, whose own schema has checked it.
    definition: workflowDefinition as unknown as z.ZodType<WorkflowDefinition>,
  })
  .meta({ id: "RunWorkflow", description: "The workflow of a run, as the run keeps it." });

/** The workflow of a run, as the run keeps it. It never changes. */
export type RunWorkflow = z.infer<typeof runWorkflow>;
