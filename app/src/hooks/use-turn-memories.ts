/** Loads the memories that a turn recalled or taught, with their texts. */
import { useCallback, useContext } from "react";
import { client } from "../client.ts";
import { ConversationId } from "../conversation-id.ts";
import { type TurnMemories, turnMemories } from "../memory/turn-memories.ts";
import { type Resource, useResource } from "./use-resource.ts";

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

/** Returns the entries of a turn that end its extraction, the newest first. */
async function entriesOf(conversationId: string, turn: string, signal: AbortSignal) {
  const type = "memory_extraction.applied,memory_extraction.refused";
  const options = { turn, type, order: "desc", signal } as const;
  return (await client.conversations.journal(conversationId, options)).entries;
}

async function textOf(agentId: string, id: string, signal: AbortSignal): Promise<[string, string][]> {
  try {
    const { content } = await client.memories.get(agentId, id, { signal });
    return [[id, content]];
  } catch {
    return [];
  }
}
