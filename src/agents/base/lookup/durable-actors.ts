/** The look-up of actors that are Durable Objects, by name over their bindings. */
import { getAgentByName } from "agents";
import type { ActorLookup } from "../../../protocol/actor-lookup.ts";
import type { ActorAddress } from "../../../protocol/envelope.ts";
import { DramatisError } from "../../../shared/errors.ts";

export function durableActors(bindings: object): ActorLookup {
  return {
    agent: (tenant, id) => durableActor(bindings, { kind: "agent", tenant, id }),
    conversation: (tenant, id) => durableActor(bindings, { kind: "conversation", tenant, id }),
    mailbox: (address) => durableActor(bindings, address),
  };
}

/**
 * Returns the actor at an address. Its binding has the name of its class, and its kind is that name in kebab case. It is
 * named `{tenant}:{id}`, so equal ids of two tenants differ. Throws `NOT_FOUND` without a binding.
 */
export async function durableActor<Api>(bindings: object, { kind, tenant, id }: ActorAddress): Promise<Api> {
  const binding = kind.replaceAll(/(?:^|-)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const namespace: unknown = Reflect.get(bindings, binding);
  if (typeof namespace !== "object" || namespace === null || !("idFromName" in namespace)) {
    throw new DramatisError(
      "NOT_FOUND",
      `There is no Durable Object binding "${binding}"; add it to the Worker's configuration.`,
    );
  }
  // SAFETY: the class behind each binding is the application's own and implements `Api`. Naming the class here would make
  // the type of every class depend on all others.
  return (await getAgentByName(namespace as never, `${tenant}:${id}`)) as unknown as Api;
}

/** Returns the kind of actors of a class: `Conversation` is `conversation`. */
export function kindOf(className: string): string {
  return className.replaceAll(/(?<=[a-z0-9])[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
}
