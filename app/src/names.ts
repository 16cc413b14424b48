/** Names of agents. Pure. */
import type { AgentSummary } from "../../src/client/index.ts";
import { agentName, wordsOf } from "./format.ts";

/** Returns the name of an agent; its id in words, if the agent is not loaded. */
export function nameAmong(agents: readonly AgentSummary[], id: string): string {
  const agent = agents.find((candidate) => candidate.id === id);
  return agent === undefined ? wordsOf(id) : agentName(agent);
}
