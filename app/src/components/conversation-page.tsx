/** The page of a conversation, or a notice if the conversation is missing. */
import { useCallback } from "react";
import {
  type AgentSummary,
  type ConversationSummary,
  DramatisClientError,
} from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { useResource } from "../hooks/use-resource.ts";
import { LiveConversation } from "./live-conversation.tsx";
import { MissingPage } from "./missing-page.tsx";

interface ConversationPageProps {
  id: string;
  agents: readonly AgentSummary[];
  /** The turn to begin at. */
  turnId: string | undefined;
  /** As in `ListingActions`. */
  listed: ConversationSummary | null | undefined;
  /** Called when the title or the place in the lists has changed. */
  onListChanged: () => void;
  /** Called when the reader has deleted the conversation. */
  onDeleted: () => void;
  onMenu: (() => void) | undefined;
}

export function ConversationPage({
  id,
  agents,
  turnId,
  listed,
  onListChanged,
  onDeleted,
  onMenu,
}: ConversationPageProps) {
  const load = useCallback((signal: AbortSignal) => client.conversations.get(id, { signal }), [id]);
  const { error } = useResource(load);
  if (error instanceof DramatisClientError && [401, 403, 404].includes(error.status)) {
    return <MissingPage title="Conversation not found" detail={error.detail} onMenu={onMenu} />;
  }
  return (
    <LiveConversation
      id={id}
      agents={agents}
      turnId={turnId}
      listed={listed}
      onListChanged={onListChanged}
      onDeleted={onDeleted}
      onMenu={onMenu}
    />
  );
}
