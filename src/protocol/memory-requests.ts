/**
 * The requests about memories. HTTP and RPC check them with these schemas. Members that are `undefined` count as absent. Lengths count UTF-16
 * units.
 */
import { z } from "zod";
import { BLANK_RULE } from "../shared/content.ts";
import { isJson, isPlainObject, isUnicode, type JsonObject, UNICODE_RULE } from "../shared/json.ts";

export const MAX_BATCH = 100;

/** Length of types, keys, speakers, sessions and ids of subjects. */
export const MAX_NAME_LENGTH = 200;

const MAX_RESULTS = 100;

const MAX_METADATA_FILTERS = 10;

const text = z.string().refine((value) => value.isWellFormed(), UNICODE_RULE);
export const name = text.min(1).max(MAX_NAME_LENGTH);
export const memoryText = text
  .refine((value) => value.trim() !== "", BLANK_RULE)
  .describe("Text of at most 256 KiB in UTF-8. It is returned unchanged.");
const TIME_RULE = "Must be a time in ISO 8601 with a zone, such as 2026-03-01T10:00:00Z.";
/** A time with a zone. */
export const zonedTime = z.iso
  .datetime({ offset: true, error: TIME_RULE })
  .refine((value) => !Number.isNaN(Date.parse(value)), TIME_RULE);
export const memoryMetadata = z
  .custom<JsonObject>((value) => isPlainObject(value) && isJson(value), "Must be an object of JSON.")
  .meta({ override: { type: "object", additionalProperties: { description: "Any JSON." } } })
  .refine(isUnicode, UNICODE_RULE)
  .describe("At most 16 KiB as JSON.");
const fraction = z.number().min(0).max(1);

const type = name.meta({ description: "Any text. Default: `fact`.", example: "preference" });
const speaker = name.describe("The person who said it.");
const session = name.describe("The session that it belongs to. Its neighbours there help to find it.");
const sequence = z.int().min(0).describe("Its place in the session.");
const time = zonedTime.describe("The time of the event, not of the write.");
const validTo = zonedTime.describe("Until when it is true. Absent: open.");

/** The facts of a memory that its writer may give. */
export const memoryFields = {
  type: type.optional(),
  significance: fraction.optional().describe("How important it is for any question. Default: 0.5."),
  speaker: speaker.optional(),
  session: session.optional(),
  sequence: sequence.optional(),
  time: time.optional(),
  metadata: memoryMetadata.optional(),
  validFrom: zonedTime.optional().describe("Since when it is true. Default: `time`, or now."),
  validTo: validTo.optional(),
};

/** Reports whether `validTo` is not before `validFrom`, if both are given. */
export function isOrdered<Time extends string | number>({
  validFrom,
  validTo,
}: {
  validFrom?: Time | undefined;
  validTo?: Time | null | undefined;
}): boolean {
  if (validFrom === undefined || validTo === undefined || validTo === null) return true;
  return new Date(validFrom).getTime() <= new Date(validTo).getTime();
}
export const ORDER = { path: ["validTo"], message: "Must not be before `validFrom`." };

export const memorySubject = z.strictObject({ userId: name.optional(), conversationId: name.optional() });

export const memoryInput = z
  .strictObject({
    content: memoryText,
    key: name
      .optional()
      .describe("Names the memory: a second write under the same key and subject updates it."),
    ...memoryFields,
    subject: memorySubject
      .optional()
      .describe(
        "The user and the conversation that it is about. Conversations see it by the scope of their persona; one without a subject is seen in every scope.",
      ),
    idempotencyKey: name.optional().describe("Repeating the write with this key answers the same memory."),
  })
  .refine(isOrdered, ORDER)
  .meta({
    id: "NewMemory",
    example: { content: "Ann prefers window seats.", type: "preference", subject: { userId: "ann" } },
  });

/** A memory to write. */
export type MemoryInput = z.input<typeof memoryInput>;

export const batchOf = <Input extends z.ZodType>(input: Input) =>
  z.array(input).min(1, "Give at least one memory.").max(MAX_BATCH, `Give at most ${MAX_BATCH} memories.`);

export const newMemories = z.strictObject({ memories: batchOf(memoryInput) }).meta({ id: "NewMemories" });

/** A change of a memory. Absent fields stay; `null` removes. */
export const memoryChange = z
  .strictObject({
    content: memoryText.optional(),
    ...memoryFields,
    speaker: speaker.nullable().optional(),
    session: session.nullable().optional(),
    sequence: sequence.nullable().optional(),
    time: time.nullable().optional(),
    validTo: validTo.nullable().optional(),
    ifVersion: z
      .int()
      .min(1)
      .optional()
      .describe("The version that the change is based on. `CONFLICT` if it has another."),
  })
  .refine(
    ({ ifVersion, ...change }) => Object.values(change).some((value) => value !== undefined),
    "Give at least one change.",
  )
  .refine(isOrdered, ORDER);

/** A change of a memory. Absent fields stay; `null` removes. */
export type MemoryChange = z.input<typeof memoryChange>;

/** The members of a filter of a list or a search. Members that are given must all hold. */
export const filterFields = {
  type: z.union([name, z.array(name).min(1).max(MAX_NAME_LENGTH)]).optional(),
  speaker: name.optional(),
  session: name.optional(),
  from: zonedTime
    .optional()
    .describe("Memories of this time and later. A memory without an event time uses its write time."),
  before: zonedTime.optional().describe("Memories before this time."),
  metadata: z
    .record(name, z.union([text, z.number(), z.boolean()]))
    .refine(
      (members) => Object.keys(members).length <= MAX_METADATA_FILTERS,
      `Must have at most ${MAX_METADATA_FILTERS} members.`,
    )
    .optional()
    .describe("Members of the metadata that must be equal. At most ten."),
  subject: memorySubject.optional(),
};

const weight = z.number().min(0).max(10).exactOptional();
export const changedWeights = z.strictObject({
  /** The share of the semantic score. The rest is the lexical score. */
  semantic: weight,
  /** Of neighbours in the same session. */
  neighbours: weight,
  /** Factor for memories of the speaker whom the query names. */
  speaker: weight,
  /** The weight of the best memories of the same session. */
  session: weight,
  /** Factor for memories of the time that the query names. */
  time: weight,
  /** The weight of the significance, relative to relevance. */
  significance: weight,
  /** The weight of recency, in addition to relevance; 0 by default. */
  recency: weight,
});

export const rankingWeights = changedWeights.required();

/** The weights of ranking. An absent weight has its default. */
export type RankingWeights = z.infer<typeof rankingWeights>;

export const searchFields = {
  query: text.describe("Text of any kind. Beyond 2 000 characters it is cut."),
  limit: z.int().min(1).max(MAX_RESULTS).describe(`Results at most, from 1 to ${MAX_RESULTS}. Default: 10.`),
  now: zonedTime
    .optional()
    .describe("The time of the question, which its relative times refer to. Default: now."),
  minRelevance: fraction.describe("Leaves out results of less relevance. Default: 0."),
};

export const memoryQuery = z.strictObject({
  ...searchFields,
  limit: searchFields.limit.optional(),
  minRelevance: searchFields.minRelevance.optional(),
  ...filterFields,
  weights: rankingWeights
    .partial()
    .optional()
    .describe("Ranking weights. They replace the persona's weights."),
});

export type MemoryQuery = z.input<typeof memoryQuery>;
