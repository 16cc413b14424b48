/** The memory of an agent as its tools and tasks use it: in the scope of the call that runs. */
import { z } from "zod";
import type { Taint } from "../model/taint.ts";
import type { Result } from "../shared/errors.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import { MEMORY_SCOPES, type MemoryFilter } from "./memory.ts";
import type { MemoryChange, MemoryInput, MemoryQuery } from "./memory-requests.ts";
import type { Memory, MemorySearchResult } from "./memory-schemas.ts";

const id = z.string().min(1).max(200);

export const calledMemorySchema = z.object({
  scope: z.enum(MEMORY_SCOPES),
  /** The user of the turn. Absent if the turn has no user or several possible users. */
  userId: id.exactOptional(),
  /** The turn has read untrusted content, so memories that the call writes are marked. */
  tainted: z.literal(true).exactOptional(),
  /** The turn that started the run of this call. Absent if a turn makes the call. */
  turn: z.object({ agentId: id, conversationId: id, turnId: id }).exactOptional(),
});

/** The rights of a call in its agent's memory. They come from the record of its turn only. */
export type CalledMemory = z.infer<typeof calledMemorySchema>;

/**
 * The memory of the call's agent, within the scope of its persona. Written memories have the call's user and
 * conversation as subject. A subject in the input is ignored. Rejects with `ToolError`, `FORBIDDEN` for an agent
 * without memory.
 */
export interface ToolMemory {
  /**
   * Writes up to 100 memories atomically. A repeated write with the same `idempotencyKey` returns the result of the
   * first write.
   */
  write(inputs: MemoryInput[]): Promise<Memory[]>;
  search(query: MemoryQuery): Promise<MemorySearchResult>;
  read(id: string): Promise<Memory>;
  list(options?: PageOptions & MemoryFilter): Promise<Page<Memory>>;
  update(id: string, change: MemoryChange): Promise<Memory>;
  delete(id: string): Promise<void>;
  archive(id: string): Promise<Memory>;
  /** Returns turns of the call's conversation before its own, the newest first. */
  pastTurns(options?: PastTurnsOptions): Promise<PastTurns>;
}

export interface PastTurnsOptions {
  /** Returns only turns before this turn. Pass `next` of the previous page. */
  before?: string;
  /** Estimated tokens of the page, from 100 to 8 000; 2 000 when absent. */
  tokens?: number;
}

export interface PastTurns {
  turns: PastTurn[];
  /** The cursor of the next page. Absent on the last page. */
  next?: string;
}

/** A turn that is over, in words. */
export type PastTurn = {
  turnId: string;
  /** ISO 8601 UTC. */
  at: string;
  message: string;
  answer?: string;
  /** The names of the tools that were called, in order. */
  tools?: string[];
  /** The untrusted origins of the turn's texts. Absent if all texts are trusted. */
  taint?: Taint;
  /** Texts were shortened to fit the page. */
  shortened?: true;
};

export interface PastTurnsRequest extends PastTurnsOptions {
  turnId: string;
  /** Its agent: other agents' turns are not shown. */
  agentId: string;
}

/** The RPC interface of a conversation's actor for reads of its past. Only Workers with a binding reach it. */
export interface PastTurnsApi {
  /** Returns earlier turns of the agent that asks. `NOT_FOUND` for unknown turns. */
  pastTurns(request: PastTurnsRequest): Promise<Result<PastTurns>>;
}
