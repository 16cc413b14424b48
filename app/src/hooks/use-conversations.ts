/** Loads the conversations, newest first, and again when the page becomes visible. */
import type { ConversationSummary } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { type PageOptions, type Pages, usePages } from "./use-pages.ts";

export type Conversations = Pages<ConversationSummary>;

async function load(page: PageOptions) {
  const { conversations, ...rest } = await client.conversations.list(page);
  return { items: conversations, ...rest };
}

export function useConversations(): Conversations {
  return usePages(load);
}
