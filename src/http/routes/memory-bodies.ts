/** The bodies and queries of requests about memories. */
import { z } from "zod";
import {
  MAX_BATCH,
  MAX_METADATA_FILTERS,
  MAX_NAME_LENGTH,
  MAX_RESULTS,
} from "../../memory/corpus/corpus-limits.ts";
import { isMemoryId } from "../../memory/corpus/memory-id.ts";
import { checkSizes } from "../../memory/corpus/schemas.ts";
import {
  MEMORY_STATES,
  type MemoryChange,
  type MemoryFilter,
  type MemoryInput,
  type MemoryQuery,
} from "../../protocol/memory.ts";
import { defined } from "../../shared/defined.ts";
import { agentIdSchema } from "../../shared/id-schemas.ts";
import { isJsonObject } from "../../shared/json.ts";
import { CURSOR_RULE } from "../../shared/page.ts";
import { validate } from "../../shared/validation.ts";
import { pageSchema } from "../base/query.ts";

const name = z.string().min(1).max(MAX_NAME_LENGTH);
const content = z
  .string()
  .refine((text) => text.trim() !== "", "Must not be blank.")
  .meta({ description: "Text of at most 256 KiB in UTF-8. It is returned unchanged." });
const isoTime = z.iso.datetime({
  offset: true,
  error: "Must be a time in ISO 8601 with a zone, such as 2026-03-01T10:00:00Z.",
});
const metadata = z.record(z.string(), z.json()).meta({ description: "At most 16 KiB as JSON." });
const type = name.meta({ description: "Any text. Default: `fact`.", example: "preference" });
const significance = z
  .number()
  .min(0)
  .max(1)
  .meta({ description: "How important it is, whatever the question. Default: 0.5." });
const speaker = name.meta({ description: "The person who said it." });
const session = name.meta({
  description: "The session that it belongs to. Its neighbours there help to find it.",
});
const sequence = z.int().min(0).meta({ description: "Its place in the session." });
const time = isoTime.meta({ description: "The time of the event, not of the write." });
const validFrom = isoTime.meta({ description: "Since when it is true. Default: `time`, or now." });
const validTo = isoTime.meta({ description: "Until when it is true. Absent: open." });
const subject = z.strictObject({ userId: name.exactOptional(), conversationId: name.exactOptional() }).meta({
  description:
    "The user and the conversation that it is about. Conversations see it by the scope of their persona; one without a subject is seen in every scope.",
});
const idempotencyKey = name.meta({
  description: "Repeating the write with this key answers the same memory.",
});

const inputSchema: z.ZodType<MemoryInput> = z
  .strictObject({
    content,
    key: name.exactOptional().meta({
      description: "Names the memory: a second write under the same key and subject updates it.",
    }),
    type: type.exactOptional(),
    significance: significance.exactOptional(),
    speaker: speaker.exactOptional(),
    session: session.exactOptional(),
    sequence: sequence.exactOptional(),
    time: time.exactOptional(),
    metadata: metadata.exactOptional(),
    validFrom: validFrom.exactOptional(),
    validTo: validTo.exactOptional(),
    subject: subject.exactOptional(),
    idempotencyKey: idempotencyKey.exactOptional(),
  })
  .meta({
    id: "NewMemory",
    example: { content: "Ann prefers window seats.", type: "preference", subject: { userId: "ann" } },
  });

const batchSchema = z
  .strictObject({
    memories: z
      .array(inputSchema)
      .min(1, "Give at least one memory.")
      .max(MAX_BATCH, `Give at most ${MAX_BATCH} memories.`),
  })
  .meta({ id: "NewMemories" });

/** The body of `writeMemories`, for its description. */
export const writeSchema = z.union([inputSchema, batchSchema]).meta({
  example: { content: "Ann prefers window seats.", type: "preference", subject: { userId: "ann" } },
});

/** The header of `writeMemories`. */
export const writeHeaders = z.object({
  "Idempotency-Key": z
    .string()
    .optional()
    .meta({ description: "As `idempotencyKey` of each memory without its own key. At most 190 characters." }),
});

export const changeSchema: z.ZodType<MemoryChange> = z
  .strictObject({
    content: content.exactOptional(),
    type: type.exactOptional(),
    significance: significance.exactOptional(),
    speaker: speaker.nullable().exactOptional(),
    session: session.nullable().exactOptional(),
    sequence: sequence.nullable().exactOptional(),
    time: time.nullable().exactOptional(),
    metadata: metadata.exactOptional(),
    validFrom: validFrom.exactOptional(),
    validTo: validTo.nullable().exactOptional(),
    ifVersion: z
      .int()
      .min(1)
      .exactOptional()
      .meta({ description: "The version that the change is based on. `CONFLICT` if it has another." }),
  })
  .refine(
    (change) => Object.keys(change).some((member) => member !== "ifVersion"),
    "Give at least one change.",
  )
  .meta({ example: { content: "Ann prefers aisle seats.", ifVersion: 1 } });

const scalar = z.union([z.string(), z.number(), z.boolean()]);
const metadataFilter = z
  .record(z.string().min(1).max(MAX_NAME_LENGTH), scalar)
  .refine(
    (members) => Object.keys(members).length <= MAX_METADATA_FILTERS,
    `Must have at most ${MAX_METADATA_FILTERS} members.`,
  );
const from = isoTime.meta({
  description: "Memories of this time and later. A memory without an event time uses its write time.",
});
const before = isoTime.meta({ description: "Memories before this time." });
const minRelevance = z
  .number()
  .min(0)
  .max(1)
  .meta({ description: "Leaves out results of less relevance. Default: 0." });
const now = isoTime.meta({
  description: "The time of the question, which its relative times refer to. Default: now.",
});
const limit = z
  .int()
  .min(1)
  .max(MAX_RESULTS)
  .meta({ description: `Results at most, from 1 to ${MAX_RESULTS}. Default: 10.` });
const query = z.string().meta({ description: "Text of any kind. Beyond 2 000 characters it is cut." });
const weight = z.number().min(0).max(10).exactOptional();

export const querySchema: z.ZodType<MemoryQuery> = z
  .strictObject({
    query,
    type: z.union([name, z.array(name).min(1).max(MAX_NAME_LENGTH)]).exactOptional(),
    speaker: name.exactOptional(),
    session: name.exactOptional(),
    from: from.exactOptional(),
    before: before.exactOptional(),
    metadata: metadataFilter
      .exactOptional()
      .meta({ description: "Members of the metadata that must be equal. At most ten." }),
    subject: z
      .strictObject({ userId: name.exactOptional(), conversationId: name.exactOptional() })
      .exactOptional(),
    limit: limit.exactOptional(),
    now: now.exactOptional(),
    minRelevance: minRelevance.exactOptional(),
    weights: z
      .strictObject({
        ...{ semantic: weight, neighbours: weight, speaker: weight, session: weight },
        ...{ time: weight, significance: weight, recency: weight },
      })
      .exactOptional()
      .meta({ description: "Ranking weights. They replace the persona's weights." }),
  })
  .meta({ example: { query: "Where does Ann like to sit?", type: ["preference"], limit: 5 } });

/** A query parameter that may be repeated. */
const repeated = <Item extends z.ZodType<string>>(item: Item) =>
  z.preprocess((value) => (typeof value === "string" ? [value] : value), z.array(item).min(1));

/** A parameter of a query that is a number. */
const numeric = (schema: z.ZodNumber) =>
  z
    .string()
    .regex(/^[0-9]{0,9}(?:\.[0-9]{1,9})?$/, "Must be a number.")
    .transform(Number)
    .pipe(schema)
    .meta({ description: schema.meta()?.description ?? "" });

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

const filterParams = {
  type: z
    .exactOptional(repeated(name))
    .meta({ description: "Of this type. If repeated: of any of these types." }),
  speaker: name.exactOptional().meta({ description: "Of this speaker." }),
  session: name.exactOptional().meta({ description: "Of this session." }),
  from: from.exactOptional(),
  before: before.exactOptional(),
  userId: name.exactOptional().meta({ description: "About this user." }),
  conversationId: name.exactOptional().meta({ description: "From this conversation." }),
  metadata: z.exactOptional(jsonText(metadataFilter)).meta({
    description: "As JSON, members of the metadata that must be equal. At most ten.",
    example: '{"topic":"travel"}',
  }),
};

export const listParams = pageSchema.extend({
  cursor: z
    .string()
    .refine(isMemoryId, CURSOR_RULE)
    .exactOptional()
    .meta({ description: "The `nextCursor` of the previous page." }),
  ...filterParams,
  state: z.exactOptional(repeated(z.enum(MEMORY_STATES))).meta({
    description: "In this state. If repeated: in any of these states. Default: `current`.",
  }),
});

export const searchParams = z.object({
  q: query,
  limit: z.exactOptional(numeric(limit)),
  ...filterParams,
  minRelevance: z.exactOptional(numeric(minRelevance)),
  now: now.exactOptional(),
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
  headerKey: string | undefined,
): { inputs: MemoryInput[]; isBatch: boolean } {
  const isBatch = isJsonObject(body) && "memories" in body;
  const given = isBatch ? validate(batchSchema, body).memories : [validate(inputSchema, body)];
  for (const [index, input] of given.entries()) checkSizes(input, isBatch ? `/memories/${index}` : "");
  if (headerKey === undefined) return { inputs: given, isBatch };
  const key = validate(keySchema, headerKey, "/idempotency-key");
  const inputs = given.map((input, index) => ({
    ...input,
    idempotencyKey: input.idempotencyKey ?? (isBatch ? `${key}/${index}` : key),
  }));
  return { inputs, isBatch };
}

/** Returns a change. Throws `TOO_LARGE` for a text or metadata beyond the limits. */
export function checkedSizes(change: MemoryChange): MemoryChange {
  checkSizes(change);
  return change;
}

/** The keys of a batch have the places of its memories behind them. */
const keySchema = z
  .string()
  .min(1)
  .max(MAX_NAME_LENGTH - 10);

/** Returns the query of a search from its parameters. */
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
