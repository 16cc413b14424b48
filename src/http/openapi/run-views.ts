/** Schemas of runs of workflows. */
import { z } from "zod";
import type { ActiveToken, RunEntryView, RunSummary, RunView } from "../../protocol/coordinator-api.ts";
import { RUN_ENTRY_TYPES, RUN_STATUSES, type RunError } from "../../protocol/workflow-run.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import { RUN_ID } from "../../shared/identifiers.ts";
import { anyJson, count, ids, time } from "./scalars.ts";

export const runId = z
  .string()
  .regex(RUN_ID)
  .meta({ description: "Id of a run.", example: "run_01JD0000000000000000000000" });

const runError: z.ZodType<RunError> = z.strictObject({ code: z.string(), message: z.string() });
const area = z.record(z.string(), anyJson);
const nodeRef = z.string().meta({ description: "The `ref` of a node." });

const activeToken: z.ZodType<ActiveToken> = z.strictObject({
  token: count,
  node: nodeRef,
  status: z.enum(["pending", "working", "lost"]).meta({
    description: "`lost`: the work was interrupted and may have taken effect; its result may still come.",
  }),
  path: z.string().meta({ description: "The branches around it.", example: "root.start.0" }),
  attempt: z.exactOptional(z.int().min(1)),
});

const workflow = z.strictObject({ library: ids.library, id: ids.definition, version: count });
const runMembers = {
  id: runId,
  workflow,
  projectId: definitionIdSchema,
  status: z.enum(RUN_STATUSES),
  startedBy: z.string().meta({ description: "The subject that started it." }),
  createdAt: time,
  endedAt: z.exactOptional(time).meta({ description: "Absent before the end." }),
};

export const runSummary: z.ZodType<RunSummary> = z
  .strictObject({
    ...runMembers,
    errorCode: z.exactOptional(z.string()).meta({ description: "The code of the run's error." }),
  })
  .meta({ id: "RunSummary", description: "A run in a list." });

export const run: z.ZodType<RunView> = z
  .strictObject({
    ...runMembers,
    input: area,
    state: area,
    output: z.exactOptional(area),
    error: z.exactOptional(runError),
    seq: count.meta({ description: "The number of its newest journal entry." }),
    tokens: count.meta({ description: "Tokens that were made." }),
    active: z.array(activeToken).meta({ description: "Tokens that have not ended; the first 1 000." }),
  })
  .meta({ id: "Run", description: "A run of a workflow." });

const entryMembers = {
  seq: z.int().min(1),
  time,
  type: z.enum(RUN_ENTRY_TYPES),
  token: z.exactOptional(count),
  node: z.exactOptional(nodeRef),
  data: z.exactOptional(anyJson),
};

export const runEntry: z.ZodType<RunEntryView> = z
  .strictObject(entryMembers)
  .meta({ id: "RunEntry", description: "An entry of the journal of a run." });
