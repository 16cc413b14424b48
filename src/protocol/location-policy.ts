/**
 * The locations that an application allows for the agents and conversations of a tenant. Pure.
 *
 * LOCATION-2  A conversation lives in the jurisdiction of its request. The defaults are the agent's jurisdiction,
 *             then the tenant's. A called conversation lives in its caller's jurisdiction.
 * LOCATION-3  If the application is strict, new agents and conversations must be in the tenant's jurisdiction. A
 *             conversation has only agents of its own jurisdiction. Existing actors stay.
 * LOCATION-4  An agent has the id that its request gives. An id that does not name the jurisdiction of the request is
 *             refused.
 */
import { z } from "zod";
import { unavailable } from "../shared/errors.ts";
import {
  inJurisdiction,
  JURISDICTIONS,
  type Jurisdiction,
  jurisdictionOf,
  LOCATION_HINTS,
  type LocationHint,
} from "../shared/location.ts";
import { invalidAt } from "../shared/validation.ts";

/** Location of a tenant's new agents and conversations. */
export interface LocationPolicy {
  /** Jurisdiction for requests that do not name a jurisdiction. Absent: no jurisdiction. */
  jurisdiction?: Jurisdiction;
  /** First region for requests that do not name a region. Absent: near the first request. */
  locationHint?: LocationHint;
  /**
   * Refuses new agents and conversations outside of `jurisdiction`, if it is set. In a conversation, refuses agents
   * of another jurisdiction. Default: `false`.
   */
  strict?: boolean;
}

const jurisdictionSchema = z
  .enum(JURISDICTIONS)
  .describe("The jurisdiction that runs it and stores its data, for good. Its id ends in `_` and this name.");
const locationHintSchema = z
  .enum(LOCATION_HINTS)
  .describe("The region to begin in. The platform may choose another.");

/** The members of a request that creates an agent or a conversation. */
export const locationFields = {
  jurisdiction: jurisdictionSchema.exactOptional(),
  locationHint: locationHintSchema.exactOptional(),
};

const policySchema = z.strictObject({ ...locationFields, strict: z.boolean().exactOptional() });

/** Returns the policy of an application for a tenant. Throws `UNAVAILABLE` for an invalid policy. */
export function checkedPolicy(policy: LocationPolicy | undefined): LocationPolicy {
  const checked = policySchema.safeParse(policy ?? {});
  if (checked.success) return checked.data;
  const reason = checked.error.issues
    .map(({ path, message }) => `\`${path.join(".")}\`: ${message}`)
    .join("; ");
  throw unavailable(`\`location\` of the application returned an unusable policy: ${reason}.`);
}

/** Returns the id of a new agent. Without an id in the request, `random` creates it. Throws `INVALID_INPUT` (LOCATION-4). */
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

/** Throws `INVALID_INPUT` unless a new agent or conversation may live in the jurisdiction of its id (LOCATION-3). */
export function checkNew(id: string, { jurisdiction, strict }: LocationPolicy, path: string): void {
  if (strict !== true || jurisdiction === undefined || jurisdictionOf(id) === jurisdiction) return;
  throw invalidAt(
    path,
    `Must be in the jurisdiction "${jurisdiction}", because the location policy of this tenant is strict.`,
  );
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
