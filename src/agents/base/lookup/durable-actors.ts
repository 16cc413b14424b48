/** Actors as Durable Objects, found by name over their bindings. */
import { getAgentByName } from "agents";
import type { ActorLookup, ConversationActor, MailboxActor } from "../../../protocol/actor-lookup.ts";
import type { AgentApi } from "../../../protocol/agent-api.ts";
import type { ActorAddress } from "../../../protocol/envelope.ts";
import { DramatisError } from "../../../shared/errors.ts";

/** The bindings of the actors. */
export interface ActorBindings {
  Conversation: DurableObjectNamespace;
  Agent: DurableObjectNamespace;
}

/** Actors are named `{tenant}:{id}`, so equal ids of two tenants never meet. */
export function durableActors(bindings: ActorBindings): ActorLookup {
  return {
    agent: (tenant, id) => stub<AgentApi>(bindings.Agent, `${tenant}:${id}`),
    conversation: (tenant, id) => stub<ConversationActor>(bindings.Conversation, `${tenant}:${id}`),
    mailbox: durableMailboxes(bindings),
  };
}

/** Mailboxes by address: the binding of an actor is named as its class, and its kind is that name in kebab case. */
export function durableMailboxes(bindings: object): ActorLookup["mailbox"] {
  return async ({ kind, tenant, id }: ActorAddress) => {
    const binding = classNameOf(kind);
    const namespace: unknown = Reflect.get(bindings, binding);
    if (!isNamespace(namespace)) {
      throw new DramatisError(
        "NOT_FOUND",
        `There is no Durable Object binding "${binding}"; add it to find actors by.`,
      );
    }
    return stub<MailboxActor>(namespace, `${tenant}:${id}`);
  };
}

/** An actor's kind from the name of its class: `Conversation` is `conversation`. */
export function kindOf(className: string): string {
  return className.replaceAll(/(?<=[a-z0-9])[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
}

function classNameOf(kind: string): string {
  return kind.replaceAll(/(?:^|-)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function isNamespace(value: unknown): value is DurableObjectNamespace {
  return typeof value === "object" && value !== null && "idFromName" in value;
}

async function stub<Api>(namespace: DurableObjectNamespace, name: string): Promise<Api> {
  // SAFETY: the class behind each binding is the application's own, which implements `Api`; naming its type here would
  // make the type of every class depend on all others.
  return (await getAgentByName(namespace as never, name)) as unknown as Api;
}
