/** A conversation, if there is one with this id. */
import { useCallback } from "react";
import { DramatisClientError } from "../../../src/client/index.ts";
import type { AgentIdentity } from "../../../src/protocol/agent-api.ts";
import { client } from "../client.ts";
import { useResource } from "../hooks/use-resource.ts";
import { LiveConversation } from "./live-conversation.tsx";
import { MissingConversation } from "./missing-conversation.tsx";

interface ConversationPageProps {
  id: string;
  agents: AgentIdentity[] | undefined;
  /** The title is another than it was. */
  onRenamed: () => void;
  onMenu: (() => void) | undefined;
}

export function ConversationPage({ id, agents, onRenamed, onMenu }: ConversationPageProps) {
  const load = useCallback((signal: AbortSignal) => client.conversations.get(id, { signal }), [id]);
  const { error } = useResource(load);
  if (error instanceof DramatisClientError && [401, 403, 404].includes(error.status)) {
    return <MissingConversation detail={error.detail} onMenu={onMenu} />;
  }
  return <LiveConversation id={id} agents={agents} onRenamed={onRenamed} onMenu={onMenu} />;
}
