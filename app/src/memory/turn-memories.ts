/** Memories that a turn recalled, and memories that its agent learned from it. Pure. */
import type { JournalEntryView, TurnView } from "../../../src/client/index.ts";

/** The outcome of a memory that an agent wanted to learn. */
export type Lesson =
  | { status: "applied" | "unchanged"; memoryId: string }
  | { status: "refused"; message: string };

export interface TurnMemories {
  agentId: string;
  /** Ids of the memories, the most relevant of each cycle first. */
  recalled: readonly string[];
  /** The error code of the failed recall. */
  error: string | undefined;
  learned: readonly Lesson[];
}

/** Returns the memories of a turn. `entries` are the journal entries that name the turn. */
export function turnMemories(
  turn: Pick<TurnView, "agentId" | "memories" | "memoryError">,
  entries: readonly JournalEntryView[],
): TurnMemories {
  const recalled = new Set((turn.memories ?? []).map(({ id }) => id));
  const learned = entries.flatMap((entry) => lessonsIn(entry));
  return { agentId: turn.agentId, recalled: [...recalled], error: turn.memoryError, learned };
}

/** Reports whether there is something to show. */
export function hasMemories({ recalled, error, learned }: TurnMemories): boolean {
  return recalled.length > 0 || error !== undefined || learned.length > 0;
}

function lessonsIn({ type, data }: JournalEntryView): Lesson[] {
  const facts = isObject(data) ? data : {};
  if (type === "memory_extraction.refused" && typeof facts.message === "string")
    return [{ status: "refused", message: facts.message }];
  if (type !== "memory_extraction.applied" || !Array.isArray(facts.outcomes)) return [];
  return facts.outcomes.flatMap((outcome: unknown): Lesson[] => {
    const { status, memoryId, message } = isObject(outcome) ? outcome : {};
    if (status === "refused" && typeof message === "string") return [{ status, message }];
    const isKept = status === "applied" || status === "unchanged";
    return isKept && typeof memoryId === "string" ? [{ status, memoryId }] : [];
  });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
