/**
 * Schemas of definitions. They are strict: an unknown field is an error, so a misspelt setting is never ignored. They fill
 * in no defaults; those of a persona are in `persona.ts`.
 */

import { z } from "zod";
import { type ModelProfile, PROVIDERS } from "../model/profile.ts";
import { approvalNeedSchema } from "../protocol/approval-schema.ts";
import { budgetSchema } from "../protocol/budget.ts";
import type { Persona, ToolDefinition } from "../protocol/definitions.ts";
import { hostsSchema } from "../protocol/sub-agent.ts";
import type { JsonObject } from "../shared/json.ts";
import { agentTarget, agentTargetSchema, MAX_AGENT_TIMEOUT_MS } from "./agent-tool.ts";
import { hookTargetSchema, withHookForms } from "./hook-forms.ts";
import { memorySettings } from "./memory/scope.ts";
import { hasOneExtraction, learningFields } from "./memory/settings.ts";
import { MAX_MOVES } from "./persona.ts";
import { refused } from "./persona-forms.ts";
import { referenceSchema } from "./reference.ts";
import { workflowTarget } from "./workflow-tool.ts";

/** Maximum timeout of one attempt of a call, in milliseconds. */
export const MAX_TIMEOUT_MS = 900_000;

/** Timeout of one attempt of a tool that declares none, in milliseconds. */
export const DEFAULT_TOOL_TIMEOUT_MS = 60_000;

/** Maximum number of attempts of a tool's call, the first included. */
export const MAX_TOOL_ATTEMPTS = 10;

/** The longest pause between two attempts of a tool's call, in milliseconds. */
export const MAX_TOOL_BACKOFF_MS = 60_000;

/** Milliseconds before the second attempt of a tool that declares attempts, but no backoff. */
export const DEFAULT_TOOL_BACKOFF_MS = 1_000;

/** Maximum number of fallbacks of a model profile, including the fallbacks of its fallbacks. */
export const MAX_FALLBACKS = 5;

/** Maximum number of example messages of a persona. */
const MAX_EXAMPLES = 8;

/** Maximum length of an example message. */
const MAX_EXAMPLE_LENGTH = 500;

/** The limits of a context budget, in tokens. */
const MIN_CONTEXT_TOKENS = 1_000;
const MAX_CONTEXT_TOKENS = 10_000_000;

const PROVIDER_ALIASES: Record<string, string> = {
  cloudflare: "workers-ai",
  google: "gemini",
  local: "openai",
};

const label = z.string().min(1).max(2_000);
const timeout = z.int().min(1).max(MAX_TIMEOUT_MS);
/** US dollars per 1 000 tokens. */
const price = z.exactOptional(z.number().min(0));
const contextTokens = z.exactOptional(z.int().min(MIN_CONTEXT_TOKENS).max(MAX_CONTEXT_TOKENS));
const jsonObject: z.ZodType<JsonObject> = z.record(z.string(), z.json());

const hook = z.exactOptional(hookTargetSchema);

/** A persona. Fields keep their values. */
export const personaSchema = z.strictObject({
  name: z.exactOptional(label),
  description: z.exactOptional(label),
  identity: z.strictObject({
    systemPrompt: z.string().min(1).max(200_000),
    instructions: z.exactOptional(z.array(z.string().min(1).max(50_000)).max(100)),
    modelProfileId: z.exactOptional(referenceSchema),
    model: refused("Is not supported: name a model profile in `identity.modelProfileId`."),
  }),
  memory: z.exactOptional(
    withHookForms(
      z
        .strictObject({
          recentTurnsLimit: z.exactOptional(z.int().min(1).max(1_000)),
          contextTokens,
          compactionProfileId: z.exactOptional(referenceSchema),
          contextAssembly: hook,
          memoryExtraction: hook,
          storeSchema: refused("Is not supported: the type of a memory is any text. Remove the field."),
          ...memorySettings,
          ...learningFields,
        })
        .refine(hasOneExtraction, {
          path: ["extract"],
          error: "The extraction is given twice, also as `memoryExtraction`. Give one.",
        }),
    ),
  ),
  tools: z.exactOptional(
    z.strictObject({
      toolIds: z.exactOptional(z.array(referenceSchema).max(128)),
      constraints: z.exactOptional(
        z.strictObject({ maxMovesPerTurn: z.exactOptional(z.int().min(1).max(MAX_MOVES)) }),
      ),
    }),
  ),
  budget: budgetSchema.exactOptional(),
  examples: z.exactOptional(z.array(z.string().min(1).max(MAX_EXAMPLE_LENGTH)).min(1).max(MAX_EXAMPLES)),
}) satisfies z.ZodType<Persona>;

/** A model profile. Replaces aliases of providers, and removes trailing slashes of the base URL. */
export const modelProfileSchema = z.strictObject({
  provider: z.preprocess(
    (value) => (typeof value === "string" ? (PROVIDER_ALIASES[value] ?? value) : value),
    z.enum(PROVIDERS),
  ),
  modelId: z.string().min(1).max(500),
  parameters: z.exactOptional(jsonObject),
  executionConfig: z.exactOptional(
    z.strictObject({
      timeoutMs: z.exactOptional(timeout),
      firstByteTimeoutMs: z.exactOptional(timeout),
      idleTimeoutMs: z.exactOptional(timeout),
    }),
  ),
  contextTokens,
  baseUrl: z.exactOptional(
    z
      .url({ protocol: /^https?$/, error: "A base URL begins with http:// or https://" })
      .max(2_000)
      .transform((url) => url.replace(/\/+$/, "")),
  ),
  apiKeySecret: z.exactOptional(
    z
      .string()
      .regex(
        /^[A-Za-z_][A-Za-z0-9_]{0,127}$/,
        "Name an environment variable. Never write the key itself here",
      ),
  ),
  costPer1kInput: price,
  costPer1kOutput: price,
  costPer1kCachedInput: price,
  costPer1kCacheWrite: price,
  fallbacks: z.exactOptional(
    z.array(referenceSchema).max(MAX_FALLBACKS, `A model profile has at most ${MAX_FALLBACKS} fallbacks`),
  ),
}) satisfies z.ZodType<ModelProfile>;

/** The attempts of a tool as authors write them. */
export const retrySchema = z.strictObject({
  maxAttempts: z.exactOptional(z.int().min(1).max(MAX_TOOL_ATTEMPTS)),
  backoffMs: z.exactOptional(z.int().min(0).max(MAX_TOOL_BACKOFF_MS)),
});

/** Describes why a tool's time limit is not allowed; `null` if it is. Code has a lower maximum than agents and workflows. */
export function timeoutProblem({
  target,
  timeoutMs,
}: Pick<ToolDefinition, "target" | "timeoutMs">): string | null {
  const isCode = agentTarget(target) === undefined && workflowTarget(target) === undefined;
  if (!isCode || timeoutMs <= MAX_TIMEOUT_MS) return null;
  return `Must be ${MAX_TIMEOUT_MS} at most for a tool that runs code.`;
}

/** Further attempts, as conversations and runs keep them. */
export const pinnedRetrySchema = z.strictObject({
  maxAttempts: z.int().min(2).max(MAX_TOOL_ATTEMPTS),
  backoffMs: z.int().min(0).max(MAX_TOOL_BACKOFF_MS),
  backoff: z.exactOptional(z.enum(["none", "linear", "exponential"])),
  maxDelayMs: z.exactOptional(z.int().min(0).max(MAX_TOOL_BACKOFF_MS)),
});

/** A tool, without its code. */
export const toolDefinitionSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-zA-Z0-9_-]{1,64}$/, "A tool's name is 1 to 64 letters, digits, underscores and hyphens"),
  description: z.string().min(1, "Must explain to the model when to use the tool.").max(10_000),
  inputSchema: jsonObject.refine((schema) => schema.type === "object", {
    error: "The input schema must describe an object: wrap it in z.object({…})",
  }),
  effect: z.enum(["pure", "idempotent", "once"]),
  timeoutMs: z.int().min(1).max(MAX_AGENT_TIMEOUT_MS),
  retry: z.exactOptional(pinnedRetrySchema),
  hosts: z.exactOptional(hostsSchema),
  async: z.exactOptional(z.boolean()),
  approval: z.exactOptional(approvalNeedSchema),
  target: z.exactOptional(
    z.union(
      [
        z.strictObject({ task: referenceSchema }),
        z.strictObject({ workflow: referenceSchema }),
        agentTargetSchema,
      ],
      {
        error:
          "Must be {agent, mode?, modes?, handoff?}, with the id of an agent, {task}, with a reference to a task or a tool in code, or {workflow}, with a reference to a workflow.",
      },
    ),
  ),
  inputMapping: z.exactOptional(z.record(z.string().min(1).max(200), z.string().min(1))),
}) satisfies z.ZodType<ToolDefinition>;
