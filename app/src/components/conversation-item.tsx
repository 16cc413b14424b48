/** One conversation in the list. */
import type { ConversationSummary } from "../../../src/client/index.ts";
import { timeInList } from "../format.ts";
import { useTitle } from "../hooks/use-title.ts";
import { conversationPath } from "../route.ts";
import { Link } from "./link.tsx";

interface ConversationItemProps {
  conversation: ConversationSummary;
  agentName: string;
  current: boolean;
  onNavigate: () => void;
}

export function ConversationItem({ conversation, agentName, current, onNavigate }: ConversationItemProps) {
  const { id, createdAt } = conversation;
  const title = useTitle(id, conversation.title);
  return (
    <li>
      <Link
        to={conversationPath(id)}
        onNavigate={onNavigate}
        aria-current={current ? "page" : undefined}
        data-testid="conversation-item"
        className="block rounded-lg px-3 py-2 hover:bg-line/50 aria-[current=page]:bg-line/80"
      >
        <span className="block truncate text-sm">{title}</span>
        <span className="flex gap-2 text-xs text-muted">
          <span className="min-w-0 flex-1 truncate">{agentName}</span>
          <time dateTime={createdAt}>{timeInList(createdAt, new Date())}</time>
        </span>
      </Link>
    </li>
  );
}
