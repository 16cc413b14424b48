/**
 * The memory of an agent as callers see it: records, searches, operations, and the RPC interface of the `Agent` actor, which is the only
 * writer. Times are ISO 8601 UTC.
 */
import type { z } from "zod";
import type { Result } from "../shared/errors.ts";
import type { Json } from "../shared/json.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import type {
  filterFields,
  MemoryChange,
  MemoryInput,
  MemoryQuery,
  memoryFields,
} from "./memory-requests.ts";
import type {
  Memory,
  MemoryAuthor,
  MemorySearchResult,
  MemorySource,
  MemoryStatus,
  MemorySubject,
  MemoryWhy,
} from "./memory-schemas.ts";

/**
 * The owner of the memories that a conversation sees: the agent, its user, or the conversation. Memories without a
 * subject are visible in every scope.
 */
export const MEMORY_SCOPES = ["agent", "user", "conversation"] as const;

export type MemoryScope = (typeof MEMORY_SCOPES)[number];

/** `current`: found by searches. `ended`: it was true until `validTo`. `archived`: its text is in the archive, and no search finds it. */
export const MEMORY_STATES = ["current", "ended", "archived"] as const satisfies readonly Memory["state"][];

export type MemoryState = Memory["state"];

/** The facts of a memory that its writer may give. */
type MemoryFields = z.input<z.ZodObject<typeof memoryFields>>;

/** The filter of a list or a search. Members that are given must all hold. Without `state` it finds `current` memories. */
export type MemoryFilter = z.input<z.ZodObject<typeof filterFields>> & { state?: MemoryState[] };

/** Minimum relevance of a memory for recall in a conversation. */
export const MIN_RELEVANCE = 0.4;

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

/** The body of `MEMORY_EXTRACTED`. The answer is `learnedMemories`. */
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
