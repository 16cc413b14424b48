/** A search over the memories of several agents, for users who can read all of them. */
import { type FormEvent, useCallback, useState } from "react";
import type { AgentSummary } from "../../../../src/client/index.ts";
import type { UseAgentsResult } from "../../../../src/client/react/index.ts";
import { client } from "../../client.ts";
import { agentName, messageOf } from "../../format.ts";
import { usePageTitle } from "../../hooks/use-page-title.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { nameAmong } from "../../names.ts";
import { ErrorNote } from "../error-note.tsx";
import { FIELD } from "../field.tsx";
import { Loading } from "../loading.tsx";
import { PageBody } from "../page-body.tsx";
import { PageHeader } from "../page-header.tsx";
import { Matches } from "./memory-results.tsx";

/** Maximum number of agents in one search. */
const MAX_AGENTS = 20;
/** Maximum number of shown results. */
const MAX_RESULTS = 50;

interface MemoriesPageProps {
  agents: UseAgentsResult;
  onMenu: (() => void) | undefined;
}

export function MemoriesPage({ agents, onMenu }: MemoriesPageProps) {
  usePageTitle("Memories");
  return (
    <>
      <PageHeader title="Memories of several agents" onMenu={onMenu} />
      <PageBody>
        {agents.error !== undefined && <ErrorNote text={messageOf(agents.error)} onRetry={agents.refresh} />}
        {agents.loading && <Loading label="Loading agents" />}
        {agents.agents.length > 0 && <SearchAgents agents={agents.agents} />}
      </PageBody>
    </>
  );
}

interface AgentsSearch {
  agentIds: readonly string[];
  query: string;
}

function SearchAgents({ agents }: { agents: readonly AgentSummary[] }) {
  const [chosen, setChosen] = useState<readonly string[]>(() =>
    agents.slice(0, MAX_AGENTS).map(({ id }) => id),
  );
  const [text, setText] = useState("");
  const [search, setSearch] = useState<AgentsSearch | undefined>(undefined);
  const isFull = chosen.length >= MAX_AGENTS;

  function submit(event: FormEvent) {
    event.preventDefault();
    const query = text.trim();
    if (query !== "" && chosen.length > 0) setSearch({ query, agentIds: chosen });
  }

  return (
    <>
      <search>
        <form aria-label="Memories of agents" onSubmit={submit} className="space-y-3">
          <div className="flex gap-2">
            <input
              type="search"
              aria-label="Search memories"
              placeholder="Ask a question"
              value={text}
              required
              onChange={({ target }) => setText(target.value)}
              enterKeyHint="search"
              className={FIELD}
            />
            <button
              type="submit"
              disabled={chosen.length === 0}
              className="shrink-0 rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent disabled:bg-line disabled:text-muted"
            >
              Search
            </button>
          </div>
          <fieldset className="flex flex-wrap gap-2">
            <legend className="mb-1 text-xs text-muted">
              Agents to ask{agents.length > MAX_AGENTS && `, at most ${MAX_AGENTS}`}
            </legend>
            {agents.map((agent) => {
              const { id } = agent;
              const isChosen = chosen.includes(id);
              return (
                <label
                  key={id}
                  className="flex max-w-full items-center gap-2 rounded-lg border border-line bg-surface px-3 py-1.5 text-sm has-checked:border-accent has-checked:bg-tint pointer-coarse:py-2.5"
                >
                  <input
                    type="checkbox"
                    checked={isChosen}
                    disabled={!isChosen && isFull}
                    onChange={() =>
                      setChosen(isChosen ? chosen.filter((one) => one !== id) : [...chosen, id])
                    }
                    className="size-4 shrink-0 accent-accent"
                  />
                  <span className="min-w-0 truncate">{agentName(agent)}</span>
                </label>
              );
            })}
          </fieldset>
        </form>
      </search>
      {search !== undefined && <AgentsResults key={JSON.stringify(search)} search={search} agents={agents} />}
    </>
  );
}

function AgentsResults({ search, agents }: { search: AgentsSearch; agents: readonly AgentSummary[] }) {
  const load = useCallback(
    (signal: AbortSignal) =>
      client.memories.searchAgents(search.agentIds, { query: search.query, limit: MAX_RESULTS }, { signal }),
    [search],
  );
  const { value: result, error, reload } = useResource(load);
  const nameOf = (id: string) => nameAmong(agents, id);
  return (
    <>
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {result === undefined && error === undefined && <Loading label="Searching" />}
      {result?.failed.map(({ agentId, message }) => (
        <p key={agentId} className="px-1 text-xs text-caution wrap-anywhere">
          {nameOf(agentId)} did not answer: {message}
        </p>
      ))}
      {result !== undefined && <Matches result={result} nameOf={nameOf} />}
    </>
  );
}
