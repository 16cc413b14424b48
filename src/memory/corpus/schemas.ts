/** The requests of the protocol as the corpus takes them: times are milliseconds, and operations of extractions are checked one by one. */
import { z } from "zod";
import { MEMORY_SCOPES, MEMORY_STATES } from "../../protocol/memory.ts";
import {
  batchOf,
  filterFields,
  isOrdered,
  MAX_BATCH,
  memoryChange,
  memoryFields,
  memoryInput,
  memoryQuery,
  memorySubject,
  memoryText,
  name,
  ORDER,
  searchFields,
  zonedTime,
} from "../../protocol/memory-requests.ts";
import { type DramatisError, tooLarge } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import { pageOptionsSchema } from "../../shared/page.ts";
import { fitsUtf8 } from "../../shared/utf8.ts";
import { MAX_CONTENT_BYTES, MAX_METADATA_BYTES, MAX_OPERATIONS } from "./corpus-limits.ts";
import { isMemoryId } from "./memory-id.ts";

const TIMES = ["time", "validFrom", "validTo", "from", "before", "now"] as const;

type InMilliseconds<Fields> = {
  [Name in keyof Fields]: Name extends (typeof TIMES)[number]
    ? Exclude<Fields[Name], string> | number
    : Fields[Name];
};

/** Converts checked times to milliseconds since the epoch. */
function inMilliseconds<Fields extends object>(fields: Fields): InMilliseconds<Fields> {
  const times = Object.entries(fields).flatMap(([name, value]) =>
    isTimeName(name) && typeof value === "string" ? [[name, Date.parse(value)] as const] : [],
  );
  // SAFETY: the times are converted, and the other members stay.
  return { ...fields, ...Object.fromEntries(times) } as InMilliseconds<Fields>;
}

const isTimeName = (name: string) => TIMES.some((time) => time === name);

/** Ids of agents in an input are ignored, because an agent has only its own memories. */
const ignored = { agentId: z.unknown().optional() };

const inputSchema = memoryInput.safeExtend(ignored).transform(inMilliseconds);

export const inputsSchema = batchOf(inputSchema);

/** A checked memory to write. Times are milliseconds since the epoch. */
export type CheckedInput = z.output<typeof inputSchema>;

export const changeSchema = memoryChange.transform(inMilliseconds);

export type CheckedChange = Omit<z.output<typeof changeSchema>, "ifVersion">;

export const querySchema = memoryQuery.extend(ignored).transform(inMilliseconds);

export const listSchema = pageOptionsSchema(isMemoryId)
  .extend({ ...ignored, ...filterFields, state: z.array(z.enum(MEMORY_STATES)).min(1).optional() })
  .strict()
  .transform(inMilliseconds);

export type CheckedFilter = Omit<z.output<typeof listSchema>, "limit" | "cursor" | "order">;

const memoryId = name;

const byId = z.discriminatedUnion("op", [
  z
    .object({
      op: z.literal("write"),
      ...memoryFields,
      content: memoryText,
      key: name.optional(),
      derivedFrom: z.array(memoryId).max(MAX_BATCH).optional(),
      subjectName: name.optional(),
    })
    .refine(isOrdered, ORDER)
    .transform(inMilliseconds),
  z
    .object({ op: z.literal("update"), ...memoryFields, memoryId, content: memoryText.optional() })
    .refine(isOrdered, ORDER)
    .transform(inMilliseconds),
  z.object({ op: z.literal("delete"), memoryId }),
  z.object({ op: z.literal("archive"), memoryId }),
]);
const operationSchema = z.union([
  byId,
  z.object({ op: z.literal("delete"), key: name }),
  z.object({ op: z.literal("archive"), key: name }),
]);

export type CheckedOperation = z.output<typeof operationSchema>;

/** Checks one operation. An invalid operation is refused on its own. */
export function checkOperation(operation: unknown): CheckedOperation | null {
  return operationSchema.safeParse(operation).data ?? null;
}

export const extractedSchema = z.object({
  operationId: name,
  scope: z.enum(MEMORY_SCOPES),
  subject: memorySubject,
  source: z.object({
    conversationId: name,
    turnId: name,
    entries: z.array(z.int().min(0)).max(10_000).exactOptional(),
  }),
  time: zonedTime.transform((value) => Date.parse(value)),
  used: z.array(memoryId).max(10_000),
  tainted: z.literal(true).optional(),
  operations: z.array(z.unknown()).max(MAX_OPERATIONS),
});

/** The body of `MEMORY_EXTRACTED`. Its operations are not yet checked. */
export type Extracted = z.output<typeof extractedSchema>;

export const erasedSourcesSchema = z.object({
  conversationId: name,
  turns: z
    .array(z.object({ turnId: name, entries: z.array(z.int().min(0)).exactOptional() }))
    .max(10_000)
    .exactOptional(),
});

export type ErasedSources = z.output<typeof erasedSourcesSchema>;

export const offerSchema = z.strictObject({
  operationId: name,
  query: searchFields.query,
  limit: searchFields.limit.optional(),
});

/** Throws `TOO_LARGE` for a text or metadata above the limits. `at` is the JSON pointer of the memory in the input. */
export function checkSizes(
  { content, metadata }: { content?: string | undefined; metadata?: Json | undefined },
  at = "",
): void {
  if (content !== undefined && !fitsUtf8(content, MAX_CONTENT_BYTES))
    throw tooLargeAt(`${at}/content`, `A memory's text may have up to ${MAX_CONTENT_BYTES / 1024} KiB.`);
  if (metadata !== undefined && !fitsUtf8(JSON.stringify(metadata), MAX_METADATA_BYTES)) {
    throw tooLargeAt(
      `${at}/metadata`,
      `A memory's metadata may have up to ${MAX_METADATA_BYTES / 1024} KiB.`,
    );
  }
}

function tooLargeAt(path: string, message: string): DramatisError {
  return tooLarge(message, { errors: [{ path, message }] });
}
