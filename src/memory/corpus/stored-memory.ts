/** A memory as the actor stores it and as callers see it. Pure. */
import type { Memory, MemorySubject } from "../../protocol/memory-schemas.ts";
import { defined } from "../../shared/defined.ts";
import type { JsonObject } from "../../shared/json.ts";
import { wholeLength } from "../../shared/text.ts";
import { toIso } from "../../shared/time.ts";
import { fitsUtf8 } from "../../shared/utf8.ts";
import { EXCERPT_LENGTH, MAX_INLINE_BYTES } from "./corpus-limits.ts";

/** Times are milliseconds since the epoch. */
export interface StoredMemory {
  /** Its number in its agent. Numbers ascend and are never reused. */
  n: number;
  id: string;
  key: string | null;
  /** The text. Only its beginning if the memory is `long` or archived. */
  content: string;
  /** The whole text is in the object store, or in a table of long texts until it is stored there. */
  long: boolean;
  /** The key of the text's object, if it is stored. */
  ref: string | null;
  /** A hash of the normalised text and its user. */
  hash: string;
  type: string;
  significance: number;
  speaker: string | null;
  session: string | null;
  sequence: number | null;
  time: number | null;
  metadata: JsonObject;
  userId: string | null;
  conversationId: string | null;
  state: "current" | "ended" | "archived";
  /** It has lost a source. Searches omit it until it is rederived. */
  hidden: boolean;
  tainted: boolean;
  /** An author wrote or confirmed the text without a source, so it outlives all erasures of sources (MEMSRC-2). */
  own: boolean;
  validFrom: number;
  validTo: number | null;
  version: number;
  createdAt: number;
  updatedAt: number;
}

export function excerptOf(text: string): string {
  return text.slice(0, wholeLength(text, EXCERPT_LENGTH));
}

export function isLong(text: string): boolean {
  return !fitsUtf8(text, MAX_INLINE_BYTES);
}

/** Reports whether searches find a memory. */
export function isFound({ state, hidden }: StoredMemory): boolean {
  return state === "current" && !hidden;
}

/** Returns a memory as callers see it. Without the whole `text`, a long text is cut. */
export function toMemory(agentId: string, memory: StoredMemory, text?: string): Memory {
  const { key, speaker, session, sequence, time, validTo } = memory;
  const content = text ?? memory.content;
  const isCut = memory.long && text === undefined && memory.content.length >= EXCERPT_LENGTH - 1;
  return {
    id: memory.id,
    agentId,
    content,
    ...(isCut && { truncated: true as const }),
    type: memory.type,
    significance: memory.significance,
    metadata: memory.metadata,
    subject: subjectOf(memory),
    state: memory.state,
    ...defined({
      key: key ?? undefined,
      speaker: speaker ?? undefined,
      session: session ?? undefined,
      sequence: sequence ?? undefined,
      time: time === null ? undefined : toIso(time),
      validTo: validTo === null ? undefined : toIso(validTo),
    }),
    ...(memory.tainted && { tainted: true as const }),
    validFrom: toIso(memory.validFrom),
    version: memory.version,
    createdAt: toIso(memory.createdAt),
    updatedAt: toIso(memory.updatedAt),
  };
}

function subjectOf({ userId, conversationId }: StoredMemory): MemorySubject {
  return defined({ userId: userId ?? undefined, conversationId: conversationId ?? undefined });
}
