/**
 * The decisions of an agent's memory. A command turns a stored memory, if any, into the memory to store and a log entry. Pure.
 *
 * MEMORY-1  A change updates a memory in place. Its log keeps every replaced text with the time until which it was true.
 * MEMORY-2  An older text never replaces a newer text, in any order of arrival. A text that was true before the current text goes into the
 *           log as ended.
 * MEMORY-4  A memory never ends before it begins.
 * MEMORY-3  Identical writes are no-ops. Rewriting the text of an archived memory restores it to searches.
 * MEMTAINT-1  A change by an untrusted writer taints the memory, even if it changes only type, speaker or metadata, because models read
 *             these. A trusted new text removes the taint only if it also replaces those members, or if the memory has none of them.
 */
import type { MemoryAuthor, MemoryLogEntry, MemorySource } from "../../protocol/memory-schemas.ts";
import { conflict, type DramatisError } from "../../shared/errors.ts";
import { canonicalJson } from "../../shared/json.ts";
import { toIso } from "../../shared/time.ts";
import { invalidAt } from "../../shared/validation.ts";
import type { CheckedChange, CheckedInput } from "./schemas.ts";
import { excerptOf, isLong, type StoredMemory } from "./stored-memory.ts";

const DEFAULT_TYPE = "fact";
const DEFAULT_SIGNIFICANCE = 0.5;

export interface Cause {
  now: number;
  by: MemoryAuthor;
  sources: readonly MemorySource[];
  tainted: boolean;
  /** The text was derived from other memories, so its own sources alone do not state it. */
  isDerived?: boolean;
}

export interface Decided {
  memory: StoredMemory;
  log: MemoryLogEntry;
  /** The whole new text. Absent if the text stays. */
  text?: string;
  /** The sources of the change state the text. */
  isStated?: true;
}

export interface NewMemory {
  n: number;
  id: string;
  hash: string;
  userId: string | null;
  conversationId: string | null;
}

export function written(identity: NewMemory, input: CheckedInput, cause: Cause): Decided {
  const { now, by, sources, tainted } = cause;
  const validTo = input.validTo ?? null;
  const memory: StoredMemory = {
    ...identity,
    key: input.key ?? null,
    ...storedText(input.content),
    ref: null,
    type: input.type ?? DEFAULT_TYPE,
    significance: input.significance ?? DEFAULT_SIGNIFICANCE,
    speaker: input.speaker ?? null,
    session: input.session ?? null,
    sequence: input.sequence ?? null,
    time: input.time ?? null,
    metadata: input.metadata ?? {},
    state: stateAt(validTo, now),
    hidden: false,
    tainted,
    own: isDirect(cause),
    validFrom: input.validFrom ?? Math.min(input.time ?? now, validTo ?? Number.POSITIVE_INFINITY),
    validTo,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  const log: MemoryLogEntry = { version: 1, change: "written", at: toIso(now), by, sources: [...sources] };
  return { memory, log, text: input.content, ...(!cause.isDerived && { isStated: true }) };
}

/**
 * Returns a memory after a change, or `null` if the change is a no-op (MEMORY-3). `hash` is the hash of the change's text. `isKnown`
 * reports whether the memory has this text already. A row cannot tell this for a long text. `isSame` also requires that the memory is
 * neither hidden nor archived.
 */
export function changed(
  memory: StoredMemory,
  change: CheckedChange & { key?: string | undefined },
  cause: Cause,
  { hash, isSame, isKnown }: { hash: string; isSame: boolean; isKnown: boolean },
): Decided | null {
  const { now, by, sources } = cause;
  const content = isSame ? undefined : change.content;
  const isNew = content !== undefined && !isKnown;
  const own = isKnown ? memory.own || isDirect(cause) : isNew ? isDirect(cause) : memory.own;
  const from = change.validFrom ?? validSince(change, now);
  if (content !== undefined && from !== undefined && from < memory.validFrom)
    return withPastText(
      { ...memory, own: isKnown ? own : memory.own },
      content,
      [from, change.validTo ?? memory.validFrom],
      cause,
    );

  const validTo =
    change.validTo !== undefined ? change.validTo : content === undefined ? memory.validTo : null;
  const validFrom =
    content === undefined
      ? (change.validFrom ?? memory.validFrom)
      : Math.max(from ?? now, from === undefined ? memory.validFrom : from);
  if ((change.validFrom ?? change.validTo ?? null) !== null && validTo !== null && validFrom > validTo)
    throw backwards(validFrom, validTo);
  const isBack = content !== undefined || memory.state !== "archived";
  const next: StoredMemory = {
    ...memory,
    ...(content !== undefined && {
      ...storedText(content),
      ref: null,
      hash,
      tainted: cause.tainted || (memory.tainted && !isVouchedFor(memory, change)),
      hidden: false,
    }),
    own,
    type: change.type ?? memory.type,
    significance: change.significance ?? memory.significance,
    speaker: change.speaker === undefined ? memory.speaker : change.speaker,
    session: change.session === undefined ? memory.session : change.session,
    sequence: change.sequence === undefined ? memory.sequence : change.sequence,
    time: change.time === undefined ? memory.time : change.time,
    metadata: change.metadata ?? memory.metadata,
    validFrom,
    validTo,
    state: isBack ? stateAt(validTo, now) : memory.state,
  };
  if (content === undefined && isEqual({ ...memory, own }, next)) return null;
  const isTainted = next.tainted || cause.tainted;
  const isOther = content !== undefined || validFrom !== memory.validFrom || validTo !== memory.validTo;
  const end = content === undefined ? memory.validTo : Math.min(memory.validTo ?? validFrom, validFrom);
  const version = memory.version + 1;
  return {
    memory: { ...next, tainted: isTainted, version, updatedAt: now },
    log: {
      version,
      change: "updated",
      at: toIso(now),
      by,
      ...(isNew && { newText: true as const }),
      ...(isOther && { before: pastText(memory.content, memory.validFrom, end) }),
      sources: [...sources],
    },
    ...(content !== undefined && { text: content }),
    ...(isNew && !cause.isDerived && { isStated: true as const }),
  };
}

/**
 * Returns the time since when a changed text is true, if it names no start. It is never after the end. `undefined` means the time of the
 * change.
 */
function validSince({ time, validTo }: CheckedChange, now: number): number | undefined {
  const end = validTo ?? Number.POSITIVE_INFINITY;
  return time === undefined || time === null ? (end < now ? end : undefined) : Math.min(time, end);
}

function backwards(validFrom: number, validTo: number): DramatisError {
  const message = `The memory would be valid from ${toIso(validFrom)} until ${toIso(validTo)}. Give both times.`;
  return invalidAt("/validTo", message);
}

/** Logs a text that ended before the current text began (MEMORY-2). */
function withPastText(
  memory: StoredMemory,
  text: string,
  [from, to]: [from: number, to: number],
  cause: Cause,
): Decided {
  const { now, by, sources } = cause;
  const version = memory.version + 1;
  return {
    memory: { ...memory, version, updatedAt: now },
    log: {
      version,
      change: "ended",
      at: toIso(now),
      by,
      before: pastText(isLong(text) ? excerptOf(text) : text, from, Math.min(to, memory.validFrom)),
      sources: [...sources],
    },
  };
}

export function archived(memory: StoredMemory, { now, by, sources }: Cause): Decided | null {
  if (memory.state === "archived") return null;
  const version = memory.version + 1;
  return {
    memory: { ...memory, state: "archived", version, updatedAt: now },
    log: { version, change: "archived", at: toIso(now), by, sources: [...sources] },
  };
}

/** Reports whether a change with a new text replaces every member that an untrusted writer may have set (MEMTAINT-1). */
function isVouchedFor(memory: StoredMemory, change: CheckedChange & { key?: string | undefined }): boolean {
  return (
    (memory.key === null || change.key === memory.key) &&
    (memory.type === DEFAULT_TYPE || change.type !== undefined) &&
    (memory.speaker === null || change.speaker !== undefined) &&
    (Object.keys(memory.metadata).length === 0 || change.metadata !== undefined)
  );
}

/** Returns the state of a memory that is not archived. */
function stateAt(validTo: number | null, now: number): "current" | "ended" {
  return validTo !== null && validTo <= now ? "ended" : "current";
}

function storedText(text: string): Pick<StoredMemory, "content" | "long"> {
  const long = isLong(text);
  return { content: long ? excerptOf(text) : text, long };
}

function pastText(
  content: string,
  validFrom: number,
  validTo: number | null,
): NonNullable<MemoryLogEntry["before"]> {
  return {
    content,
    validFrom: toIso(validFrom),
    ...(validTo !== null && { validTo: toIso(validTo) }),
  };
}

function isEqual(a: StoredMemory, b: StoredMemory): boolean {
  return canonicalJson({ ...a }) === canonicalJson({ ...b });
}

/** Authors that are independent of the running agent. */
const DIRECT_AUTHORS: ReadonlySet<MemoryAuthor["kind"]> = new Set(["principal", "import"]);

/** Reports whether a text comes from the API or an import, without a source that could be erased. */
export function isDirect({ by, sources }: Pick<Cause, "by" | "sources">): boolean {
  return sources.length === 0 && DIRECT_AUTHORS.has(by.kind);
}

function isText({ change, newText }: MemoryLogEntry): boolean {
  return change === "written" || newText === true;
}

/** Returns the log entry that set the current text. `log` is newest first. */
export function originOfText(log: Iterable<MemoryLogEntry>): MemoryLogEntry | undefined {
  for (const entry of log) if (isText(entry)) return entry;
  return undefined;
}

/** The error for a change that is based on another version. */
export function staleVersion({ version }: StoredMemory, expected: number): DramatisError {
  return conflict(`The memory has version ${version}, not ${expected}. Read it again and repeat the change.`);
}
