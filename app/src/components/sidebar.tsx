/** The list of conversations, with a link to start a new one. */
import type { AgentIdentity } from "../../../src/client/index.ts";
import { messageOf } from "../format.ts";
import type { Conversations } from "../hooks/use-conversations.ts";
import { nameAmong } from "../names.ts";
import { AGENTS_PATH, RUNS_PATH } from "../route.ts";
import { ConversationItem } from "./conversation-item.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { Link } from "./link.tsx";
import { LoadMore } from "./load-more.tsx";
import { Logo } from "./logo.tsx";

interface SidebarProps {
  agents: AgentIdentity[] | undefined;
  conversations: Conversations;
  currentId: string | null;
  /** The area of the page that is not a conversation. */
  at: "runs" | "all-agents" | undefined;
  onNavigate: () => void;
}

export function Sidebar({ agents, conversations, currentId, at, onNavigate }: SidebarProps) {
  const { value: list, error, more, loadMore, reload } = conversations;

  return (
    <div className="flex h-full flex-col">
      <div className="flex h-14 shrink-0 items-center gap-2.5 px-4">
        <Logo />
        <span className="font-semibold tracking-tight">Dramatis</span>
      </div>
      <div className="space-y-1 px-3 pb-3">
        <Link
          to="/"
          onNavigate={onNavigate}
          data-testid="new-conversation"
          className="flex items-center gap-2 rounded-lg border border-line bg-surface px-3 py-2 text-sm font-medium hover:border-accent"
        >
          <Icon name="plus" />
          New conversation
        </Link>
        <Area name="runs" to={RUNS_PATH} text="Runs" icon="graph" at={at} onNavigate={onNavigate} />
        <Area
          name="all-agents"
          to={AGENTS_PATH}
          text="Agents"
          icon="agents"
          at={at}
          onNavigate={onNavigate}
        />
      </div>
      <nav aria-label="Conversations" className="min-h-0 flex-1 overflow-y-auto px-3 pb-4">
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
        {list?.length === 0 && <p className="px-3 py-2 text-sm text-muted">No conversations yet.</p>}
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
      </nav>
    </div>
  );
}

interface AreaProps extends Pick<SidebarProps, "at" | "onNavigate"> {
  name: NonNullable<SidebarProps["at"]>;
  to: string;
  text: string;
  icon: IconName;
}

function Area({ name, to, text, icon, at, onNavigate }: AreaProps) {
  return (
    <Link
      to={to}
      onNavigate={onNavigate}
      aria-current={at === name ? "page" : undefined}
      data-testid={name}
      className="flex items-center gap-2 rounded-lg px-3 py-2 text-sm hover:bg-line/50 aria-[current=page]:bg-line/80"
    >
      <Icon name={icon} />
      {text}
    </Link>
  );
}
