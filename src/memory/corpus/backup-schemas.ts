/**
 * Schemas for the memory lines of an agent's export.
 *
 * BACKUP-10  A file contains only memories that a write could create: names, texts, metadata and numbers have the same limits. Times have
 *            the ISO 8601 form of exports. An id leaves room for the numbers of later memories. So a file never makes an agent unreadable.
 * BACKUP-11  A file contains no hidden memory. An export leaves hidden memories out, and an import could not rederive them.
 */
import { z } from "zod";
import { isOrdered, memoryMetadata, memoryText, name, ORDER } from "../../protocol/memory-requests.ts";
import { UNICODE_RULE } from "../../shared/json.ts";
import { toIso } from "../../shared/time.ts";
import { fitsUtf8 } from "../../shared/utf8.ts";
import { invalidAt } from "../../shared/validation.ts";
import { MAX_CONTENT_BYTES, MAX_INLINE_BYTES, MAX_METADATA_BYTES } from "./corpus-limits.ts";
import { numberOf } from "./memory-id.ts";

/** The highest number of an imported memory. The index supports 2^35. The rest is for later memories. */
const MAX_NUMBER = 2 ** 24;
/** The highest version of an imported memory, far below the limit of exact numbers. */
const MAX_VERSION = 2_000_000_000;
/** Writes accept the years 0 to 9999 in any zone. */
const DAY_MS = 86_400_000;
const MIN_TIME = Date.parse("0000-01-01T00:00:00Z") - DAY_MS;
const MAX_TIME = Date.parse("9999-12-31T23:59:59.999Z") + DAY_MS;

const time = z.int().min(MIN_TIME).max(MAX_TIME);
export const isoTimeSchema = z
  .string()
  .max(30)
  .refine((value) => {
    const at = Date.parse(value);
    return at >= MIN_TIME && at <= MAX_TIME && toIso(at) === value;
  }, "Must be a time in ISO 8601, in UTC and with milliseconds, such as 2025-01-31T12:00:00.000Z.");
const version = z.int().min(1).max(MAX_VERSION);
const memoryId = z.string().refine((id) => {
  const n = numberOf(id);
  return n !== null && n >= 1 && n <= MAX_NUMBER;
}, `Must be the id of a memory, with a number from 1 to ${MAX_NUMBER}.`);
const entries = z.array(z.int().min(0));
const source = z.strictObject({ conversationId: name, turnId: name, entries: entries.exactOptional() });

const ofTurn = { conversationId: name, turnId: name };
const author = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("principal"), subject: z.string().max(1_000) }),
  z.strictObject({ kind: z.literal("tool"), ...ofTurn }),
  z.strictObject({ kind: z.literal("extraction"), ...ofTurn }),
  z.strictObject({ kind: z.literal("task"), ...ofTurn }),
  z.strictObject({ kind: z.literal("run"), runId: name }),
  z.strictObject({ kind: z.enum(["consolidation", "retention", "import"]) }),
]);
/** The text of a log entry. A row keeps only the beginning of a long text. */
const pastText = z
  .string()
  .refine((value) => value.isWellFormed(), UNICODE_RULE)
  .refine((value) => fitsUtf8(value, MAX_INLINE_BYTES), `May have ${MAX_INLINE_BYTES} bytes.`);
/** Members are in the order of entries that the agent writes. */
const logEntry = z.strictObject({
  version,
  change: z.enum(["written", "updated", "ended", "archived", "restored"]),
  at: isoTimeSchema,
  by: author,
  newText: z.literal(true).exactOptional(),
  before: z
    .strictObject({ content: pastText, validFrom: isoTimeSchema, validTo: isoTimeSchema.exactOptional() })
    .exactOptional(),
  sources: z.array(source),
});

/** The log (newest first), the sources and the ids of the parts of a memory, or a piece of them. */
const lists = {
  sources: z.array(source.extend({ statedVersion: version.exactOptional() })),
  parts: z.array(memoryId),
  log: z
    .array(logEntry)
    .refine(
      (log) => log.every((entry, index) => entry.version < (log[index - 1]?.version ?? Infinity)),
      "Must have each version once, newest first.",
    ),
};
const hasOlderParts = ({ id, parts }: { id: string; parts: string[] }) =>
  parts.every((part) => (numberOf(part) ?? 0) < (numberOf(id) ?? 0));
const OLDER_PARTS = { path: ["parts"], message: "Must be memories with lower numbers." };

/** A memory with its whole text, and the first piece of its lists. */
export const memoryLineSchema = z
  .strictObject({
    id: memoryId,
    text: memoryText.refine(
      (text) => fitsUtf8(text, MAX_CONTENT_BYTES),
      `May have ${MAX_CONTENT_BYTES / 1024} KiB.`,
    ),
    key: name.nullable(),
    type: name,
    significance: z.number().min(0).max(1),
    speaker: name.nullable(),
    session: name.nullable(),
    sequence: z.int().min(0).nullable(),
    time: time.nullable(),
    metadata: memoryMetadata.refine(
      (value) => fitsUtf8(JSON.stringify(value), MAX_METADATA_BYTES),
      `May have ${MAX_METADATA_BYTES / 1024} KiB.`,
    ),
    userId: name.nullable(),
    conversationId: name.nullable(),
    state: z.enum(["current", "ended", "archived"]),
    hidden: z.literal(false, "Must be false: an export leaves hidden memories out."),
    tainted: z.boolean(),
    own: z.boolean(),
    validFrom: time,
    validTo: time.nullable(),
    version,
    createdAt: time,
    updatedAt: time,
    ...lists,
  })
  .refine(isOrdered, ORDER)
  .refine(({ log, version }) => log.every((entry) => entry.version <= version), {
    path: ["log"],
    message: "Must not have a version above the version of the memory.",
  })
  .refine(({ sources, version }) => sources.every(({ statedVersion = 1 }) => statedVersion <= version), {
    path: ["sources"],
    message: "Must not have a version above the version of the memory.",
  })
  .refine(hasOlderParts, OLDER_PARTS);

export type MemoryLine = z.output<typeof memoryLineSchema>;

/** The next piece of the lists of the memory before. */
export const moreLineSchema = z.strictObject({ id: memoryId, ...lists }).refine(hasOlderParts, OLDER_PARTS);

export type MoreLine = z.output<typeof moreLineSchema>;

export const saltSchema = z.string().min(16).max(100);

export const erasedSourceSchema = z.strictObject({
  conversationId: name,
  turnId: name.exactOptional(),
  entries: entries.exactOptional(),
});

export const tombstoneSchema = z.strictObject({
  id: memoryId,
  at: time,
  isErased: z.boolean(),
  hash: z.string().max(200).nullable(),
});

/**
 * Throws `INVALID_INPUT` if a time that the agent's clock set is in the future. Clocks may differ by a day. `now` is in milliseconds since
 * the epoch.
 */
export function checkPast<Name extends string>(
  line: Readonly<Record<Name, number>>,
  names: readonly Name[],
  now: number,
): void {
  for (const name of names) {
    if (line[name] <= now + DAY_MS) continue;
    const [path, message] = [`/${name}`, "Must not be in the future."];
    throw invalidAt(path, message, `The memory is not valid: ${path}: ${message}`);
  }
}
