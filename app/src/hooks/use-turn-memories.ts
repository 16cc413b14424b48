/** Loads the memories that a turn recalled or taught, with their texts. */
import { useCallback, useContext } from "react";
import type { JournalEntryView } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { ConversationId } from "../conversation-id.ts";
import { endsLearning, type TurnMemories, turnMemories } from "../memory/turn-memories.ts";
import { type Resource, useResource } from "./use-resource.ts";

/** Pages of the journal that are searched for the entries of a turn, and the entries of each. */
const MAX_PAGES = 10;
const PAGE_SIZE = 200;
/** Maximum number of loaded texts. */
const MAX_TEXTS = 20;

export interface ShownMemories extends TurnMemories {
  /** Texts by id. Deleted and hidden memories have no text. */
  texts: ReadonlyMap<string, string>;
}

export function useTurnMemories(turnId: string): Resource<ShownMemories> {
  const conversationId = useContext(ConversationId);
  const load = useCallback(
    async (signal: AbortSignal): Promise<ShownMemories> => {
      const [turn, entries] = await Promise.all([
        client.turns.get(conversationId, turnId, { signal }),
        entriesOf(conversationId, turnId, signal),
      ]);
      const memories = turnMemories(turn, entries);
      const learned = memories.learned.flatMap((lesson) => ("memoryId" in lesson ? [lesson.memoryId] : []));
      const ids = [...new Set([...memories.recalled, ...learned])].slice(0, MAX_TEXTS);
      const texts = await Promise.all(ids.map((id) => textOf(memories.agentId, id, signal)));
      return { ...memories, texts: new Map(texts.flat()) };
    },
    [conversationId, turnId],
  );
  return useResource(load);
}

/** Returns the memory entries of a turn, the newest first. */
async function entriesOf(conversationId: string, turnId: string, signal: AbortSignal) {
  const found: JournalEntryView[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const options = { limit: PAGE_SIZE, order: "desc", signal } as const;
    const read = await client.conversations.journal(
      conversationId,
      cursor === undefined ? options : { ...options, cursor },
    );
    const own = read.entries.filter((entry) => entry.turnId === turnId);
    found.push(...own.filter(endsLearning));
    cursor = read.nextCursor;
    if (cursor === undefined || found.length > 0 || own.some(({ type }) => type === "turn.started")) break;
  }
  return found;
}

async function textOf(agentId: string, id: string, signal: AbortSignal): Promise<[string, string][]> {
  try {
    const { content } = await client.memories.get(agentId, id, { signal });
    return [[id, content]];
  } catch {
    return [];
  }
}
