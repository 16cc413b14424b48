/** A list of conversations with its states: loading, empty, failed, and more to load. */
import type { AgentIdentity } from "../../../src/client/index.ts";
import { messageOf } from "../format.ts";
import type { Conversations } from "../hooks/use-conversations.ts";
import { nameAmong } from "../names.ts";
import { ConversationItem } from "./conversation-item.tsx";
import { LoadMore } from "./load-more.tsx";

export interface ConversationListProps {
  agents: AgentIdentity[] | undefined;
  conversations: Conversations;
  currentId: string | null;
  /** The text of an empty list. */
  empty: string;
  onNavigate: () => void;
}

export function ConversationList({
  agents,
  conversations,
  currentId,
  empty,
  onNavigate,
}: ConversationListProps) {
  const { value: list, error, more, loadMore, reload } = conversations;
  return (
    <>
      {list !== undefined && list.length > 0 && (
        <ul className="space-y-0.5">
          {list.map((conversation) => (
            <ConversationItem
              key={conversation.id}
              conversation={conversation}
              agentName={nameAmong(agents, conversation.agentId)}
              current={conversation.id === currentId}
              onNavigate={onNavigate}
            />
          ))}
        </ul>
      )}
      {list?.length === 0 && <p className="px-3 py-2 text-sm text-muted">{empty}</p>}
      {more && (
        <div className="mt-2 px-2">
          <LoadMore onClick={loadMore} />
        </div>
      )}
      {error !== undefined && (
        <div className="px-3 py-2 text-sm text-danger">
          <p>{messageOf(error)}</p>
          <button type="button" onClick={reload} className="mt-1 underline">
            Try again
          </button>
        </div>
      )}
    </>
  );
}
