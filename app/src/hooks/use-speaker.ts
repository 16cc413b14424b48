/** The author of a turn's message, for conversations with other people. */
import { useEffect, useState } from "react";
import { client } from "../client.ts";
import { useSession } from "../session.ts";

/** Returns "You", the id of another person, or `undefined` until the server names the author. Only `isShared` conversations ask it. */
export function useSpeaker(conversationId: string, turnId: string, isShared: boolean): string | undefined {
  const { reader } = useSession();
  const [author, setAuthor] = useState<string | undefined>(undefined);
  useEffect(() => {
    if (!isShared) return;
    const controller = new AbortController();
    client.turns.get(conversationId, turnId, { signal: controller.signal }).then(
      ({ caller }) => setAuthor(caller?.type === "user" ? caller.userId : undefined),
      // The message stays readable without a name.
      () => undefined,
    );
    return () => controller.abort();
  }, [conversationId, turnId, isShared]);
  return !isShared || author === reader?.subject ? "You" : author;
}
