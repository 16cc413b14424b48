/**
 * Schemas of personas and model profiles. They are strict: an unknown field is an error, so a misspelt setting is never ignored.
 * They keep absent fields absent. `persona.ts` has the defaults of a persona.
 */
import { z } from "zod";
import { type ModelProfile, PROVIDERS } from "../../model/profile.ts";
import { budgetSchema } from "../../protocol/budget.ts";
import type { Persona } from "../../protocol/definitions.ts";
import { toolPatterns } from "../../protocol/tool-patterns.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import { listIds } from "../../shared/known-ids.ts";
import { toolReferenceSchema } from "../definitions/mcp-reference.ts";
import { referenceSchema } from "../definitions/reference.ts";
import { hookTargetSchema, withHookForms } from "../hooks/hook-forms.ts";
import { memorySettings } from "../memory/scope.ts";
import { hasOneExtraction, learningFields } from "../memory/settings.ts";
import { skillsSchema } from "../skills/skill.ts";
import { MAX_TIMEOUT_MS } from "../tools/tool-schema.ts";
import { MAX_MOVES } from "./persona.ts";
import { refused } from "./persona-forms.ts";

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
const price = z.number().min(0).exactOptional();
const contextTokens = z.int().min(MIN_CONTEXT_TOKENS).max(MAX_CONTEXT_TOKENS).exactOptional();
const jsonObject = z.record(z.string(), z.json());

const hook = hookTargetSchema.exactOptional();

export const personaSchema = z.strictObject({
  name: label.exactOptional(),
  description: label.exactOptional(),
  identity: z.strictObject({
    systemPrompt: z.string().min(1).max(200_000),
    instructions: z.array(z.string().min(1).max(50_000)).max(100).exactOptional(),
    modelProfileId: referenceSchema.exactOptional(),
    model: refused("Is not supported: name a model profile in `identity.modelProfileId`."),
  }),
  memory: withHookForms(
    z
      .strictObject({
        recentTurnsLimit: z.int().min(1).max(1_000).exactOptional(),
        contextTokens,
        compactionProfileId: referenceSchema.exactOptional(),
        contextAssembly: hook,
        memoryExtraction: hook,
        storeSchema: refused("Is not supported: the type of a memory is any text. Remove the field."),
        ...memorySettings,
        ...learningFields,
      })
      .refine(hasOneExtraction, {
        path: ["extract"],
        error: "The extraction is also given as `memoryExtraction`. Remove one.",
      }),
  ).exactOptional(),
  knowledge: z
    .strictObject({
      artifacts: z.union(
        [z.literal(true), z.array(definitionIdSchema).min(1).max(50)],
        "Must be true, or a list of types of artifacts.",
      ),
    })
    .exactOptional(),
  skills: skillsSchema.exactOptional(),
  tools: z
    .strictObject({
      toolIds: z.array(toolReferenceSchema).max(128).exactOptional(),
      constraints: z
        .strictObject({
          maxMovesPerTurn: z.int().min(1).max(MAX_MOVES).exactOptional(),
          allowedActions: toolPatterns.exactOptional(),
        })
        .exactOptional(),
    })
    .exactOptional(),
  titles: z.strictObject({ modelProfileId: referenceSchema }).exactOptional(),
  budget: budgetSchema.exactOptional(),
  examples: z.array(z.string().min(1).max(MAX_EXAMPLE_LENGTH)).min(1).max(MAX_EXAMPLES).exactOptional(),
}) satisfies z.ZodType<Persona>;

/** A model profile. Replaces aliases of providers, and removes trailing slashes of the base URL. */
export const modelProfileSchema = z.strictObject({
  provider: z.preprocess(
    (value) => (typeof value === "string" ? (PROVIDER_ALIASES[value] ?? value) : value),
    z.enum(PROVIDERS, {
      error: ({ input }) => {
        if (typeof input !== "string") return undefined;
        const given = input.slice(0, 40);
        return `"${given}" is not a provider. The providers are: ${listIds(given, PROVIDERS)}.`;
      },
    }),
  ),
  modelId: z.string().min(1).max(500),
  parameters: jsonObject.exactOptional(),
  executionConfig: z
    .strictObject({
      timeoutMs: timeout.exactOptional(),
      firstByteTimeoutMs: timeout.exactOptional(),
      idleTimeoutMs: timeout.exactOptional(),
    })
    .exactOptional(),
  contextTokens,
  baseUrl: z
    .url({ protocol: /^https?$/, error: "A base URL begins with http:// or https://" })
    .max(2_000)
    .transform((url) => url.replace(/\/+$/, ""))
    .exactOptional(),
  apiKeySecret: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, "Name an environment variable. Never write the key itself here")
    .exactOptional(),
  costPer1kInput: price,
  costPer1kOutput: price,
  costPer1kCachedInput: price,
  costPer1kCacheWrite: price,
  fallbacks: z
    .array(referenceSchema)
    .max(MAX_FALLBACKS, `A model profile has at most ${MAX_FALLBACKS} fallbacks`)
    .exactOptional(),
}) satisfies z.ZodType<ModelProfile>;
