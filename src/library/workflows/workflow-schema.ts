/**
 * The schema of a workflow: its fields, their limits, and their alternative forms. `check-form.ts` checks relations
 * between fields.
 *
 * FLOWDEF-1  A workflow within its limits is checked in bounded time. A workflow beyond its limits is refused before
 *            all other checks.
 */
import { z } from "zod";
import {
  MERGE_STRATEGIES,
  type SynchronizationStrategy,
  type WorkflowDefinition,
} from "../../protocol/workflow-definition.ts";
import { agentIdSchema } from "../../shared/id-schemas.ts";
import { isPlainObject } from "../../shared/json.ts";
import { referenceSchema } from "../definitions/reference.ts";
import { MAX_AGENT_TIMEOUT_MS } from "../tools/agent-tool.ts";
import { nodeFields, type Report, transitionFields, workflowFields } from "./forms.ts";
import {
  MAX_ITERATIONS,
  MAX_NODES,
  MAX_SPAWN_COUNT,
  MAX_TRANSITIONS,
  MAX_WORKFLOW_TIMEOUT_MS,
} from "./workflow-limits.ts";

/** Names of nodes and groups. */
const ref = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, "Must be 1 to 64 letters, digits, `_` and `-`.");
const transitionRef = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,129}$/, "Must be 1 to 129 letters, digits, `_` and `-`.");
const label = z.string().min(1).max(2_000);
const expression = z.string().min(1).max(10_000);
const mapping = z.record(z.string().min(1).max(200), expression);
const timeout = z.int().min(1).max(MAX_WORKFLOW_TIMEOUT_MS);
const jsonSchema = z.record(z.string(), z.json());
const reference = referenceSchema.pipe(z.string());

/** Returns a schema that normalizes its input before the checks. */
function formed<Schema extends z.ZodType>(form: (value: unknown, report: Report) => unknown, schema: Schema) {
  return z.preprocess(
    (value, context) =>
      form(value, (path, message) => context.addIssue({ code: "custom", path, message, input: value })),
    schema,
  );
}

const node = z.strictObject({
  ref,
  name: label.exactOptional(),
  task: reference.exactOptional(),
  workflow: reference.exactOptional(),
  agent: agentIdSchema.exactOptional(),
  mode: z.enum(["delegate", "loop_in"]).exactOptional(),
  timeoutMs: z.int().min(1).max(MAX_AGENT_TIMEOUT_MS).exactOptional(),
  inputMapping: mapping.exactOptional(),
  outputMapping: mapping.exactOptional(),
  resourceBindings: z.record(z.string().min(1).max(200), z.string().min(1).max(2_000)).exactOptional(),
});

const STRATEGY =
  'INVALID_STRATEGY: Must be "any", "all", or {mOfN} or "m_of_n:N" with a whole number from 1.';

function isStrategy(value: unknown): boolean {
  if (!isPlainObject(value)) return value === "any" || value === "all";
  const { mOfN, ...others } = value;
  return Number.isSafeInteger(mOfN) && Number(mOfN) >= 1 && Object.keys(others).length === 0;
}

const synchronization = z.strictObject({
  siblingGroup: ref,
  strategy: z.custom<SynchronizationStrategy>(isStrategy, STRATEGY),
  timeoutMs: timeout.optional(),
  onTimeout: z.enum(["fail", "proceed_with_available"]),
  maxFailures: z.int().min(0).exactOptional(),
  merge: z
    .strictObject({
      source: z.string().min(1).max(500),
      target: z.string().min(1).max(500),
      strategy: z.enum(MERGE_STRATEGIES),
    })
    .exactOptional(),
});

const transition = z.strictObject({
  ref: transitionRef,
  from: ref,
  to: ref,
  priority: z.number(),
  condition: expression.exactOptional(),
  spawnCount: z.int().min(1).max(MAX_SPAWN_COUNT).exactOptional(),
  foreach: z
    .strictObject({
      collection: expression,
      itemVar: z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, "Must be a letter or `_`, then letters, digits and `_`."),
    })
    .exactOptional(),
  siblingGroup: ref.exactOptional(),
  synchronization: synchronization.exactOptional(),
  loopConfig: z.strictObject({ maxIterations: z.int().min(1).max(MAX_ITERATIONS) }).exactOptional(),
});

const workflow = z.strictObject({
  name: label.exactOptional(),
  description: label.exactOptional(),
  inputSchema: jsonSchema,
  outputSchema: jsonSchema.exactOptional(),
  contextSchema: jsonSchema.exactOptional(),
  outputMapping: mapping.exactOptional(),
  initialNode: ref,
  nodes: z.array(formed(nodeFields, node)).min(1),
  transitions: z.array(formed(transitionFields, transition)),
  timeoutMs: timeout.exactOptional(),
  onTimeout: z
    .enum(["human_gate", "fail", "cancel_all"], 'Must be "human_gate", "fail" or "cancel_all".')
    .exactOptional(),
});

/** Accepts a workflow in all its forms. The output is normalized, so equal workflows have equal hashes (FLOWFORM-2). */
export const workflowSchema = z
  .custom<unknown>()
  .superRefine((value, context) => {
    if (!isPlainObject(value)) return;
    for (const [field, most] of [
      ["nodes", MAX_NODES],
      ["transitions", MAX_TRANSITIONS],
    ] as const) {
      const list = value[field];
      if (Array.isArray(list) && list.length > most)
        context.addIssue({
          code: "custom",
          path: [field],
          message: `Must have at most ${most} ${field}. It has ${list.length}.`,
          input: value,
        });
    }
  })
  .pipe(formed(workflowFields, workflow))
  // SAFETY: an absent time limit, which is `undefined` here, is removed.
  .transform((value) => JSON.parse(JSON.stringify(value)) as WorkflowDefinition);
