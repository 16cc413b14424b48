/** A list of conversations with its states: loading, empty, failed, and more to load. */
import type { AgentSummary } from "../../../src/client/index.ts";
import { messageOf } from "../format.ts";
import { groupsOf } from "../groups.ts";
import type { Conversations } from "../hooks/use-conversations.ts";
import { nameAmong } from "../names.ts";
import { ConversationItem } from "./conversation-item.tsx";
import { LoadMore } from "./load-more.tsx";

export interface ConversationListProps {
  agents: readonly AgentSummary[];
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
        <div className="space-y-3">
          {groupsOf(list, new Date()).map(([group, members]) => (
            <section key={group} aria-label={group}>
              <h3 className="px-3 pb-0.5 text-xs font-medium text-muted">{group}</h3>
              <ul className="space-y-0.5">
                {members.map((conversation) => (
                  <ConversationItem
                    key={conversation.id}
                    conversation={conversation}
                    agentName={nameAmong(agents, conversation.agentId)}
                    current={conversation.id === currentId}
                    onNavigate={onNavigate}
                  />
                ))}
              </ul>
            </section>
          ))}
        </div>
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
