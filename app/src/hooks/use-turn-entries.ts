/** Loads the entries of a turn from the timeline of its conversation, which has no filter by turn. */
import { useCallback, useState } from "react";
import type { JournalEntryView } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { type Resource, useResource } from "./use-resource.ts";

const PAGE_SIZE = 200;
/** Pages that one search reads. */
const MAX_PAGES = 20;

export interface TurnEntries {
  entries: JournalEntryView[];
  /** The search ended before the beginning of the turn. */
  more: boolean;
}

export interface TurnEntriesResource extends Resource<TurnEntries> {
  /** Searches older entries, too. */
  searchMore(): void;
}

export function useTurnEntries(
  conversationId: string,
  turnId: string,
  createdAt: string,
): TurnEntriesResource {
  const [searches, setSearches] = useState(1);
  const load = useCallback(
    (signal: AbortSignal) => entriesOf({ conversationId, turnId, createdAt }, searches * MAX_PAGES, signal),
    [conversationId, turnId, createdAt, searches],
  );
  const searchMore = useCallback(() => setSearches((count) => count + 1), []);
  return { ...useResource(load), searchMore };
}

interface TurnPlace {
  conversationId: string;
  turnId: string;
  createdAt: string;
}

/** Reads backward, up to the entries before the creation of the turn. */
async function entriesOf(
  { conversationId, turnId, createdAt }: TurnPlace,
  pages: number,
  signal: AbortSignal,
): Promise<TurnEntries> {
  const found: JournalEntryView[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < pages; page++) {
    const { entries, nextCursor } = await client.conversations.projection(conversationId, "timeline", {
      ...{ limit: PAGE_SIZE, order: "desc", signal },
      ...(cursor === undefined ? {} : { cursor }),
    });
    found.push(...entries.filter((entry) => entry.turnId === turnId));
    cursor = nextCursor;
    const oldest = entries.at(-1);
    if (cursor === undefined || (oldest !== undefined && oldest.time < createdAt)) {
      cursor = undefined;
      break;
    }
  }
  return { entries: found.reverse(), more: cursor !== undefined };
}
