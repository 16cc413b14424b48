/** The checks of a runtime and the creation of its first agents, reported by `/health`. */

import type { ActorLookup } from "./protocol/actor-lookup.ts";
import type { CreateAgent } from "./protocol/agent-api.ts";
import type { TaskExecutor } from "./protocol/executor-api.ts";
import { DramatisError } from "./shared/errors.ts";

/** An agent that a runtime creates by itself. */
export interface FirstAgent extends CreateAgent {
  /** Default: `local`. */
  tenant?: string;
}

/** Throws `UNAVAILABLE`, with the configuration to change, unless the executor answers an empty batch. */
export async function checkExecutor(executor: TaskExecutor): Promise<void> {
  try {
    await executor.run([], { report: async () => [], cancelled: async () => [] });
  } catch (cause) {
    throw new DramatisError(
      "UNAVAILABLE",
      "Tools cannot run: the `Executor` does not answer. It must be the class of `dramatis()` or extend it, and a service binding `Executor` must have this class as its `entrypoint`.",
      { cause },
    );
  }
}

/** Creates the agents that do not exist. Throws `UNAVAILABLE` if one cannot be created. */
export async function createAgents(actors: ActorLookup, agents: readonly FirstAgent[]): Promise<void> {
  for (const { tenant = "local", ...agent } of agents) {
    const actor = await actors.agent(tenant, agent.id);
    const created = await actor.create({ subject: "system", tenant, roles: ["admin"] }, agent);
    if (created.ok || created.error.code === "CONFLICT") continue;
    throw new DramatisError(
      "UNAVAILABLE",
      `The agent "${agent.id}" could not be created: ${created.error.message}`,
    );
  }
}
