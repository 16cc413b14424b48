/** Loads the conversations by latest activity, the pinned ones first, and again when the page becomes visible. */
import type { ConversationSummary } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { type PageOptions, type Pages, usePages } from "./use-pages.ts";

export type Conversations = Pages<ConversationSummary>;

/** Milliseconds between two reads of the list: other people and triggers move conversations. */
const REFRESH_MS = 30_000;
/** The most pinned conversations that the list shows. */
const MAX_PINNED = 200;

async function load({ order: _, ...page }: PageOptions) {
  const list = { sort: "activity", ...page } as const;
  const { signal, cursor } = page;
  const [pinned, { conversations, ...rest }] = await Promise.all([
    cursor === undefined
      ? client.conversations.list({ sort: "activity", pinned: true, limit: MAX_PINNED, signal })
      : { conversations: [] },
    client.conversations.list({ ...list, pinned: false }),
  ]);
  return { items: [...pinned.conversations, ...conversations], ...rest };
}

async function loadArchived({ order: _, ...page }: PageOptions) {
  const { conversations, ...rest } = await client.conversations.list({
    sort: "activity",
    archived: true,
    ...page,
  });
  return { items: conversations, ...rest };
}

export function useConversations(): Conversations {
  return usePages(load, REFRESH_MS);
}

/** Loads the conversations that the reader archived. */
export function useArchived(): Conversations {
  return usePages(loadArchived);
}
