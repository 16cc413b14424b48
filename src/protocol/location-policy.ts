/**
 * Where the agents and conversations of a tenant may live, as the application decides it. Pure.
 *
 * LOCATION-2  A conversation lives in the jurisdiction that its request names, else in its agent's, else in the tenant's. The
 *             conversation that a call opens lives in its caller's.
 * LOCATION-3  Where the application is strict, nothing new begins outside of the tenant's jurisdiction, and a conversation has only
 *             agents of its own jurisdiction. What is there stays.
 * LOCATION-4  An agent has the id that its request gives. An id that does not name the jurisdiction of the request is refused.
 */
import { z } from "zod";
import { DramatisError } from "../shared/errors.ts";
import {
  inJurisdiction,
  JURISDICTIONS,
  type Jurisdiction,
  jurisdictionOf,
  LOCATION_HINTS,
  type LocationHint,
} from "../shared/location.ts";
import { invalidAt } from "../shared/validation.ts";

/** Where the new agents and conversations of a tenant live. */
export interface LocationPolicy {
  /** The jurisdiction of those whose request names none; absent = none. */
  jurisdiction?: Jurisdiction;
  /** The region to begin in of those whose request names none; absent = near the first request. */
  locationHint?: LocationHint;
  /**
   * Refuses new agents and conversations outside of `jurisdiction`, where it is given, and in a conversation agents of another
   * jurisdiction than its own; `false` when absent.
   */
  strict?: boolean;
}

const jurisdictionSchema = z.enum(JURISDICTIONS).meta({
  description:
    "The jurisdiction that runs it and stores its data, for good. Its id ends in `_` and this name.",
});
export const locationHintSchema = z.enum(LOCATION_HINTS).meta({
  description: "The region to begin in. The platform may choose another.",
});

/** The members of a request that creates an agent or a conversation. */
export const locationFields = {
  jurisdiction: jurisdictionSchema.exactOptional(),
  locationHint: locationHintSchema.exactOptional(),
};

const policySchema = z.strictObject({ ...locationFields, strict: z.boolean().exactOptional() });

/** Returns the policy of an application for a tenant. Throws `UNAVAILABLE` for one that cannot be followed. */
export function checkedPolicy(policy: LocationPolicy | undefined): LocationPolicy {
  const checked = policySchema.safeParse(policy ?? {});
  if (checked.success) return checked.data;
  const reason = checked.error.issues
    .map(({ path, message }) => `\`${path.join(".")}\`: ${message}`)
    .join("; ");
  throw new DramatisError(
    "UNAVAILABLE",
    `\`location\` of the application returned an unusable policy: ${reason}.`,
  );
}

/** Returns the id of a new agent. `random` makes one where the request has none. Throws `INVALID_INPUT` (LOCATION-4). */
export function newAgentId(
  { id, jurisdiction }: { id?: string; jurisdiction?: Jurisdiction },
  policy: LocationPolicy,
  random: () => string,
): string {
  const wanted = jurisdiction ?? (id === undefined ? undefined : jurisdictionOf(id)) ?? policy.jurisdiction;
  if (id === undefined) return inJurisdiction(random(), wanted);
  if (jurisdictionOf(id) === wanted) return id;
  const right = inJurisdiction(id, wanted);
  throw invalidAt("/id", `Must be "${right}" in the jurisdiction "${wanted}".`);
}

/** Returns the id of a new conversation with an agent. `id` is one without a jurisdiction (LOCATION-2). */
export function newConversationIdOf(
  id: string,
  agentId: string,
  { jurisdiction }: { jurisdiction?: Jurisdiction },
  policy: LocationPolicy,
): string {
  return inJurisdiction(id, jurisdiction ?? jurisdictionOf(agentId) ?? policy.jurisdiction);
}

/** Throws `INVALID_INPUT` unless a new agent or conversation may live where its id says (LOCATION-3). */
export function checkNew(id: string, { jurisdiction, strict }: LocationPolicy, path: string): void {
  if (strict !== true || jurisdiction === undefined || jurisdictionOf(id) === jurisdiction) return;
  throw invalidAt(path, `Must be in the jurisdiction "${jurisdiction}", as all that is new of this tenant.`);
}

/** Returns why an agent may not take part in a conversation because of its jurisdiction; `null` if it may (LOCATION-3). */
export function separation(
  conversationId: string,
  agentId: string,
  { strict }: LocationPolicy,
): string | null {
  const [own, other] = [jurisdictionOf(conversationId), jurisdictionOf(agentId)];
  if (strict !== true || own === other) return null;
  const placed = (jurisdiction: Jurisdiction | undefined) =>
    jurisdiction === undefined ? "has no jurisdiction" : `is in the jurisdiction "${jurisdiction}"`;
  return `The agent "${agentId}" ${placed(other)}, and the conversation ${placed(own)}.`;
}

/** Throws `INVALID_INPUT` unless an agent may take part in a new conversation. */
export function checkTogether(conversationId: string, agentId: string, policy: LocationPolicy): void {
  const why = separation(conversationId, agentId, policy);
  if (why !== null) throw invalidAt("/agentId", why);
}
