/** Gives a conversation without a title the beginning of its first message. */
import { useEffect, useState } from "react";
import { type Content, textOf } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { titleFrom } from "../format.ts";

/** Titles by conversation id. A first message never changes. */
const known = new Map<string, string>();

/**
 * Returns the title; that of the first message without one; "Untitled conversation" until there is a message. `isEmpty`: the
 * conversation has none yet, and is looked at again when it has.
 */
export function useTitle(id: string, given: string | null | undefined, isEmpty = false): string {
  const [, setLoaded] = useState(0);
  const isMissing = given === null && !isEmpty && !known.has(id);
  useEffect(() => {
    if (!isMissing) return;
    const controller = new AbortController();
    load(id, controller.signal).then(
      () => setLoaded((count) => count + 1),
      // The list shows its own errors; here the title stays as it is.
      () => undefined,
    );
    return () => controller.abort();
  }, [id, isMissing]);
  return given ?? known.get(id) ?? "Untitled conversation";
}

async function load(id: string, signal: AbortSignal): Promise<void> {
  const { messages } = await client.messages.list(id, { limit: 1, signal });
  const title = titleOf(messages[0]?.content);
  if (title !== "") known.set(id, title);
}

function titleOf(content: Content | undefined): string {
  return content === undefined ? "" : titleFrom(textOf(content));
}
