/** The look-up of actors that are Durable Objects, by the name of their class and their own. */
import { getAgentByName } from "agents";
import type { ActorLookup } from "../../../protocol/actor-lookup.ts";
import type { ActorAddress } from "../../../protocol/envelope.ts";
import type { ErrorCode } from "../../../shared/errors.ts";
import { namespaceOf } from "./exported-classes.ts";

/** Finds the actors of this Worker. `env` has the bindings that its configuration declares, if any. */
export function durableActors(env: object): ActorLookup {
  return {
    agent: (tenant, id) => durableActor(env, { kind: "agent", tenant, id }, "UNAVAILABLE"),
    conversation: (tenant, id) => durableActor(env, { kind: "conversation", tenant, id }, "UNAVAILABLE"),
    mailbox: (address) => durableActor(env, address),
  };
}

/**
 * Returns the actor at an address. The kind is the name of its class in kebab case. The actor is named `{tenant}:{id}`, so
 * equal ids of two tenants differ. Throws an error of `code` unless the Worker exports the class or declares a binding.
 */
export async function durableActor<Api>(
  env: object,
  { kind, tenant, id }: ActorAddress,
  code: ErrorCode = "NOT_FOUND",
): Promise<Api> {
  const name = kind.replaceAll(/(?:^|-)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  const namespace = namespaceOf(env, name, code);
  // SAFETY: each class is the application's own and implements `Api`. Naming the class here would make the type of every
  // class depend on all others.
  return (await getAgentByName(namespace as never, `${tenant}:${id}`)) as unknown as Api;
}

/** Returns the kind of actors of a class: `Conversation` is `conversation`. */
export function kindOf(className: string): string {
  return className.replaceAll(/(?<=[a-z0-9])[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
}
