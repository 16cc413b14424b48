/** The list of conversations, with a link that starts a new conversation, and the archive of the reader. */
import { useEffect, useState } from "react";
import type { AgentSummary } from "../../../src/client/index.ts";
import type { UseApprovalsResult } from "../../../src/client/react/index.ts";
import { type Conversations, useArchived } from "../hooks/use-conversations.ts";
import { useHasRole } from "../hooks/use-me.ts";
import { nameAmong } from "../names.ts";
import {
  AGENTS_PATH,
  INBOX_PATH,
  LIBRARIES_PATH,
  PROJECTS_PATH,
  RUNS_PATH,
  TRIGGERS_PATH,
  TURNS_PATH,
} from "../route.ts";
import { navigate } from "../router.ts";
import { Account } from "./account.tsx";
import { ConversationList, type ConversationListProps } from "./conversation-list.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { Link } from "./link.tsx";
import { Logo } from "./logo.tsx";

/** The areas that the list links to. */
export type SidebarArea = "inbox" | "turns" | "runs" | "all-agents" | "projects" | "libraries" | "triggers";

interface SidebarProps {
  agents: readonly AgentSummary[];
  conversations: Conversations;
  currentId: string | null;
  /** The area of the page that is not a conversation. */
  at: SidebarArea | undefined;
  inbox: UseApprovalsResult;
  onNavigate: () => void;
}

export function Sidebar({ agents, conversations, inbox, currentId, at, onNavigate }: SidebarProps) {
  const [showsArchive, setShowsArchive] = useState(false);
  const isAuthor = useHasRole("author");
  const maySetUp = useHasRole("operator") || isAuthor;
  const [search, setSearch] = useState("");
  const list = { agents, currentId, onNavigate };
  const areas: Omit<AreaProps, "at" | "onNavigate">[] = [
    { name: "inbox", to: INBOX_PATH, text: "Inbox", icon: "inbox", badge: badgeOf(inbox) },
    { name: "turns", to: TURNS_PATH, text: "Turns", icon: "list" },
    { name: "runs", to: RUNS_PATH, text: "Runs", icon: "graph" },
    { name: "all-agents", to: AGENTS_PATH, text: "Agents", icon: "agents" },
  ];
  if (maySetUp)
    areas.push(
      { name: "projects", to: PROJECTS_PATH, text: "Projects", icon: "folder" },
      { name: "libraries", to: LIBRARIES_PATH, text: "Libraries", icon: "book" },
      { name: "triggers", to: TRIGGERS_PATH, text: "Triggers", icon: "clock" },
    );

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
        {areas.map((area) => (
          <Area key={area.name} {...area} at={at} onNavigate={onNavigate} />
        ))}
      </div>
      <nav aria-label="Conversations" className="min-h-0 flex-1 overflow-y-auto px-3 pb-4">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (search.trim() === "") return;
            navigate(`${TURNS_PATH}?text=${encodeURIComponent(search.trim())}`);
            onNavigate();
          }}
          className="pb-2"
        >
          <input
            type="search"
            value={search}
            onChange={(event) => setSearch(event.target.value)}
            placeholder="Search"
            aria-label="Search conversations"
            data-testid="search"
            className="block w-full rounded-lg border border-line bg-surface px-3 py-1.5 text-base placeholder:text-muted sm:text-sm"
          />
          {search.trim() !== "" && (
            <button type="submit" className="mt-1 px-3 py-1 text-left text-xs text-accent hover:underline">
              Search the messages for “{search.trim()}”
            </button>
          )}
        </form>
        <div className="flex items-center justify-between px-3 pb-1 text-xs text-muted">
          <h2>{showsArchive ? "Archived" : "Recent"}</h2>
          <button
            type="button"
            onClick={() => setShowsArchive(!showsArchive)}
            data-testid="toggle-archive"
            className="py-1 hover:text-ink hover:underline pointer-coarse:py-2.5"
          >
            {showsArchive ? "Show recent" : "Show archived"}
          </button>
        </div>
        {showsArchive ? (
          <Archive {...list} version={conversations.value} />
        ) : (
          <ConversationList
            {...list}
            conversations={matching(conversations, search, agents)}
            empty={search.trim() === "" ? "No conversations yet." : "No title matches."}
          />
        )}
      </nav>
      <Account />
    </div>
  );
}

/** Returns the number of waiting requests, or `undefined`. */
export function badgeOf({ approvals, more }: UseApprovalsResult): string | undefined {
  return approvals.length === 0 ? undefined : `${approvals.length}${more ? "+" : ""}`;
}

/** Keeps conversations with the searched text in their title or agent. */
function matching(
  conversations: Conversations,
  search: string,
  agents: readonly AgentSummary[],
): Conversations {
  const sought = search.trim().toLowerCase();
  if (sought === "") return conversations;
  const value = conversations.value?.filter(({ title, agentId }) =>
    `${title ?? ""} ${nameAmong(agents, agentId)}`.toLowerCase().includes(sought),
  );
  return { ...conversations, value };
}

interface ArchiveProps extends Omit<ConversationListProps, "conversations" | "empty"> {
  /** Another value reads the archive again. */
  version: unknown;
}

function Archive({ version, ...list }: ArchiveProps) {
  const archived = useArchived();
  const { reload } = archived;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change of the open list may have changed the archive.
  useEffect(reload, [reload, version]);
  return <ConversationList {...list} conversations={archived} empty="No archived conversations." />;
}

interface AreaProps extends Pick<SidebarProps, "at" | "onNavigate"> {
  name: SidebarArea;
  to: string;
  text: string;
  icon: IconName;
  /** Absent for no badge. */
  badge?: string | undefined;
}

function Area({ name, to, text, icon, at, badge, onNavigate }: AreaProps) {
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
      {badge !== undefined && (
        <span
          data-testid={`${name}-badge`}
          className="ml-auto rounded-full bg-caution-tint px-2 py-0.5 text-xs font-medium text-caution"
        >
          {badge}
          <span className="sr-only"> waiting</span>
        </span>
      )}
    </Link>
  );
}
