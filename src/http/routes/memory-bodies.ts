/** The bodies and queries of requests about memories. */
import { z } from "zod";
import { isMemoryId } from "../../memory/corpus/memory-id.ts";
import { checkSizes } from "../../memory/corpus/schemas.ts";
import { MEMORY_STATES, type MemoryFilter } from "../../protocol/memory.ts";
import type { MemoryInput, MemoryQuery } from "../../protocol/memory-requests.ts";
import {
  filterFields,
  MAX_NAME_LENGTH,
  memoryInput,
  name,
  newMemories,
  searchFields,
} from "../../protocol/memory-requests.ts";
import { defined } from "../../shared/defined.ts";
import { agentIdSchema } from "../../shared/id-schemas.ts";
import { isJsonObject } from "../../shared/json.ts";
import { CURSOR_RULE } from "../../shared/page.ts";
import { validate } from "../../shared/validation.ts";
import { pageSchema } from "../base/query.ts";

/** The body of `writeMemories`, for its description. */
export const writeSchema = z.union([memoryInput, newMemories]).meta({
  example: { content: "Ann prefers window seats.", type: "preference", subject: { userId: "ann" } },
});

/** The header of `writeMemories`. The keys of a batch end with the positions of its memories. */
export const writeHeaders = z.object({
  "Idempotency-Key": z
    .string()
    .min(1)
    .max(MAX_NAME_LENGTH - 10)
    .optional()
    .describe("As `idempotencyKey` of each memory without its own key. At most 190 characters."),
});

const repeated = <Item extends z.ZodType<string>>(item: Item) =>
  z.preprocess((value) => (typeof value === "string" ? [value] : value), z.array(item).min(1));

/** A parameter of a query that is a number. */
const numeric = (schema: z.ZodNumber) =>
  z
    .string()
    .regex(/^[0-9]{0,9}(?:\.[0-9]{1,9})?$/, "Must be a number.")
    .transform(Number)
    .pipe(schema)
    .describe(schema.meta()?.description ?? "");

/** A parameter of a query that is JSON. */
const jsonText = <Schema extends z.ZodType<unknown, unknown>>(schema: Schema) =>
  z
    .string()
    .transform((text, context) => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue({ code: "custom", message: "Must be JSON." });
        return z.NEVER;
      }
    })
    .pipe(schema);

const { speaker, session, from, before, metadata } = filterFields;
const filterParams = {
  type: repeated(name).exactOptional().describe("Of this type. If repeated: of any of these types."),
  speaker: speaker.describe("Of this speaker."),
  session: session.describe("Of this session."),
  from,
  before,
  userId: name.optional().describe("About this user."),
  conversationId: name.optional().describe("From this conversation."),
  metadata: jsonText(metadata.unwrap()).exactOptional().meta({
    description: "As JSON, members of the metadata that must be equal. At most ten.",
    example: '{"topic":"travel"}',
  }),
};

export const listParams = pageSchema.extend({
  cursor: z
    .string()
    .refine(isMemoryId, CURSOR_RULE)
    .exactOptional()
    .describe("The `nextCursor` of the previous page."),
  ...filterParams,
  state: repeated(z.enum(MEMORY_STATES))
    .exactOptional()
    .describe("In this state. If repeated: in any of these states. Default: `current`."),
});

export const searchParams = z.object({
  q: searchFields.query,
  limit: numeric(searchFields.limit).exactOptional(),
  ...filterParams,
  minRelevance: numeric(searchFields.minRelevance).exactOptional(),
  now: searchFields.now,
});

const MAX_AGENTS = 20;

export const agentsSearchParams = searchParams.extend({
  agents: z
    .string()
    .transform((list) => [...new Set(list.split(","))])
    .pipe(z.array(agentIdSchema).max(MAX_AGENTS, `Must name at most ${MAX_AGENTS} agents.`))
    .meta({ description: `Ids of 1 to ${MAX_AGENTS} agents, separated by commas.`, example: "guide,clerk" }),
});

/**
 * Returns the memories of the body of a write, and whether it is a batch. A key of the header counts for those without a key of their own.
 * Throws `INVALID_INPUT`, and `TOO_LARGE` for a text or metadata beyond the limits.
 */
export function inputsOf(
  body: unknown,
  key: string | undefined,
): { inputs: MemoryInput[]; isBatch: boolean } {
  const isBatch = isJsonObject(body) && "memories" in body;
  const given = isBatch ? validate(newMemories, body).memories : [validate(memoryInput, body)];
  for (const [index, input] of given.entries()) checkSizes(input, isBatch ? `/memories/${index}` : "");
  if (key === undefined) return { inputs: given, isBatch };
  const inputs = given.map((input, index) => ({
    ...input,
    idempotencyKey: input.idempotencyKey ?? (isBatch ? `${key}/${index}` : key),
  }));
  return { inputs, isBatch };
}

export function queryOf({
  q,
  limit,
  minRelevance,
  now,
  ...filter
}: z.output<typeof searchParams>): MemoryQuery {
  return { query: q, ...defined({ limit, minRelevance, now }), ...filterOf(filter) };
}

type FilterParams = { [Name in keyof typeof filterParams]?: z.output<(typeof filterParams)[Name]> };

export function filterOf({ userId, conversationId, ...filter }: FilterParams): Omit<MemoryFilter, "state"> {
  const subject = defined({ userId, conversationId });
  return { ...defined(filter), ...(Object.keys(subject).length > 0 && { subject }) };
}
