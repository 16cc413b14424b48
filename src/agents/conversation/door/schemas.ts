/** Schemas of what callers give a conversation by RPC. */

import { z } from "zod";
import {
  clientToolsSchema,
  outputSchema,
  submissionsSchema,
  type ToolSubmission,
  toolChoiceSchema,
} from "../../../protocol/requests.ts";
import { contentSchema } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { validate } from "../../../shared/validation.ts";
import { MAX_OUTPUT_BYTES } from "../../executor/output.ts";
import { MAX_KEY_LENGTH } from "../core/signals.ts";

const key = z
  .string()
  .min(1)
  .max(MAX_KEY_LENGTH)
  .refine((text) => text.isWellFormed(), "Must be well-formed Unicode.");

export const startTurnSchema = z
  .strictObject({
    content: contentSchema,
    replyToMessageId: z.string().min(1).max(MAX_KEY_LENGTH).optional(),
    idempotencyKey: key.optional(),
    output: outputSchema.optional(),
    tools: clientToolsSchema.optional(),
    toolChoice: toolChoiceSchema.optional(),
  })
  .transform(({ content, replyToMessageId, idempotencyKey, output, tools, toolChoice }) => ({
    content,
    ...defined({ output }),
    ...(tools === undefined || tools.length === 0 ? {} : { tools }),
    ...(toolChoice === undefined || toolChoice === "auto" ? {} : { toolChoice }),
    ...defined({ replyToMessageId, idempotencyKey }),
  }));

export const subscribeSchema = z.strictObject({
  from: z.int().min(0).optional(),
  turnId: z.string().optional(),
  encoding: z.enum(["sse", "ndjson"]),
});

/** Results from a client, each within the limit of a tool's output. Throws `INVALID_INPUT`, or `TOO_LARGE`. */
export function parseSubmissions(value: unknown): ToolSubmission[] {
  const results = validate(submissionsSchema, value);
  for (const { result } of results) {
    const bytes = result === undefined ? 0 : utf8Length(JSON.stringify(result));
    if (bytes <= MAX_OUTPUT_BYTES) continue;
    throw new DramatisError(
      "TOO_LARGE",
      `A result has ${bytes} bytes of JSON; the limit is ${MAX_OUTPUT_BYTES}. Give less.`,
    );
  }
  // SAFETY: the schema has just said that it is JSON.
  return results as ToolSubmission[];
}
