/** Loads the conversations, newest first, and again when the page becomes visible. */
import { useCallback, useEffect, useState } from "react";
import type { ConversationSummary } from "../../../src/client/index.ts";
import { defined } from "../../../src/shared/defined.ts";
import { client } from "../client.ts";
import { type Resource, useResource } from "./use-resource.ts";

const PAGE_SIZE = 50;

export interface Conversations extends Resource<ConversationSummary[]> {
  /** `true` if there are more conversations to load. */
  more: boolean;
  loadMore(): void;
}

export function useConversations(): Conversations {
  const [pages, setPages] = useState(1);
  const load = useCallback((signal: AbortSignal) => firstPages(pages, signal), [pages]);
  const { value, error, reload } = useResource(load);

  useEffect(() => {
    const refresh = () => {
      if (document.visibilityState === "visible") reload();
    };
    document.addEventListener("visibilitychange", refresh);
    return () => document.removeEventListener("visibilitychange", refresh);
  }, [reload]);

  const loadMore = useCallback(() => setPages((count) => count + 1), []);
  return { value: value?.conversations, more: value?.more ?? false, error, reload, loadMore };
}

async function firstPages(
  pages: number,
  signal: AbortSignal,
): Promise<{ conversations: ConversationSummary[]; more: boolean }> {
  const conversations: ConversationSummary[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages; page += 1) {
    const result = await client.conversations.list({
      ...{ limit: PAGE_SIZE, order: "desc", signal },
      ...defined({ cursor }),
    });
    conversations.push(...result.conversations);
    cursor = result.nextCursor;
    if (cursor === undefined) break;
  }
  return { conversations, more: cursor !== undefined };
}
