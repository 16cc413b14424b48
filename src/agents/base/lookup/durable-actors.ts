/** The look-up of actors that are Durable Objects, by the name of their class and their own. */
import type { ActorLookup } from "../../../protocol/actor-lookup.ts";
import type { ActorAddress } from "../../../protocol/envelope.ts";
import type { ErrorCode } from "../../../shared/errors.ts";
import type { LocationHint } from "../../../shared/location.ts";
import { namespaceOf } from "./exported-classes.ts";
import { actorIn, checkPlace } from "./placement.ts";

/** Finds the actors of this Worker. `env` has the bindings that its configuration declares, if any. */
export function durableActors(env: object): ActorLookup {
  return {
    agent: (tenant, id, hint) => durableActor(env, { kind: "agent", tenant, id }, "UNAVAILABLE", hint),
    conversation: (tenant, id, hint) =>
      durableActor(env, { kind: "conversation", tenant, id }, "UNAVAILABLE", hint),
    coordinator: (tenant, id, hint) =>
      durableActor(env, { kind: "coordinator", tenant, id }, "UNAVAILABLE", hint),
    channel: (tenant, id) => durableActor(env, { kind: "channel", tenant, id }, "UNAVAILABLE"),
    trigger: (tenant, id, hint) => durableActor(env, { kind: "trigger", tenant, id }, "UNAVAILABLE", hint),
    eventLog: (tenant, id) => durableActor(env, { kind: "event-log", tenant, id }, "UNAVAILABLE"),
    workspace: (tenant, id) => durableActor(env, { kind: "workspace", tenant, id }, "UNAVAILABLE"),
    mailbox: (address) => durableActor(env, address),
  };
}

/**
 * Returns the actor at an address. The kind is the name of its class in kebab case. The actor is named `{tenant}:{id}`, so
 * equal ids of two tenants differ, and lives in the jurisdiction that its id names (PLACE-1). Throws an error of `code` unless the Worker exports the class or declares a binding.
 */
export async function durableActor<Api>(
  env: object,
  address: ActorAddress,
  code: ErrorCode = "NOT_FOUND",
  hint?: LocationHint,
): Promise<Api> {
  const namespace = namespaceOf(env, classOf(address.kind), code);
  // SAFETY: each class is the application's own and implements `Api`. Naming the class here would make the type of every
  // class depend on all others.
  return actorIn(namespace, address, hint) as Api;
}

/** Throws `INVALID_INPUT` unless the actor at an address has the jurisdiction of its id. `actual` is its jurisdiction (PLACE-3). */
export function checkActorPlace(env: object, address: ActorAddress, actual: string | undefined): void {
  // SAFETY: the platform's namespaces have this method.
  checkPlace(
    namespaceOf(env, classOf(address.kind), "UNAVAILABLE") as DurableObjectNamespace,
    address,
    actual,
  );
}

/** Returns the class of actors of a kind: `conversation` is `Conversation`. */
function classOf(kind: string): string {
  return kind
    .split("-")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

/** Returns the kind of actors of a class: `Conversation` is `conversation`. */
export function kindOf(className: string): string {
  return className.replaceAll(/(?<=[a-z0-9])[A-Z]/g, (letter) => `-${letter}`).toLowerCase();
}
