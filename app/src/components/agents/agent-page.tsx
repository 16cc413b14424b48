/** One agent: its identity, its usage, its memory, and buttons to export or delete it. */
import { useCallback } from "react";
import {
  type AgentView,
  type ConversationSummary,
  DramatisClientError,
} from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { agentDescription, agentName, amountsText, messageOf, momentOf } from "../../format.ts";
import { useMemoryStatus } from "../../hooks/use-memories.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { AGENTS_PATH, memoryPath, newPath } from "../../route.ts";
import { navigate } from "../../router.ts";
import { ConversationItem } from "../conversation-item.tsx";
import { DeleteAction } from "../delete-action.tsx";
import { ErrorNote } from "../error-note.tsx";
import { ExportLink } from "../export-link.tsx";
import { type Fact, Facts } from "../facts.tsx";
import { Link } from "../link.tsx";
import { Loading } from "../loading.tsx";
import { MemoryStatusLine } from "../memory/memory-status.tsx";
import { PageBody } from "../page-body.tsx";
import { PageHeader } from "../page-header.tsx";
import { AgentSetup } from "./agent-setup.tsx";

/** The number of conversations on the page. */
const MAX_RECENT = 5;

interface AgentPageProps {
  id: string;
  /** The newest conversations of the reader. */
  conversations: ConversationSummary[] | undefined;
  /** The agent is deleted. */
  onDeleted: () => void;
  onMenu: (() => void) | undefined;
}

export function AgentPage({ id, conversations, onDeleted, onMenu }: AgentPageProps) {
  const load = useCallback((signal: AbortSignal) => client.agents.get(id, { signal }), [id]);
  const { value: agent, error, reload } = useResource(load);
  const name = agent === undefined ? id : agentName(agent);
  usePageTitle(name);
  return (
    <>
      <PageHeader title={name} subtitle={id} onMenu={onMenu}>
        <Link to={AGENTS_PATH} className="shrink-0 text-sm text-accent hover:underline">
          All agents
        </Link>
      </PageHeader>
      <PageBody>
        <div className="space-y-6">
          {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
          {agent === undefined && error === undefined && <Loading label="Loading the agent" />}
          {agent !== undefined && (
            <>
              <About agent={agent} />
              {!agent.personaMissing && (
                <Link
                  to={newPath(id)}
                  data-testid="talk"
                  className="inline-block rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent"
                >
                  New conversation
                </Link>
              )}
              {!agent.personaMissing && <AgentSetup agent={agent} />}
              <RecentConversations
                name={name}
                conversations={conversations?.filter(({ agentId }) => agentId === id) ?? []}
              />
              <MemoryOf agentId={id} />
              <section aria-labelledby="export-agent" className="space-y-2">
                <h2 id="export-agent" className="text-sm font-semibold">
                  Export
                </h2>
                <ExportLink of="agents" id={id} />
                <p className="text-xs text-muted">A file with the agent and its memory.</p>
              </section>
              <DeleteAgent agentId={id} onDeleted={onDeleted} />
            </>
          )}
        </div>
      </PageBody>
    </>
  );
}

function About({ agent }: { agent: AgentView }) {
  const { id, persona, projectIds, createdAt, jurisdiction } = agent;
  const load = useCallback((signal: AbortSignal) => client.agents.usage(id, { signal }), [id]);
  // Members cannot read the usage. The page leaves it out for them.
  const { value: usage } = useResource(load);
  const { version } = "identity" in persona ? {} : persona;
  const facts: Fact[] = [
    [
      "Persona",
      "identity" in persona
        ? "Its own"
        : `${persona.library}/${persona.id}${version === undefined ? "" : `@${version}`}`,
    ],
    ["Projects", projectIds.join(", ")],
    ["Jurisdiction", jurisdiction],
    ["Created", momentOf(createdAt, new Date())],
    ["Conversations", usage === undefined ? undefined : usage.conversations.toLocaleString()],
    [
      "Used",
      usage === undefined
        ? undefined
        : amountsText({ tokens: usage.inputTokens + usage.outputTokens, usd: usage.cost }),
    ],
  ];
  return (
    <section aria-label="About this agent" data-testid="agent-facts" className="space-y-3">
      {("identity" in persona || agent.personaMissing || agent.description !== undefined) && (
        <p className="text-sm wrap-anywhere">{agentDescription(agent)}</p>
      )}
      <Facts facts={facts} />
    </section>
  );
}

function RecentConversations({
  name,
  conversations,
}: {
  name: string;
  conversations: ConversationSummary[];
}) {
  return (
    <section aria-labelledby="agent-recent" data-testid="agent-recent" className="space-y-2">
      <h2 id="agent-recent" className="text-sm font-semibold">
        Recent conversations
      </h2>
      {conversations.length === 0 ? (
        <p className="text-sm text-muted">None of your latest conversations is with {name}.</p>
      ) : (
        <ul className="-mx-3 space-y-0.5">
          {conversations.slice(0, MAX_RECENT).map((conversation) => (
            <ConversationItem
              key={conversation.id}
              conversation={conversation}
              agentName={name}
              current={false}
              testId="recent-conversation"
              onNavigate={() => undefined}
            />
          ))}
        </ul>
      )}
    </section>
  );
}

function MemoryOf({ agentId }: { agentId: string }) {
  const { value: status, error, reload } = useMemoryStatus(agentId);
  const isMember = error instanceof DramatisClientError && error.code === "FORBIDDEN";
  return (
    <section aria-labelledby="agent-memory" className="space-y-2">
      <h2 id="agent-memory" className="text-sm font-semibold">
        Memory
      </h2>
      {status !== undefined && <MemoryStatusLine status={status} />}
      {error !== undefined && !isMember && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      <Link
        to={memoryPath(agentId)}
        data-testid="open-memory"
        className="inline-block rounded-lg border border-line px-3 py-1.5 text-sm font-medium hover:border-accent"
      >
        Open the memory
      </Link>
    </section>
  );
}

function DeleteAgent({ agentId, onDeleted }: { agentId: string; onDeleted: () => void }) {
  return (
    <section aria-labelledby="delete-agent" className="space-y-2 border-t border-line pt-4">
      <h2 id="delete-agent" className="text-sm font-semibold">
        Delete
      </h2>
      <DeleteAction
        kind="agent"
        asking="Delete it all for good?"
        note="Deletes the agent, its memory, and the conversations without another agent. Its id is never used again. Export it first if you want to keep it."
        onDelete={async () => {
          await client.agents.delete(agentId);
          navigate(AGENTS_PATH);
          onDeleted();
        }}
      />
    </section>
  );
}
