/**
 * The settings of a persona's memory.
 *
 * MEMSET-1  A persona in code that uses memory names its scope: whose memories a conversation sees is a choice. In JSON without a scope it
 *           is `agent`, which is written into what conversations pin.
 * MEMSET-2  A conversation that has pinned a persona without a scope has no memory, whatever a later release has as a default.
 */
import { z } from "zod";
import type { Persona } from "../../protocol/definitions.ts";
import { MEMORY_SCOPES, type MemoryScope, type RankingWeights } from "../../protocol/memory.ts";
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

const weight = z.exactOptional(z.number().min(0).max(10));

const WEIGHTS = {
  semantic: weight,
  neighbours: weight,
  speaker: weight,
  session: weight,
  time: weight,
  significance: weight,
  recency: weight,
} as const satisfies Record<keyof RankingWeights, z.ZodType>;

/** The fields of a persona's memory that say who sees what. */
export const memorySettings = {
  scope: z.exactOptional(
    z
      .enum(MEMORY_SCOPES, 'Must be "agent", "user" or "conversation": whose memories a conversation sees.')
      .meta({
        description:
          "Whose memories a conversation sees. `agent`: all of the agent's, so what it learned from one user it may tell every other. `user`: those about the user of the conversation. `conversation`: those of the conversation. Memories without a subject are seen in all. A persona by API that has other settings of memory and no `scope` has `agent`: all of its users share what it learns. Set `user` where it has several.",
      }),
  ),
  recall: z.exactOptional(
    z.union(
      [
        z.literal(false),
        z.strictObject({
          tokens: z.exactOptional(z.int().min(100).max(50_000)),
          limit: z.exactOptional(z.int().min(1).max(100)),
          minRelevance: z.exactOptional(z.number().min(0).max(1)),
        }),
      ],
      "Must be {tokens?, limit?, minRelevance?}, or false: no turn is told of memories.",
    ),
  ),
  memoryTools: z.exactOptional(z.literal(false, "Must be false, or absent: the model has the tools.")),
  ranking: z.exactOptional(z.strictObject(WEIGHTS)),
};

/** Returns the settings of a persona that use memory, though it names no scope. */
export function settingsWithoutScope(memory: unknown): string[] {
  if (!isJsonObject(memory) || memory.scope !== undefined) return [];
  return SETTINGS.filter((name) => memory[name] !== undefined);
}

/** Returns the scope as a conversation pins it (MEMSET-1); `undefined` for a persona without memory. */
export function completeScope(memory: Persona["memory"]): MemoryScope | undefined {
  return memory?.scope ?? (settingsWithoutScope(memory).length === 0 ? undefined : "agent");
}

/** Returns the scope that a conversation has pinned; `undefined` where its agent has no memory (MEMSET-2). */
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

/** Returns the limits of a persona's recall; `undefined` where its turns are told of no memories. */
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

/** Reports whether the model of a persona has the tools of memory. */
export function hasMemoryTools({ memory }: Pick<Persona, "memory">): boolean {
  return memory?.scope !== undefined && memory.memoryTools !== false;
}
