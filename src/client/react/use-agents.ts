/** The agents that the caller may talk to. */
import { useMemo } from "react";
import type { AgentSummary } from "../../protocol/agent-api.ts";
import { defined } from "../../shared/defined.ts";
import type { DramatisClientError } from "../errors.ts";
import { LiveList } from "./live-list.ts";
import { Shared, type SharedOptions, useShared } from "./use-shared.ts";

/** An agent with a name to show, and with messages to begin with. */
export interface TalkingAgent extends AgentSummary {
  /** The name of its persona. Without a name: its id, in words. */
  name: string;
  /** Messages that a page can suggest. May be empty. */
  examples: string[];
}

export interface UseAgentsResult {
  /**
   * The agents in the order of the code, then the other agents, oldest first. Agents with `personaMissing` are last. Empty until they are
   * loaded.
   */
  agents: readonly TalkingAgent[];
  /** `true` until the first answer of the server. */
  loading: boolean;
  /** The failure of the last request. The known agents stay, except after a refusal. */
  error?: DramatisClientError;
  /** `true` if the server has more agents: show a button that calls `loadMore`. */
  more: boolean;
  loadMore(): void;
  /** Loads the agents again. The hook does this every minute, and when the reader returns to the page. */
  refresh(): void;
}

const REFRESH_MS = 60_000;
const NONE: readonly TalkingAgent[] = [];

const shared = new Shared(
  (client) =>
    new LiveList<TalkingAgent>(async (page) => {
      const { agents, ...rest } = await client.agents.list({ ...page, limit: 200, order: "asc" });
      return { items: agents.map(talking), ...rest };
    }, REFRESH_MS),
);

/**
 * Lists the agents of the server. Each has a name, messages to suggest, and a description if its persona has one.
 *
 * @example
 * function AgentPicker({ onPick }: { onPick: (agentId: string) => void }) {
 *   const { agents } = useAgents();
 *   return agents.map(({ id, name, description }) => (
 *     <button key={id} title={description} onClick={() => onPick(id)}>
 *       {name}
 *     </button>
 *   ));
 * }
 */
export function useAgents(options: SharedOptions = {}): UseAgentsResult {
  const store = useShared(shared, options);
  const { items, more, error } = store.getSnapshot();
  const { refresh, loadMore } = store;
  const loading = items === undefined && error === undefined;
  const agents = useMemo(() => (items ?? NONE).toSorted((a, b) => rankOf(a) - rankOf(b)), [items]);
  return { agents, loading, more, ...defined({ error }), refresh, loadMore };
}

function rankOf({ codePosition = Number.MAX_SAFE_INTEGER - 1, personaMissing }: AgentSummary): number {
  return personaMissing ? Number.MAX_SAFE_INTEGER : codePosition;
}

function talking({ name, examples = [], ...agent }: AgentSummary): TalkingAgent {
  return { ...agent, name: name ?? wordsOf(agent.id), examples };
}

/** Converts an id such as `travel-guide` to "Travel guide". */
function wordsOf(id: string): string {
  const words = id.replaceAll(/[-_]+/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
