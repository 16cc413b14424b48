/** The page of a conversation, or a notice if the conversation is missing. */
import { useCallback } from "react";
import { type AgentIdentity, DramatisClientError } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { useResource } from "../hooks/use-resource.ts";
import { LiveConversation } from "./live-conversation.tsx";
import { MissingConversation } from "./missing-conversation.tsx";

interface ConversationPageProps {
  id: string;
  agents: AgentIdentity[] | undefined;
  /** The turn to begin at. */
  turnId: string | undefined;
  /** Called when the title has changed. */
  onRenamed: () => void;
  /** Called when the reader has deleted the conversation. */
  onDeleted: () => void;
  onMenu: (() => void) | undefined;
}

export function ConversationPage({
  id,
  agents,
  turnId,
  onRenamed,
  onDeleted,
  onMenu,
}: ConversationPageProps) {
  const load = useCallback((signal: AbortSignal) => client.conversations.get(id, { signal }), [id]);
  const { error } = useResource(load);
  if (error instanceof DramatisClientError && [401, 403, 404].includes(error.status)) {
    return <MissingConversation detail={error.detail} onMenu={onMenu} />;
  }
  return (
    <LiveConversation
      id={id}
      agents={agents}
      turnId={turnId}
      onRenamed={onRenamed}
      onDeleted={onDeleted}
      onMenu={onMenu}
    />
  );
}
