/** Gives a conversation without a title the beginning of its first message. */
import { useEffect, useSyncExternalStore } from "react";
import { type Content, textOf } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { titleFrom } from "../format.ts";

/** Titles by conversation id. A first message never changes. */
const known = new Map<string, string>();
const watchers = new Set<() => void>();

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => void watchers.delete(watcher);
}

/**
 * Returns the given title. Without a title it returns the beginning of the first message, or "Untitled conversation" before there
 * is a message. `isEmpty`: the conversation has no message yet.
 */
export function useTitle(id: string, given: string | null | undefined, isEmpty = false): string {
  const title = useSyncExternalStore(watch, () => known.get(id));
  const isMissing = given === null && !isEmpty && title === undefined;
  useEffect(() => {
    if (!isMissing) return;
    const controller = new AbortController();
    // The list shows its own errors; here the title stays as it is.
    load(id, controller.signal).catch(() => undefined);
    return () => controller.abort();
  }, [id, isMissing]);
  return given ?? title ?? "Untitled conversation";
}

async function load(id: string, signal: AbortSignal): Promise<void> {
  const { messages } = await client.messages.list(id, { limit: 1, signal });
  const title = titleOf(messages[0]?.content);
  if (title === "") return;
  known.set(id, title);
  for (const watcher of watchers) watcher();
}

function titleOf(content: Content | undefined): string {
  return content === undefined ? "" : titleFrom(textOf(content));
}
