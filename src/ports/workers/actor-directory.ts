/** Actors as Durable Objects, found by name over their bindings. */
import { getAgentByName } from "agents";
import type { AgentApi } from "../../agents/agent/api.ts";
import type { ActorDirectory, ConversationActor } from "../actor-directory.ts";

/** The bindings of the actors. */
export interface ActorBindings {
  Conversation: DurableObjectNamespace;
  Agent: DurableObjectNamespace;
}

/** Actors are named `{tenant}:{id}`, so equal ids of two tenants never meet. */
export function durableActors(bindings: ActorBindings): ActorDirectory {
  return {
    agent: (tenant, id) => stub<AgentApi>(bindings.Agent, `${tenant}:${id}`),
    conversation: (tenant, id) => stub<ConversationActor>(bindings.Conversation, `${tenant}:${id}`),
  };
}

async function stub<Api>(namespace: DurableObjectNamespace, name: string): Promise<Api> {
  // SAFETY: the class behind each binding is the application's own, which implements `Api`; naming its type here would
  // make the type of every class depend on all others.
  return (await getAgentByName(namespace as never, name)) as unknown as Api;
}
