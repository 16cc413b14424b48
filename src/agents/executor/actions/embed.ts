/**
 * The action `llm.embed`.
 *
 * EMBEDACT-1  The result has one vector for each text, in their order, all of one length. Without a profile it is a hash of the
 *             words, and its name says so.
 * EMBEDACT-2  Texts are sent in batches, one after another. A failure that may pass gets up to three attempts for each batch.
 */
import { z } from "zod";
import { OFFLINE_PROFILE } from "../../../adapters/default-profile.ts";
import { MAX_EMBEDDED_TEXTS } from "../../../library/tasks/limits.ts";
import { ToolError } from "../../../library/tool-error.ts";
import { type Embeddings, MAX_TEXTS_OF_REQUEST } from "../../../model/embedding.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { EmbedAction } from "../../../protocol/task-definition.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { inputIssues, issuesText } from "../../../shared/validation.ts";
import { addUsage, ModelToolError, pauseAfter } from "./attempts.ts";
import type { ModelRun, ModelUsage } from "./ports.ts";

/** UTF-16 units of all texts of one action. */
export const MAX_EMBEDDED_LENGTH = 400_000;
/** Digits of a number, as many as a number of 32 bits has. */
const DIGITS = 8;

const inputSchema = z.strictObject({
  texts: z
    .array(z.string().refine((text) => text.trim() !== "", "Must not be empty."))
    .min(1)
    .max(MAX_EMBEDDED_TEXTS)
    .refine(
      (texts) => texts.reduce((sum, { length }) => sum + length, 0) <= MAX_EMBEDDED_LENGTH,
      `Must have at most ${MAX_EMBEDDED_LENGTH} characters together.`,
    ),
});

/** What an `llm.embed` action gives. */
export interface EmbedResult {
  result: { vectors: number[][]; model: string; dimensions: number };
  usage: ModelUsage;
}

/** Runs an `llm.embed` action with the step's input. Throws `ToolError`, and the signal's reason after an abort. */
export async function runEmbed(
  action: EmbedAction<ModelProfile>,
  input: Json,
  run: Omit<ModelRun, "meter">,
): Promise<EmbedResult> {
  const parsed = inputSchema.safeParse(input);
  if (!parsed.success)
    throw new ToolError(`Its input is not valid: ${issuesText(inputIssues(parsed.error))}`, {
      code: "INVALID_INPUT",
    });
  const { texts } = parsed.data;
  const { profile: own = OFFLINE_PROFILE, timeoutMs } = action;
  const profile = { ...own, executionConfig: { ...own.executionConfig, ...defined({ timeoutMs }) } };
  let usage: ModelUsage = { input: 0, output: 0 };
  const vectors: number[][] = [];
  let model = profile.modelId;
  for (let first = 0; first < texts.length; first += MAX_TEXTS_OF_REQUEST) {
    const batch = texts.slice(first, first + MAX_TEXTS_OF_REQUEST);
    const made = await embedBatch(profile, batch, usage, run);
    usage = addUsage(usage, made.usage, profile);
    model = made.model;
    vectors.push(...made.vectors.map((vector) => vector.map((value) => Number(value.toPrecision(DIGITS)))));
  }
  const dimensions = vectors[0]?.length ?? 0;
  if (vectors.some((vector) => vector.length !== dimensions))
    throw new ModelToolError("The embedding model gave vectors of several lengths.", usage);
  return { result: { vectors, model, dimensions }, usage };
}

async function embedBatch(
  profile: ModelProfile,
  texts: readonly string[],
  usage: ModelUsage,
  run: Omit<ModelRun, "meter">,
): Promise<Embeddings> {
  const { models, context, signal } = run;
  for (let failed = 1; ; failed++) {
    const outcome = await models.embeddings.embed({ profile, texts, context }, signal);
    if (outcome.ok) return outcome.embeddings;
    await pauseAfter(outcome.error, failed, usage, run);
  }
}
