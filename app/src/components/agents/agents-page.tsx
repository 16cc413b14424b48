/** The agents of this server. */
import type { AgentSummary } from "../../../../src/client/index.ts";
import type { UseAgentsResult } from "../../../../src/client/react/index.ts";
import { agentDescription, agentName, messageOf } from "../../format.ts";
import { useHasRole } from "../../hooks/use-me.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { agentPath, memoryPath } from "../../route.ts";
import { Avatar } from "../avatar.tsx";
import { ErrorNote } from "../error-note.tsx";
import { Link } from "../link.tsx";
import { Loading } from "../loading.tsx";
import { NoAgents } from "../no-agents.tsx";
import { PageBody } from "../page-body.tsx";
import { PageHeader } from "../page-header.tsx";
import { ImportAgent } from "./import-agent.tsx";
import { NewAgent } from "./new-agent.tsx";

interface AgentsPageProps {
  agents: UseAgentsResult;
  onMenu: (() => void) | undefined;
}

export function AgentsPage({ agents, onMenu }: AgentsPageProps) {
  usePageTitle("Agents");
  const isAuthor = useHasRole("author");
  const { agents: list, loading, error, refresh } = agents;
  return (
    <>
      <PageHeader title="Agents" onMenu={onMenu} />
      <PageBody>
        <div className="flex flex-wrap gap-2">
          {isAuthor && <NewAgent onCreated={refresh} />}
          <ImportAgent onImported={refresh} />
        </div>
        {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={refresh} />}
        {loading && <Loading label="Loading agents" />}
        {list.length === 0 && !loading && error === undefined && <NoAgents />}
        {list.length > 0 && (
          <ul aria-label="Agents" className="space-y-2">
            {list.map((agent) => (
              <AgentItem key={agent.id} agent={agent} />
            ))}
          </ul>
        )}
      </PageBody>
    </>
  );
}

function AgentItem({ agent }: { agent: AgentSummary }) {
  const name = agentName(agent);
  return (
    <li
      data-testid="agent-item"
      data-agent={agent.id}
      className="flex items-center rounded-xl border border-line bg-surface hover:border-accent"
    >
      <Link to={agentPath(agent.id)} className="flex min-w-0 flex-1 items-center gap-3 rounded-xl px-4 py-3">
        <Avatar name={name} />
        <span className="min-w-0 flex-1">
          <span className="block truncate text-sm font-medium">{name}</span>
          <span className="line-clamp-2 text-xs text-muted wrap-anywhere">{agentDescription(agent)}</span>
        </span>
      </Link>
      <Link
        to={memoryPath(agent.id)}
        className="shrink-0 rounded-xl px-4 py-3 text-sm text-accent hover:underline"
      >
        Memory<span className="sr-only"> of {name}</span>
      </Link>
    </li>
  );
}
