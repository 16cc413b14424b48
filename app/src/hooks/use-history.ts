/** Loads older messages with their turns, one page at a time. */
import { useCallback, useRef, useState } from "react";
import type { MessageView, TurnView } from "../../../src/client/index.ts";
import type { UseConversationResult } from "../../../src/client/react/use-conversation.ts";
import { defined } from "../../../src/shared/defined.ts";
import { client } from "../client.ts";

export interface History {
  loading: boolean;
  /** `true` once the first message is loaded. */
  complete: boolean;
  error: unknown;
  load(): void;
}

type Progress = Omit<History, "load">;

/** Reads pages from the newest message on, because cursors start there, and skips pages that are loaded. */
export function useHistory(id: string, { state, addHistory }: UseConversationResult): History {
  const [progress, setProgress] = useState<Progress>({ loading: false, complete: false, error: undefined });
  const cursor = useRef<string | undefined>(undefined);
  const busy = useRef(false);
  const loaded = useRef<readonly MessageView[]>([]);
  loaded.current = state.messages;

  const load = useCallback(async () => {
    if (busy.current) return;
    busy.current = true;
    setProgress({ loading: true, complete: false, error: undefined });
    try {
      const page = await olderPage(id, cursor.current, new Set(loaded.current.map((message) => message.id)));
      cursor.current = page.nextCursor;
      addHistory(page);
      setProgress({ loading: false, complete: page.nextCursor === undefined, error: undefined });
    } catch (error) {
      setProgress({ loading: false, complete: false, error });
    } finally {
      busy.current = false;
    }
  }, [id, addHistory]);

  return { ...progress, load };
}

interface Page {
  messages: MessageView[];
  turns: TurnView[];
  nextCursor?: string;
}

async function olderPage(id: string, cursor: string | undefined, known: ReadonlySet<string>): Promise<Page> {
  const page = await client.messages.list(id, { order: "desc", limit: 50, ...defined({ cursor }) });
  const unknown = page.messages.filter((message) => !known.has(message.id));
  if (unknown.length === 0 && page.nextCursor !== undefined) return olderPage(id, page.nextCursor, known);
  const turnIds = [...new Set(unknown.map(({ turnId }) => turnId))];
  const turns = await Promise.all(turnIds.map((turnId) => client.turns.get(id, turnId)));
  return { ...page, messages: page.messages.toReversed(), turns };
}
