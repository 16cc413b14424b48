/** The console: the list of conversations beside the current page, or over it on small screens. */
import { useCallback, useState } from "react";
import { flushSync } from "react-dom";
import { useAgents, useApprovals } from "../../../src/client/react/index.ts";
import { client } from "../client.ts";
import { messageOf } from "../format.ts";
import { useConversations } from "../hooks/use-conversations.ts";
import { useMediaQuery } from "../hooks/use-media-query.ts";
import { useResource } from "../hooks/use-resource.ts";
import { nameAmong } from "../names.ts";
import type { Route } from "../route.ts";
import { useRoute } from "../router.ts";
import { AgentPage } from "./agents/agent-page.tsx";
import { AgentsPage } from "./agents/agents-page.tsx";
import type { CodeRoute } from "./code-pages.tsx";
import { ConversationPage } from "./conversation-page.tsx";
import { Drawer } from "./drawer.tsx";
import { ErrorNote } from "./error-note.tsx";
import { InboxPage } from "./inbox-page.tsx";
import { DeadLettersPage } from "./inspector/dead-letters-page.tsx";
import { TurnPage } from "./inspector/turn-page.tsx";
import { TurnsPage } from "./inspector/turns-page.tsx";
import { LibrariesPage } from "./libraries-page.tsx";
import { Loading } from "./loading.tsx";
import { MemoriesPage } from "./memory/memories-page.tsx";
import { MemoryPage } from "./memory/memory-page.tsx";
import { MissingPage } from "./missing-page.tsx";
import { NewConversationPage } from "./new-conversation-page.tsx";
import { OfflineBanner } from "./offline-banner.tsx";
import { PageBody } from "./page-body.tsx";
import { PageHeader, Waiting } from "./page-header.tsx";
import { RunPage } from "./run-page.tsx";
import { RunsPage } from "./runs-page.tsx";
import { Shortcuts } from "./shortcuts.tsx";
import { badgeOf, Sidebar, type SidebarArea } from "./sidebar.tsx";
import { TriggersPage } from "./triggers-page.tsx";

/** The link of the list that leads to a page. */
const AREAS: Record<Route["page"], SidebarArea | undefined> = {
  new: undefined,
  conversation: undefined,
  files: undefined,
  projects: "projects",
  project: "projects",
  artifacts: "projects",
  turn: "turns",
  turns: "turns",
  "dead-letters": "turns",
  inbox: "inbox",
  libraries: "libraries",
  triggers: "triggers",
  runs: "runs",
  run: "runs",
  agents: "all-agents",
  agent: "all-agents",
  memory: "all-agents",
  memories: "all-agents",
  missing: undefined,
};

/** Most readers never open these pages. */
const loadCodePages = () => import("./code-pages.tsx");

function CodePage(props: { route: CodeRoute; onMenu: (() => void) | undefined }) {
  const { value, error, reload } = useResource(loadCodePages);
  if (value !== undefined) return <value.CodePages {...props} />;
  return (
    <>
      <PageHeader title={props.route.page === "files" ? "Files" : "Projects"} onMenu={props.onMenu} />
      <PageBody>
        {error === undefined ? (
          <Loading label="Loading the page" />
        ) : (
          <ErrorNote text={messageOf(error)} onRetry={reload} />
        )}
      </PageBody>
    </>
  );
}

/** Returns the id of the conversation that a page shows. */
function currentConversation(route: Route): string | null {
  if (route.page === "conversation") return route.id;
  return route.page === "files" && "conversation" in route.owner ? route.owner.conversation : null;
}

export function App() {
  const route = useRoute();
  const agents = useAgents({ client });
  const conversations = useConversations();
  const inbox = useApprovals({ client });
  const wide = useMediaQuery("(min-width: 48rem)");
  const [drawerOpen, setDrawerOpen] = useState(false);
  const openDrawer = useCallback(() => setDrawerOpen(true), []);
  const closeDrawer = useCallback(() => setDrawerOpen(false), []);
  const onMenu = wide ? undefined : openDrawer;

  // On small screens the search is in the drawer, which renders first.
  const search = useCallback(() => {
    if (!wide) flushSync(() => setDrawerOpen(true));
    document.querySelector<HTMLElement>("[data-testid=search]")?.focus();
  }, [wide]);

  const reloadAll = () => {
    agents.refresh();
    conversations.reload();
  };

  const sidebar = (
    <Sidebar
      agents={agents.agents}
      conversations={conversations}
      inbox={inbox}
      currentId={currentConversation(route)}
      at={AREAS[route.page]}
      onNavigate={closeDrawer}
    />
  );

  const badge = badgeOf(inbox);
  return (
    <div className="flex h-full">
      <Shortcuts onSearch={search} />
      {wide ? (
        <aside className="w-72 shrink-0 border-r border-line bg-sunken">{sidebar}</aside>
      ) : (
        drawerOpen && <Drawer onClose={closeDrawer}>{sidebar}</Drawer>
      )}
      <Waiting value={badge && `${badge} ${badge === "1" ? "request waits" : "requests wait"}`}>
        <main className="flex min-w-0 flex-1 flex-col">
          <OfflineBanner />
          {route.page === "new" && (
            <NewConversationPage
              key={route.agentId}
              agentId={route.agentId}
              agents={agents}
              onCreated={conversations.reload}
              onMenu={onMenu}
            />
          )}
          {route.page === "missing" && (
            <MissingPage
              title="Page not found"
              detail={`The console has no page at ${route.path}.`}
              onMenu={onMenu}
            />
          )}
          {route.page === "turns" && (
            <TurnsPage agents={agents.agents} search={route.search ?? ""} onMenu={onMenu} />
          )}
          {route.page === "turn" && (
            <TurnPage
              key={`${route.id} ${route.turnId}`}
              id={route.id}
              turnId={route.turnId}
              view={route.view}
              call={route.call}
              agents={agents.agents}
              onMenu={onMenu}
            />
          )}
          {(route.page === "files" ||
            route.page === "projects" ||
            route.page === "project" ||
            route.page === "artifacts") && <CodePage route={route} onMenu={onMenu} />}
          {route.page === "libraries" && <LibrariesPage onMenu={onMenu} />}
          {route.page === "triggers" && <TriggersPage onMenu={onMenu} />}
          {route.page === "inbox" && <InboxPage inbox={inbox} agents={agents.agents} onMenu={onMenu} />}
          {route.page === "dead-letters" && <DeadLettersPage onMenu={onMenu} />}
          {route.page === "runs" && <RunsPage search={route.search ?? ""} onMenu={onMenu} />}
          {route.page === "run" && <RunPage key={route.id} id={route.id} onMenu={onMenu} />}
          {route.page === "agents" && <AgentsPage agents={agents} onMenu={onMenu} />}
          {route.page === "agent" && (
            <AgentPage
              key={route.id}
              id={route.id}
              conversations={conversations.value}
              onDeleted={reloadAll}
              onMenu={onMenu}
            />
          )}
          {route.page === "memory" && (
            <MemoryPage
              key={route.agentId}
              agentId={route.agentId}
              agentName={nameAmong(agents.agents, route.agentId)}
              memoryId={route.memoryId}
              search={route.search ?? ""}
              onMenu={onMenu}
            />
          )}
          {route.page === "memories" && <MemoriesPage agents={agents} onMenu={onMenu} />}
          {route.page === "conversation" && (
            <ConversationPage
              key={route.id}
              id={route.id}
              agents={agents.agents}
              turnId={route.turnId}
              listed={conversations.value && (conversations.value.find(({ id }) => id === route.id) ?? null)}
              onListChanged={conversations.reload}
              onDeleted={conversations.reload}
              onMenu={onMenu}
            />
          )}
        </main>
      </Waiting>
    </div>
  );
}
