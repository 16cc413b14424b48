/**
 * The location of an actor: the jurisdiction of its execution and storage, and its initial region.
 *
 * LOCATION-1  The jurisdiction of an agent or a conversation is a part of its id: `guide_eu`. An id without this part has no jurisdiction.
 *             So the id is enough to find the actor, and each id has one actor.
 */

/** The jurisdictions of the platform. */
export const JURISDICTIONS = ["eu", "us", "fedramp", "fedramp-high"] as const;

/** A jurisdiction of the platform. An actor runs and stores its data only in its jurisdiction. */
export type Jurisdiction = (typeof JURISDICTIONS)[number];

/** The regions of the platform that a new actor may be asked to begin in. */
export const LOCATION_HINTS = [
  "wnam",
  "enam",
  "sam",
  "weur",
  "eeur",
  "apac",
  "apac-ne",
  "apac-se",
  "oc",
  "afr",
  "me",
] as const;

/** A region of the platform. A hint counts at the first contact with an actor only, and is no promise. */
export type LocationHint = (typeof LOCATION_HINTS)[number];

/** The pattern of a jurisdiction at the end of an id, for regular expressions. */
export const JURISDICTION_SUFFIX = `(?:_(?:${JURISDICTIONS.join("|")}))?`;

/** Returns the jurisdiction in the id of an agent or a conversation, if any. */
export function jurisdictionOf(id: string): Jurisdiction | undefined {
  const split = id.lastIndexOf("_");
  return split < 1 ? undefined : JURISDICTIONS.find((name) => name === id.slice(split + 1));
}

/** Returns the id of the same name in another jurisdiction. `undefined` means no jurisdiction. */
export function inJurisdiction(id: string, jurisdiction: Jurisdiction | undefined): string {
  const current = jurisdictionOf(id);
  const bare = current === undefined ? id : id.slice(0, -current.length - 1);
  return jurisdiction === undefined ? bare : `${bare}_${jurisdiction}`;
}

/**
 * Returns the options of `getAgentByName` for an agent or a conversation. Every look-up by its name needs them.
 *
 * @example
 * const id = newConversationId("eu");
 * const conversation = await getAgentByName(exports.Conversation, `acme:${id}`, locationOf(id));
 */
export function locationOf(
  id: string,
  locationHint?: LocationHint,
): { jurisdiction?: Jurisdiction; locationHint?: LocationHint } {
  const jurisdiction = jurisdictionOf(id);
  return {
    ...(jurisdiction === undefined ? {} : { jurisdiction }),
    ...(locationHint === undefined ? {} : { locationHint }),
  };
}
