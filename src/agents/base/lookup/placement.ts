/**
 * The placement of actors: the platform's namespace is asked with the location that an actor's id names.
 *
 * PLACE-1  Every look-up of an agent, a conversation, a run or a trigger requests the jurisdiction that its id names, if any. This holds
 *          for look-ups by actors, by routes and by handles. Ids of other kinds of actors have no jurisdiction.
 * PLACE-2  workerd outside of the platform has no jurisdictions. There the actor is in the plain namespace, with a warning. Any other
 *          refusal of the platform is an error, without a look-up elsewhere.
 * PLACE-4  An id with a colon names no actor, because names are `{tenant}:{id}` and a tenant may have colons.
 * PLACE-3  An agent, a conversation, a run or a trigger is created only in the jurisdiction that its id names.
 */
import type { ActorAddress } from "../../../protocol/envelope.ts";
import { invalid, notFound } from "../../../shared/errors.ts";
import { type Jurisdiction, type LocationHint, locationOf } from "../../../shared/location.ts";
import { shorten } from "../../../shared/text.ts";

/** The kinds of actors whose ids name a jurisdiction. */
const LOCATED = new Set(["agent", "conversation", "coordinator", "trigger", "event-log", "workspace"]);

/** The message of workerd, which implements the platform's namespaces without jurisdictions. */
const NOT_IMPLEMENTED = "Jurisdiction restrictions are not implemented in workerd.";

let isWarned = false;

/**
 * Returns the actor at an address, in the namespace of its class. `hint` counts at the first contact only. Sends no request
 * (AGENT-5).
 */
export function actorIn(namespace: unknown, address: ActorAddress, hint?: LocationHint): DurableObjectStub {
  const { kind, tenant, id } = address;
  if (id.includes(":")) throw notFound(`No actor has the id ${JSON.stringify(shorten(id, 100))}.`);
  const { jurisdiction, locationHint } = LOCATED.has(kind) ? locationOf(id, hint) : {};
  // SAFETY: the caller passes the namespace of the actor's class.
  const place = namespaceIn(namespace as DurableObjectNamespace, id, jurisdiction);
  return place.getByName(`${tenant}:${id}`, locationHint && { locationHint });
}

/** Returns the object of an actor's address in a namespace of another class, in the jurisdiction of the actor. */
export function objectOf(
  namespace: DurableObjectNamespace,
  { tenant, id }: Pick<ActorAddress, "tenant" | "id">,
): DurableObjectStub {
  return namespaceIn(namespace, id, locationOf(id).jurisdiction).getByName(`${tenant}:${id}`);
}

/** Returns the part of a namespace in a jurisdiction (PLACE-2). */
function namespaceIn(
  namespace: DurableObjectNamespace,
  id: string,
  jurisdiction: Jurisdiction | undefined,
): DurableObjectNamespace {
  if (jurisdiction === undefined) return namespace;
  if (hasJurisdictions(namespace, jurisdiction)) return namespace.jurisdiction(jurisdiction);
  if (!isWarned)
    console.warn(
      `This workerd has no jurisdictions: "${id}" runs and stores its data without a jurisdiction.`,
    );
  isWarned = true;
  return namespace;
}

/** Throws `INVALID_INPUT` unless an actor is in the jurisdiction that its id names. `actual` is the jurisdiction of its platform id. */
export function checkPlace(
  namespace: { jurisdiction(name: string): unknown },
  { kind, id }: ActorAddress,
  actual: string | undefined,
): void {
  const { jurisdiction } = LOCATED.has(kind) ? locationOf(id) : {};
  if (actual === jurisdiction) return;
  if (actual === undefined && jurisdiction !== undefined && !hasJurisdictions(namespace, jurisdiction))
    return;
  const place = actual === undefined ? "without a jurisdiction" : `in the jurisdiction "${actual}"`;
  throw invalid(
    `The request for "${id}" reached an actor ${place}. Pass \`locationOf("${id}")\` to \`getAgentByName\`.`,
    { errors: [{ path: "/id", message: "Must name the jurisdiction of the actor." }] },
  );
}

function hasJurisdictions(namespace: { jurisdiction(name: string): unknown }, jurisdiction: string): boolean {
  try {
    namespace.jurisdiction(jurisdiction);
    return true;
  } catch (error) {
    if (error instanceof Error && error.message === NOT_IMPLEMENTED) return false;
    throw error;
  }
}
