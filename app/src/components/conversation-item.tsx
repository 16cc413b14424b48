/** One conversation in the list. */
import type { ConversationSummary } from "../../../src/client/index.ts";
import { timeInList } from "../format.ts";
import { useTitle } from "../hooks/use-title.ts";
import { conversationPath } from "../route.ts";
import { ChannelBadge } from "./channel-badge.tsx";
import { Icon } from "./icon.tsx";
import { Link } from "./link.tsx";

interface ConversationItemProps {
  conversation: ConversationSummary;
  agentName: string;
  current: boolean;
  testId?: string;
  onNavigate: () => void;
}

export function ConversationItem({
  conversation,
  agentName,
  current,
  testId = "conversation-item",
  onNavigate,
}: ConversationItemProps) {
  const { id, lastActivityAt, pinned, forkedFrom, channel } = conversation;
  const title = useTitle(id, conversation.title);
  return (
    <li>
      <Link
        to={conversationPath(id)}
        onNavigate={onNavigate}
        aria-current={current ? "page" : undefined}
        data-testid={testId}
        className="block rounded-lg px-3 py-2 hover:bg-line/50 aria-[current=page]:bg-line/80"
      >
        <span className="flex items-center gap-1.5 text-sm">
          {pinned && (
            <span role="img" aria-label="Pinned" className="text-muted">
              <Icon name="pin" className="size-3.5" />
            </span>
          )}
          <span className="min-w-0 flex-1 truncate">{title}</span>
        </span>
        <span className="flex items-center gap-2 text-xs text-muted">
          {channel !== undefined && <ChannelBadge channel={channel} />}
          <span className="min-w-0 flex-1 truncate">
            {agentName}
            {forkedFrom !== undefined && " · Fork"}
          </span>
          <time dateTime={lastActivityAt}>{timeInList(lastActivityAt, new Date())}</time>
        </span>
      </Link>
    </li>
  );
}
