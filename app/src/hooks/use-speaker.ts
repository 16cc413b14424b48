/** The author of a turn's message, for conversations of several people. */
import { useEffect, useState } from "react";
import { client } from "../client.ts";
import { useSession } from "../session.ts";

/** Returns "You", or the id of another person. Only conversations of several people ask the server: `isShared`. */
export function useSpeaker(conversationId: string, turnId: string, isShared: boolean): string {
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
  return author === undefined || author === reader?.subject ? "You" : author;
}
