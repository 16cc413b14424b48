/** Names of agents. Pure. */
import type { AgentIdentity } from "../../src/client/index.ts";
import { agentName, wordsOf } from "./format.ts";

/** Returns the name of an agent among those that are loaded; its id in words, if it is not among them. */
export function nameAmong(agents: readonly AgentIdentity[] | undefined, id: string): string {
  const agent = agents?.find((candidate) => candidate.id === id);
  return agent === undefined ? wordsOf(id) : agentName(agent);
}
