/** Schemas of memory input. Members that are `undefined` count as absent. */
import { z } from "zod";
import {
  type ErasedSources,
  type ExtractedMemories,
  MEMORY_SCOPES,
  MEMORY_STATES,
  type MemoryOperation,
} from "../../protocol/memory.ts";
import { DramatisError } from "../../shared/errors.ts";
import {
  isJson,
  isPlainObject,
  isUnicode,
  type Json,
  type JsonObject,
  UNICODE_RULE,
} from "../../shared/json.ts";
import { pageOptionsSchema } from "../../shared/page.ts";
import { fitsUtf8 } from "../../shared/utf8.ts";
import {
  MAX_BATCH,
  MAX_CONTENT_BYTES,
  MAX_METADATA_BYTES,
  MAX_METADATA_FILTERS,
  MAX_NAME_LENGTH,
  MAX_OPERATIONS,
  MAX_RESULTS,
} from "./corpus-limits.ts";
import { isMemoryId } from "./memory-id.ts";

const text = z.string().refine((value) => value.isWellFormed(), UNICODE_RULE);
export const name = text.min(1).max(MAX_NAME_LENGTH);
export const content = text.refine((value) => value.trim() !== "", "Must not be empty.");
const isTime = (value: string) => !Number.isNaN(Date.parse(value));
/** A time with a zone, as milliseconds since the epoch. */
const time = z.iso
  .datetime({ offset: true, error: "Must be a time in ISO 8601 with a zone." })
  .refine(isTime, "Must be a time in ISO 8601 with a zone.")
  .transform((value) => Date.parse(value));

export const metadata = z
  .custom<JsonObject>((value) => isPlainObject(value) && isJson(value), "Must be an object of JSON.")
  .refine(isUnicode, UNICODE_RULE);

const subject = z.strictObject({ userId: name.optional(), conversationId: name.optional() });

const fields = {
  type: name.optional(),
  significance: z.number().min(0).max(1).optional(),
  speaker: name.optional(),
  session: name.optional(),
  sequence: z.int().min(0).optional(),
  time: time.optional(),
  metadata: metadata.optional(),
  validFrom: time.optional(),
  validTo: time.optional(),
};

/** Reports whether `validTo` is not before `validFrom`, if both are given. */
export function isOrdered({
  validFrom,
  validTo,
}: {
  validFrom?: number | undefined;
  validTo?: number | null | undefined;
}): boolean {
  return validFrom === undefined || validTo === undefined || validTo === null || validFrom <= validTo;
}
export const ORDER = { path: ["validTo"], message: "Must not be before `validFrom`." };

/** Ids of agents in an input are ignored, because an agent has only its own memories. */
const ignored = { agentId: z.unknown().optional() };

const inputSchema = z
  .strictObject({
    ...ignored,
    ...fields,
    content,
    key: name.optional(),
    subject: subject.optional(),
    idempotencyKey: name.optional(),
  })
  .refine(isOrdered, ORDER);

export const inputsSchema = z
  .array(inputSchema)
  .min(1, "Give at least one memory.")
  .max(MAX_BATCH, `Give at most ${MAX_BATCH} memories.`);

/** A checked memory to write. Times are milliseconds since the epoch. */
export type CheckedInput = z.output<typeof inputSchema>;

export const changeSchema = z
  .strictObject({
    ...fields,
    content: content.optional(),
    speaker: name.nullable().optional(),
    session: name.nullable().optional(),
    sequence: z.int().min(0).nullable().optional(),
    time: time.nullable().optional(),
    validTo: time.nullable().optional(),
    ifVersion: z.int().min(1).optional(),
  })
  .refine(
    ({ ifVersion, ...change }) => Object.values(change).some((value) => value !== undefined),
    "Give at least one change.",
  )
  .refine(isOrdered, ORDER);

export type CheckedChange = Omit<z.output<typeof changeSchema>, "ifVersion">;

const filter = {
  type: z.union([name, z.array(name).min(1).max(MAX_NAME_LENGTH)]).optional(),
  speaker: name.optional(),
  session: name.optional(),
  from: time.optional(),
  before: time.optional(),
  metadata: z
    .record(name, z.union([text, z.number(), z.boolean()]))
    .refine((value) => Object.keys(value).length <= MAX_METADATA_FILTERS, `At most ${MAX_METADATA_FILTERS}.`)
    .optional(),
  subject: subject.optional(),
};

const weight = z.number().min(0).max(10).optional();

export const querySchema = z.strictObject({
  ...ignored,
  ...filter,
  query: text,
  limit: z.int().min(1).max(MAX_RESULTS).optional(),
  now: time.optional(),
  minRelevance: z.number().min(0).max(1).optional(),
  weights: z
    .strictObject({
      semantic: weight,
      neighbours: weight,
      speaker: weight,
      session: weight,
      time: weight,
      significance: weight,
      recency: weight,
    })
    .optional(),
});

export const listSchema = pageOptionsSchema(isMemoryId)
  .extend({ ...ignored, ...filter, state: z.array(z.enum(MEMORY_STATES)).min(1).optional() })
  .strict();

export type CheckedFilter = Omit<z.output<typeof listSchema>, "limit" | "cursor" | "order">;

const memoryId = name;

const byId: z.ZodType<CheckedOperation> = z.discriminatedUnion("op", [
  z
    .object({
      op: z.literal("write"),
      ...fields,
      content,
      key: name.optional(),
      derivedFrom: z.array(memoryId).max(MAX_BATCH).optional(),
      subjectName: name.optional(),
    })
    .refine(isOrdered, ORDER),
  z
    .object({ op: z.literal("update"), ...fields, memoryId, content: content.optional() })
    .refine(isOrdered, ORDER),
  z.object({ op: z.literal("delete"), memoryId }),
  z.object({ op: z.literal("archive"), memoryId }),
]);
const operationSchema = z.union([
  byId,
  z.object({ op: z.literal("delete"), key: name }),
  z.object({ op: z.literal("archive"), key: name }),
]);

type InMilliseconds<Fields> = {
  [Name in keyof Fields]: Name extends "time" | "validFrom" | "validTo"
    ? number | undefined
    : Fields[Name] | undefined;
};
type Checked<Operation> = Operation extends { op: infer Op }
  ? { op: Op } & (Operation extends { memoryId: string } ? { memoryId: string } : unknown) &
      (Operation extends { op: "write" } ? { content: string } : unknown) &
      (Operation extends { key: string } ? { key: string } : unknown) &
      InMilliseconds<Omit<Operation, "op" | "memoryId">>
  : never;
export type CheckedOperation = Checked<MemoryOperation>;

/** Checks one operation. An invalid operation is refused on its own. */
export function checkOperation(operation: unknown): CheckedOperation | null {
  return operationSchema.safeParse(operation).data ?? null;
}

export const extractedSchema: z.ZodType<Extracted> = z.object({
  operationId: name,
  scope: z.enum(MEMORY_SCOPES),
  subject,
  source: z.object({
    conversationId: name,
    turnId: name,
    entries: z.array(z.int().min(0)).max(10_000).exactOptional(),
  }),
  time,
  used: z.array(memoryId).max(10_000),
  tainted: z.literal(true).optional(),
  operations: z.array(z.unknown()).max(MAX_OPERATIONS),
});

/** The body of `MEMORY_EXTRACTED`. Its operations are not yet checked. */
export type Extracted = Omit<ExtractedMemories, "time" | "operations" | "tainted" | "subject"> & {
  time: number;
  subject: { userId?: string | undefined; conversationId?: string | undefined };
  tainted?: true | undefined;
  operations: unknown[];
};

export const erasedSourcesSchema: z.ZodType<ErasedSources> = z.object({
  conversationId: name,
  turns: z
    .array(z.object({ turnId: name, entries: z.array(z.int().min(0)).exactOptional() }))
    .max(10_000)
    .exactOptional(),
});

export const offerSchema = z.strictObject({
  operationId: name,
  query: text,
  limit: z.int().min(1).max(MAX_RESULTS).optional(),
});

/** Throws `TOO_LARGE` for a text or metadata above the limits. `at` is the JSON pointer of the memory in the input. */
export function checkSizes(
  { content, metadata }: { content?: string | undefined; metadata?: Json | undefined },
  at = "",
): void {
  if (content !== undefined && !fitsUtf8(content, MAX_CONTENT_BYTES)) {
    throw tooLarge(`${at}/content`, `A memory's text may have up to ${MAX_CONTENT_BYTES / 1024} KiB.`);
  }
  if (metadata !== undefined && !fitsUtf8(JSON.stringify(metadata), MAX_METADATA_BYTES)) {
    throw tooLarge(`${at}/metadata`, `A memory's metadata may have up to ${MAX_METADATA_BYTES / 1024} KiB.`);
  }
}

function tooLarge(path: string, message: string): DramatisError {
  return new DramatisError("TOO_LARGE", message, { errors: [{ path, message }] });
}
