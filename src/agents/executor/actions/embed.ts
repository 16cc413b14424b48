/**
 * The action `llm.embed`.
 *
 * EMBEDACT-1  The result has one vector per text, in order, all with the same length. Without a profile, each vector is a hash of the
 *             words, and the model's name says this.
 * EMBEDACT-3  The characters of a hash and the components of all vectors are charged to the task's budget. Other work can run before each
 *             batch of hashes.
 * EMBEDACT-2  Texts are sent in sequential batches. Each batch gets up to three attempts if its failure is transient.
 */
import { z } from "zod";
import { OFFLINE_PROFILE } from "../../../adapters/default-profile.ts";
import { compatible } from "../../../adapters/formats/offline/embedding.ts";
import { MAX_EMBEDDED_TEXTS } from "../../../library/tasks/task-limits.ts";
import { ToolError } from "../../../library/tools/tool-error.ts";
import { estimateTokens } from "../../../memory/session/tokens.ts";
import { type EmbeddingOutcome, type Embeddings, MAX_TEXTS_OF_REQUEST } from "../../../model/embedding.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import { sleepWith } from "../../../ports/deadline.ts";
import type { EmbedAction } from "../../../protocol/task-definition.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";
import { inputIssues, issuesText, plainly } from "../../../shared/validation.ts";
import { pauseAfter, usageOf } from "./attempts.ts";
import type { ModelRun, RequestUsage } from "./ports.ts";

/** Most UTF-16 units of all texts of one action. */
export const MAX_EMBEDDED_LENGTH = 400_000;
/** Most UTF-16 units of all texts of one action that computes hashes. */
export const MAX_HASHED_LENGTH = 100_000;
/** Vector components that are copied per step of the budget. */
const NUMBERS_OF_STEP = 8;
/** Significant digits of a component, as in a 32-bit float. */
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

export interface EmbedResult {
  vectors: number[][];
  model: string;
  dimensions: number;
}

/**
 * Runs an `llm.embed` action with the step's input. Throws `ToolError`, `Spent` if the budget has too few steps for a hash, and the
 * signal's reason after an abort.
 */
export async function runEmbed(
  action: EmbedAction<ModelProfile>,
  input: Json,
  run: ModelRun,
): Promise<EmbedResult> {
  const { clock, signal, meter } = run;
  const { profile: own = OFFLINE_PROFILE, timeoutMs } = action;
  const profile = { ...own, executionConfig: { ...own.executionConfig, ...defined({ timeoutMs }) } };
  const isHash = profile.provider === "offline";
  const texts = isHash ? hashedTexts(textsOf(input), meter) : textsOf(input);
  const vectors: number[][] = [];
  let model = profile.modelId;
  for (let first = 0; first < texts.length; first += MAX_TEXTS_OF_REQUEST) {
    if (isHash) await sleepWith((pause, wake) => clock.timer(pause, wake), 0, signal);
    const made = await embedBatch(profile, texts.slice(first, first + MAX_TEXTS_OF_REQUEST), run);
    model = made.model;
    spendOn(made.vectors, meter);
    vectors.push(...(isHash ? made.vectors : made.vectors.map(shortNumbers)));
  }
  const dimensions = vectors[0]?.length ?? 0;
  if (vectors.some((vector) => vector.length !== dimensions))
    throw new ToolError("The embedding model returned vectors of different lengths. Use another model.");
  return { vectors, model, dimensions };
}

function shortNumbers(vector: readonly number[]): number[] {
  return vector.map((value) => Number(value.toPrecision(DIGITS)));
}

function textsOf(input: Json): string[] {
  const parsed = inputSchema.safeParse(input, { error: plainly });
  if (parsed.success) return parsed.data.texts;
  throw new ToolError(`Its input is not valid: ${issuesText(inputIssues(parsed.error))}`, {
    code: "INVALID_INPUT",
  });
}

/** Returns the texts in the form that is hashed. Some characters expand to many, so the limit applies to this form. */
function hashedTexts(texts: readonly string[], meter: Meter): string[] {
  const plain = texts.map(compatible);
  const length = plain.reduce((sum, text) => sum + text.length, 0);
  if (length > MAX_HASHED_LENGTH)
    throw new ToolError(
      `Its texts have ${length} characters together. Without a model the limit is ${MAX_HASHED_LENGTH}. Give fewer, or name a \`profile\`.`,
      { code: "INVALID_INPUT" },
    );
  meter.spend(length);
  return plain;
}

/** Charges the copying of vectors. */
function spendOn(vectors: number[][], meter: Meter): void {
  const numbers = vectors.reduce((sum, { length }) => sum + length, 0);
  try {
    meter.spend(numbers / NUMBERS_OF_STEP);
  } catch (cause) {
    throw new ToolError("Its vectors take too many steps of the task. Give fewer texts.", {
      code: "INVALID_INPUT",
      cause,
    });
  }
}

async function embedBatch(
  profile: ModelProfile,
  texts: readonly string[],
  run: ModelRun,
): Promise<Embeddings> {
  const { models, context, signal, requests } = run;
  const most = usageOf({ inputTokens: estimateTokens(JSON.stringify(texts)) }, profile);
  for (let failed = 1; ; failed++) {
    // A hash calls no model.
    const end = profile.provider === "offline" ? () => undefined : requests.begin(most);
    const outcome = await models.embeddings.embed({ profile, texts, context }, signal);
    end(usageOf(countedOf(outcome, most), profile));
    if (outcome.ok) return outcome.embeddings;
    await pauseAfter(outcome.error, failed, requests.hasRoom(most), run);
  }
}

/** Returns the tokens of a request, estimated if the provider did not count them. A refused request costs 0. */
function countedOf(outcome: EmbeddingOutcome, { inputTokens }: RequestUsage): TokenUsage {
  if (outcome.ok) return outcome.embeddings.usage ?? { inputTokens };
  const { category } = outcome.error;
  return category === "timeout" || category === "canceled" ? { inputTokens } : {};
}
