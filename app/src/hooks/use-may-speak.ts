/** The right to write to a conversation. */
import type { ConversationView } from "../../../src/client/index.ts";
import { useSession } from "../session.ts";
import { useHasRole } from "./use-me.ts";

/** Reports whether the reader may write to the conversation, and commit its files. */
export function useMaySpeak({ participants, calledBy }: ConversationView): boolean {
  const { reader } = useSession();
  const isAdmin = useHasRole("admin");
  const takesPart = participants.some(({ type, id }) => type === "user" && id === reader?.subject);
  return calledBy === undefined && (takesPart || isAdmin);
}
