/**
 * The decisions of an agent's memory: a stored memory, or none, and one command give the memory to store and its entry of the log.
 * Pure.
 *
 * MEMORY-1  A change of a memory is made in place, and its log keeps every text that it replaced with the time until which that
 *           was true.
 * MEMORY-2  An older text never ends a newer one, in whatever order they come: a text that was true before the current one
 *           goes into the log as ended.
 * MEMORY-4  A memory never ends before it begins.
 * MEMORY-3  Writing what is there already changes nothing. A text that is written again where it is archived is back among what searches find.
 * MEMTAINT-1  A change by a writer whom nobody vouches for taints, whatever member it changes: types, speakers and metadata are read by models, too.
 *           A trusted new text ends the taint only where it gives those anew, or the memory has none.
 */
import type { MemoryAuthor, MemoryLogEntry, MemorySource } from "../../protocol/memory.ts";
import { DramatisError } from "../../shared/errors.ts";
import { canonicalJson } from "../../shared/json.ts";
import { toIso } from "../../shared/time.ts";
import { invalidAt } from "../../shared/validation.ts";
import type { CheckedChange, CheckedInput } from "./schemas.ts";
import { excerptOf, isLong, type StoredMemory } from "./stored-memory.ts";

const DEFAULT_TYPE = "fact";
const DEFAULT_SIGNIFICANCE = 0.5;

/** The author, the time and the sources of a change. */
export interface Cause {
  now: number;
  by: MemoryAuthor;
  sources: readonly MemorySource[];
  tainted: boolean;
  /** The text is made of other memories: its sources alone have not said it. */
  isDerived?: boolean;
}

/** A memory to store, with the entry of its log. */
export interface Decided {
  memory: StoredMemory;
  log: MemoryLogEntry;
  /** The new text as a whole; absent where it stays. */
  text?: string;
  /** The sources of the change have said the text. */
  isSaid?: true;
}

/** The identity of a new memory. */
export interface NewMemory {
  n: number;
  id: string;
  hash: string;
  userId: string | null;
  conversationId: string | null;
}

/** Returns a new memory. */
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
    own: isOwnWord(cause),
    validFrom: input.validFrom ?? Math.min(input.time ?? now, validTo ?? Number.POSITIVE_INFINITY),
    validTo,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  const log: MemoryLogEntry = { version: 1, change: "written", at: toIso(now), by, sources: [...sources] };
  return { memory, log, text: input.content, ...(!cause.isDerived && { isSaid: true }) };
}

/**
 * Returns a memory after a change; `null` if that changes nothing (MEMORY-3). `hash` is that of the change's text. `isKnown` reports
 * whether the change's text is the memory's, which the row of a long text cannot tell, and `isSame` whether it is there, too: neither hidden nor archived.
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
  const own = isKnown ? memory.own || isOwnWord(cause) : isNew ? isOwnWord(cause) : memory.own;
  const from = change.validFrom ?? toldFrom(change, now);
  if (content !== undefined && from !== undefined && from < memory.validFrom)
    return endedBefore(
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
    ...(isNew && !cause.isDerived && { isSaid: true as const }),
  };
}

/** Returns since when a changed text is true that names no time; not after its end. `undefined`: since the change. */
function toldFrom({ time, validTo }: CheckedChange, now: number): number | undefined {
  const end = validTo ?? Number.POSITIVE_INFINITY;
  return time === undefined || time === null ? (end < now ? end : undefined) : Math.min(time, end);
}

function backwards(validFrom: number, validTo: number): DramatisError {
  const message = `The memory would be true from ${toIso(validFrom)} until ${toIso(validTo)}. Give both times.`;
  return invalidAt("/validTo", message);
}

/** Returns a memory with a text in its log that had ended before the current one began (MEMORY-2). */
function endedBefore(
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

/** Returns a memory out of the reach of searches; `null` if it is archived. */
export function archived(memory: StoredMemory, { now, by, sources }: Cause): Decided | null {
  if (memory.state === "archived") return null;
  const version = memory.version + 1;
  return {
    memory: { ...memory, state: "archived", version, updatedAt: now },
    log: { version, change: "archived", at: toIso(now), by, sources: [...sources] },
  };
}

/** Reports whether a change with a new text leaves nothing of what a writer wrote whom nobody vouches for (MEMTAINT-1). */
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

/** Authors that say something themselves, not the agent at work. */
const OWN_WORDS: ReadonlySet<MemoryAuthor["kind"]> = new Set(["principal", "import"]);

/** Reports whether a text comes without a source that could be erased: by the API, or an import. */
export function isOwnWord({ by, sources }: Pick<Cause, "by" | "sources">): boolean {
  return sources.length === 0 && OWN_WORDS.has(by.kind);
}

/** Reports whether an entry of a log gave the memory a text. */
function isText({ change, newText }: MemoryLogEntry): boolean {
  return change === "written" || newText === true;
}

/** Returns the entry by which a memory got the text that it has. `log`: the newest first. */
export function originOfText(log: Iterable<MemoryLogEntry>): MemoryLogEntry | undefined {
  for (const entry of log) if (isText(entry)) return entry;
  return undefined;
}

/** The error of a change that is based on another version. */
export function staleVersion({ version }: StoredMemory, expected: number): DramatisError {
  return new DramatisError(
    "CONFLICT",
    `The memory has version ${version}, not ${expected}. Read it again, and repeat the change.`,
  );
}
