/**
 * The settings of a persona's memory.
 *
 * MEMSET-1  A persona in code that uses memory must name its scope. In JSON the scope defaults to `agent`, and conversations pin this value.
 * MEMSET-2  A conversation that pinned a persona without a scope has no memory, even if a later release changes the default.
 */
import { z } from "zod";
import type { Persona } from "../../protocol/definitions.ts";
import { MEMORY_SCOPES, type MemoryScope } from "../../protocol/memory.ts";
import { changedWeights, type RankingWeights } from "../../protocol/memory-requests.ts";
import { isJsonObject } from "../../shared/json.ts";

type Memory = NonNullable<Persona["memory"]>;

/** The settings that need a scope. */
const SETTINGS = [
  "memoryExtraction",
  "recall",
  "memoryTools",
  "extract",
  "ranking",
  "retention",
  "consolidation",
] as const satisfies readonly (keyof Memory)[];

/** Default token limit of the memories recalled for a turn. */
const DEFAULT_RECALL_TOKENS = 1_500;
/** Default number of memories recalled for a turn. */
const DEFAULT_RECALL_LIMIT = 12;

/** The fields of a persona's memory that control access, recall and ranking. */
export const memorySettings = {
  scope: z
    .enum(MEMORY_SCOPES, 'Must be "agent", "user" or "conversation": whose memories a conversation sees.')
    .describe(
      "The memories that a conversation can read. `agent`: all memories of the agent, so it may repeat facts from one user to every other user. `user`: memories about the user of the conversation. `conversation`: memories of the conversation. Every scope includes memories without a subject. Over the API, a persona with other memory settings and no `scope` gets `agent`. If the agent has several users, set `user`.",
    )
    .exactOptional(),
  recall: z
    .union(
      [
        z.literal(false),
        z.strictObject({
          tokens: z.int().min(100).max(50_000).exactOptional(),
          limit: z.int().min(1).max(100).exactOptional(),
          minRelevance: z.number().min(0).max(1).exactOptional(),
        }),
      ],
      "Must be {tokens?, limit?, minRelevance?}, or false to disable recall.",
    )
    .exactOptional(),
  memoryTools: z.literal(false, "Must be false, or absent: the model has the tools.").exactOptional(),
  ranking: changedWeights.exactOptional(),
};

/** Returns the settings that use memory, if the persona names no scope. */
export function settingsWithoutScope(memory: unknown): string[] {
  if (!isJsonObject(memory) || memory.scope !== undefined) return [];
  return SETTINGS.filter((name) => memory[name] !== undefined);
}

/** Returns the scope that a conversation pins (MEMSET-1); `undefined` for a persona without memory. */
export function completeScope(memory: Persona["memory"]): MemoryScope | undefined {
  return memory?.scope ?? (settingsWithoutScope(memory).length === 0 ? undefined : "agent");
}

/** Returns the pinned scope; `undefined` if the agent has no memory (MEMSET-2). */
export function memoryScope({ memory }: Pick<Persona, "memory">): MemoryScope | undefined {
  return memory?.scope;
}

/** Limits of the memories recalled for a turn. */
export interface RecallLimits {
  scope: MemoryScope;
  tokens: number;
  limit: number;
  /** The platform's default when absent. */
  minRelevance?: number;
  weights?: Partial<RankingWeights>;
}

/** Returns the limits of a persona's recall; `undefined` if its turns recall no memories. */
export function recallLimits({ memory }: Pick<Persona, "memory">): RecallLimits | undefined {
  if (memory?.scope === undefined || memory.recall === false) return undefined;
  const { scope, recall = {}, ranking: weights } = memory;
  const { tokens = DEFAULT_RECALL_TOKENS, limit = DEFAULT_RECALL_LIMIT, minRelevance } = recall;
  return {
    ...{ scope, tokens, limit },
    ...(minRelevance === undefined ? {} : { minRelevance }),
    ...(weights === undefined ? {} : { weights }),
  };
}

export function hasMemoryTools({ memory }: Pick<Persona, "memory">): boolean {
  return memory?.scope !== undefined && memory.memoryTools !== false;
}
