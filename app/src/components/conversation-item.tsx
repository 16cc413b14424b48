/** One conversation in the list. */
import type { ConversationSummary } from "../../../src/client/index.ts";
import { conversationPath } from "../route.ts";
import { Link } from "./link.tsx";

interface ConversationItemProps {
  conversation: ConversationSummary;
  agentName: string;
  current: boolean;
  onNavigate: () => void;
}

export function ConversationItem({ conversation, agentName, current, onNavigate }: ConversationItemProps) {
  return (
    <li>
      <Link
        to={conversationPath(conversation.id)}
        onNavigate={onNavigate}
        aria-current={current ? "page" : undefined}
        data-testid="conversation-item"
        className="block rounded-lg px-3 py-2 hover:bg-line/50 aria-[current=page]:bg-line/80"
      >
        <span className="block truncate text-sm">{conversation.title ?? "Untitled conversation"}</span>
        <span className="block truncate text-xs text-muted">{agentName}</span>
      </Link>
    </li>
  );
}
