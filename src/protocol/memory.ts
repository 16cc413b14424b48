/**
 * The memory of an agent as callers see it: records, searches, operations, and the RPC interface of the `Agent` actor, which is the only
 * writer. Times are ISO 8601 UTC.
 */

import type { z } from "zod";
import type { Result } from "../shared/errors.ts";
import type { Json, JsonObject } from "../shared/json.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import type {
  agentsSearchResult,
  author,
  logEntry,
  match,
  memory,
  memoryStatus,
  memoryWhy,
  score,
  searchResult,
  source,
  subject,
} from "./memory-schemas.ts";

/**
 * The owner of the memories that a conversation sees: the agent, its user, or the conversation. Memories without a
 * subject are visible in every scope.
 */
export const MEMORY_SCOPES = ["agent", "user", "conversation"] as const;

export type MemoryScope = (typeof MEMORY_SCOPES)[number];

/**
 * The user and the conversation that a memory is about or comes from. A write over the API sets only the named
 * members.
 */
export type MemorySubject = z.infer<typeof subject>;

/** The source of a memory: a turn, or entries of it. */
export type MemorySource = z.infer<typeof source>;

/**
 * `current`: found by searches. `ended`: it was true until `validTo`. `archived`: its text is in the archive, and no search finds it.
 */
export const MEMORY_STATES = ["current", "ended", "archived"] as const satisfies readonly Memory["state"][];

export type MemoryState = Memory["state"];

/** The facts of a memory that its writer may give. */
export interface MemoryFields {
  /** Any text; `fact` when absent. */
  type?: string;
  /** Its importance whatever the question, from 0 to 1; 0.5 when absent. */
  significance?: number;
  /** The name of the person or agent that said it. */
  speaker?: string;
  /** The session that it belongs to, such as a conversation. Its neighbours there help to find it. */
  session?: string;
  /** Its place in the session. Ascending. */
  sequence?: number;
  /** The time of the event, not of the write. */
  time?: string;
  /** At most 16 KiB of JSON. */
  metadata?: JsonObject;
  /** Since when it is true; `time`, or the time of the write, when absent. */
  validFrom?: string;
  /** Until when it is true; open when absent. */
  validTo?: string;
}

/** A memory to write. */
export interface MemoryInput extends MemoryFields {
  /** At most 256 KiB of UTF-8. */
  content: string;
  /** Names the memory: a second write under the same key and subject updates it. */
  key?: string;
  subject?: MemorySubject;
  /** A repeated write with the same idempotency key returns the result of the first write. */
  idempotencyKey?: string;
}

/** A change of a memory. Absent fields stay; `null` removes. */
export interface MemoryChange {
  content?: string;
  type?: string;
  significance?: number;
  speaker?: string | null;
  session?: string | null;
  sequence?: number | null;
  time?: string | null;
  metadata?: JsonObject;
  validFrom?: string;
  validTo?: string | null;
  /** The version that the change is based on. `CONFLICT` if the memory has another. */
  ifVersion?: number;
}

/** A memory. */
export type Memory = z.infer<typeof memory>;

/** The filter of a list or a search. Members that are given must all hold. */
export interface MemoryFilter {
  type?: string | string[];
  speaker?: string;
  session?: string;
  /** Range of event times. A memory without an event time uses its write time. */
  from?: string;
  before?: string;
  /** Members of the metadata that must be equal. At most ten. */
  metadata?: Record<string, string | number | boolean>;
  subject?: MemorySubject;
  /** `["current"]` when absent. Searches find current memories only. */
  state?: MemoryState[];
}

export interface MemoryQuery extends Omit<MemoryFilter, "state"> {
  /** Text of any kind. Beyond 2 000 characters it is cut. */
  query: string;
  /** Results at most, from 1 to 100; 10 when absent. */
  limit?: number;
  /** The time of the question. Default: the clock. Relative times of the query refer to it. */
  now?: string;
  /** Leaves out results of less relevance, from 0 to 1. 0 when absent. */
  minRelevance?: number;
  /** Weights that replace the persona's weights. */
  weights?: Partial<RankingWeights>;
}

/** The weights of ranking. An absent weight has its default. */
export interface RankingWeights {
  /** The share of the semantic score. The rest is the lexical score. */
  semantic: number;
  /** Of neighbours in the same session. */
  neighbours: number;
  /** Factor for memories of the speaker whom the query names. */
  speaker: number;
  /** The weight of the best memories of the same session. */
  session: number;
  /** Factor for memories of the time that the query names. */
  time: number;
  /** The weight of the significance, relative to relevance. */
  significance: number;
  /** Of recency, beside relevance; 0 by default. */
  recency: number;
}

/** Minimum relevance of a memory for recall in a conversation. */
export const MIN_RELEVANCE = 0.4;

/** Explains the rank of a result. Each member is the contribution of one step. */
export type MemoryScore = z.infer<typeof score>;

export type MemoryMatch = z.infer<typeof match>;

export type MemorySearchResult = z.infer<typeof searchResult>;

/** The result of a search over several agents, by descending relevance. */
export type AgentsSearchResult = z.infer<typeof agentsSearchResult>;

/** An append-only log entry for a change of a memory. Erasing a memory also erases the contents of its entries. */
export type MemoryLogEntry = z.infer<typeof logEntry>;

/** The author of a change. */
export type MemoryAuthor = z.infer<typeof author>;

/** Why a memory is there. */
export type MemoryWhy = z.infer<typeof memoryWhy>;

/** A change that an extraction or a consolidation asks for. */
export type MemoryOperation =
  | ({
      op: "write";
      content: string;
      key?: string;
      derivedFrom?: string[];
      subjectName?: string;
    } & MemoryFields)
  | ({ op: "update"; memoryId: string; content?: string } & MemoryFields)
  | { op: "delete"; memoryId: string }
  | { op: "archive"; memoryId: string }
  /** Names the memory by its key. */
  | { op: "delete"; key: string }
  | { op: "archive"; key: string };

/** The outcome of an operation. */
export type MemoryOutcome =
  | { status: "applied"; memoryId: string; version: number }
  | { status: "unchanged"; memoryId: string }
  | { status: "refused"; code: string; message: string };

/** A memory that an extraction may change, with the version that it saw. */
export interface OfferedMemory {
  id: string;
  version: number;
  type: string;
  content: string;
  key?: string;
  time?: string;
  validFrom: string;
  /** The conversation may read it and not change it: it belongs to all who talk to the agent. */
  readOnly?: true;
}

/** The reader: a principal by the API, or a conversation of the agent in the scope of its persona. */
export type MemoryReader =
  | { principal: Principal }
  | { scope: MemoryScope; userId?: string; conversationId?: string };

/** A writer for a conversation or a run: the reader's rights, and the source of the memory. */
export interface MemoryWriter {
  reader: MemoryReader;
  author: MemoryAuthor;
  /** The subject of the written memories. Default: the subject of each input. */
  subject?: MemorySubject;
  sources?: MemorySource[];
  /** The written text comes from an untrusted source. */
  tainted?: boolean;
}

/** The envelope type that sends extracted operations from a conversation to its agent. */
export const MEMORY_EXTRACTED = "memory.extracted";

/** The body of `MEMORY_EXTRACTED`. The answer is `{outcomes: MemoryOutcome[]}`. */
export interface ExtractedMemories {
  /** The operation of the hook's run, as in `offerMemories`. */
  operationId: string;
  scope: MemoryScope;
  subject: MemorySubject;
  source: MemorySource;
  /** The event time of the turn. */
  time: string;
  /** The memories recalled for the turn. If one of these memories was erased since, the extraction is dropped. */
  used: string[];
  tainted?: true;
  operations: MemoryOperation[];
}

/** The type of the envelope that erases what was learned from a conversation, or from entries of it, alone. The answer is `null`. */
export const MEMORY_SOURCES_ERASED = "memory.sources_erased";

export interface ErasedSources {
  conversationId: string;
  /** Absent: the whole conversation. */
  turns?: { turnId: string; entries?: number[] }[];
}

/** The state of an agent's memory. */
export type MemoryStatus = z.infer<typeof memoryStatus>;

/** The memory's part of the RPC interface of an agent. `NOT_FOUND` for an agent or a memory that is not there or not the reader's to see. */
export interface MemoryApi {
  /** Writes up to 100 memories in one atomic commit. They are durable and searchable when it resolves. */
  writeMemories(writer: MemoryWriter, inputs: MemoryInput[]): Promise<Result<Memory[]>>;
  readMemory(reader: MemoryReader, id: string): Promise<Result<Memory>>;
  searchMemories(reader: MemoryReader, query: MemoryQuery): Promise<Result<MemorySearchResult>>;
  /** Ascending by creation, or descending. */
  listMemories(reader: MemoryReader, options?: PageOptions & MemoryFilter): Promise<Result<Page<Memory>>>;
  updateMemory(writer: MemoryWriter, id: string, change: MemoryChange): Promise<Result<Memory>>;
  /** Erases the memory and its log. */
  deleteMemory(writer: MemoryWriter, id: string): Promise<Result<null>>;
  archiveMemory(writer: MemoryWriter, id: string): Promise<Result<Memory>>;
  whyMemory(reader: MemoryReader, id: string): Promise<Result<MemoryWhy>>;
  memoryStatus(): Promise<Result<MemoryStatus>>;
  /**
   * Returns the memories that are relevant to a turn. Stores their ids under the operation, so the extraction changes
   * only these memories. Idempotent.
   */
  offerMemories(
    reader: MemoryReader,
    offer: { operationId: string; query: string; limit?: number },
  ): Promise<Result<OfferedMemory[]>>;
}

/** The header of an exported agent or conversation. An export is lines of JSON, and the header is its first line. */
export interface ExportHeader {
  dramatis: "agent" | "conversation";
  version: 1;
  id: string;
  exportedAt: string;
  [member: string]: Json;
}
