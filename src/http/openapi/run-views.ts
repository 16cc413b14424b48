/** Schemas of runs of workflows. */
import { z } from "zod";
import {
  ACTIVE_STATUSES,
  type ActiveToken,
  type GateView,
  type RunEntryView,
  type RunView,
} from "../../protocol/coordinator-api.ts";
import { HUMAN_KINDS } from "../../protocol/task-definition.ts";
import { RUN_ENTRY_TYPES, RUN_STATUSES, type RunError } from "../../protocol/workflow-run.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import { anyJson, count, ids, runId, time } from "./scalars.ts";

const runError: z.ZodType<RunError> = z.strictObject({ code: z.string(), message: z.string() });
const area = z.record(z.string(), anyJson);
const nodeRef = z.string().meta({ description: "The `ref` of a node." });

const activeToken: z.ZodType<ActiveToken> = z.strictObject({
  token: count,
  node: nodeRef,
  status: z.enum(ACTIVE_STATUSES).meta({
    description: "`lost`: the work was interrupted and may have taken effect; its result may still come.",
  }),
  path: z.string().meta({ description: "The branches around it.", example: "root.start.0" }),
  attempt: z.exactOptional(z.int().min(1)),
  runId: z.exactOptional(runId),
  conversationId: z.exactOptional(ids.conversation),
});

const gate: z.ZodType<GateView> = z.strictObject({
  operationId: z.string(),
  token: z.exactOptional(count),
  node: z.exactOptional(nodeRef.meta({ description: "Absent where the run itself asks for more time." })),
  kind: z.enum(HUMAN_KINDS),
  prompt: z.string(),
  input: area.meta({ description: "What the question is about." }),
  schema: area.meta({ description: "JSON Schema of the answer." }),
  expiresAt: z.exactOptional(time),
});

export const run: z.ZodType<RunView> = z
  .strictObject({
    id: runId,
    workflow: z.strictObject({ library: ids.library, id: ids.definition, version: count }),
    projectId: definitionIdSchema,
    status: z.enum(RUN_STATUSES),
    startedBy: z.string().meta({ description: "The subject that started it." }),
    createdAt: time,
    input: area,
    state: area,
    output: z.exactOptional(area),
    error: z.exactOptional(runError),
    seq: count.meta({ description: "The number of its newest journal entry." }),
    tokens: count.meta({ description: "Tokens that were made." }),
    gates: z.array(gate).meta({ description: "Questions that wait for a person; the first 100." }),
    active: z.array(activeToken).meta({ description: "Tokens that have not ended; the first 1 000." }),
  })
  .meta({ id: "Run", description: "A run of a workflow." });

export const runEntry: z.ZodType<RunEntryView> = z
  .strictObject({
    seq: z.int().min(1),
    time,
    type: z.enum(RUN_ENTRY_TYPES),
    token: z.exactOptional(count),
    node: z.exactOptional(nodeRef),
    data: z.exactOptional(anyJson),
  })
  .meta({ id: "RunEntry", description: "An entry of the journal of a run." });
