/** Checks the identity that a caller gives an agent. */
import { parseReference } from "../../library/definitions/reference.ts";
import { checkPrices } from "../../library/registry/prices.ts";
import type { Registry } from "../../library/registry/registry.ts";
import { parsePersonaSource } from "../../library/registry/resolve.ts";
import type { Upkeep } from "../../library/registry/upkeep.ts";
import { type AgentIdentity, MAX_AGENT_BYTES } from "../../protocol/agent-api.ts";
import type { AgentBudget } from "../../protocol/budget.ts";
import type { Persona, VersionChain } from "../../protocol/definitions.ts";
import { forbidden, hasCode, tooLarge } from "../../shared/errors.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { mayAuthor, type Principal } from "../../shared/principal.ts";
import { toIso } from "../../shared/time.ts";
import { fitsUtf8 } from "../../shared/utf8.ts";
import { invalidAt } from "../../shared/validation.ts";

/** Throws `TOO_LARGE` for a new agent, or a change, that a row may not hold. */
export function checkAgentSize(given: object): void {
  if (fitsUtf8(JSON.stringify(given), MAX_AGENT_BYTES)) return;
  throw tooLarge(`An agent may have at most ${MAX_AGENT_BYTES} bytes of JSON.`);
}

export interface Personas {
  /** Resolves a persona of a tenant, for a conversation of a project. Throws `NOT_FOUND` or `INVALID_INPUT` if that fails. */
  resolve(tenant: string, persona: Persona | DefinitionReference, projectId?: string): Promise<VersionChain>;
  /** Returns the memory upkeep of a persona. Throws as `resolve` does. */
  upkeep(tenant: string, persona: Persona | DefinitionReference): Promise<Upkeep>;
  /** Returns a registry of a tenant, for a look-up of missing personas. */
  registry(tenant: string): Pick<Registry, "lacksPersona">;
}

/** Returns a persona as stored. Throws `INVALID_INPUT` if it does not parse or resolve, or lacks prices for its budget. */
export async function checkedPersona(
  personas: Personas,
  value: unknown,
  tenant: string,
  budget: AgentBudget = {},
): Promise<AgentIdentity["persona"]> {
  try {
    const source = parsePersonaSource(value, "/persona");
    const chain = await personas.resolve(tenant, source);
    checkPrices(chain, budget);
    if (chain.persona.definition.memory?.consolidation?.by !== undefined)
      await personas.upkeep(tenant, source);
    return typeof source === "string" ? parseReference(source) : source;
  } catch (error) {
    if (!hasCode(error, "NOT_FOUND")) throw error;
    const { message } = error;
    throw invalidAt("/persona", message);
  }
}

/** The directory keeps the newest update, so its time must ascend even if the clock does not. */
export function changed(
  now: number,
  current: AgentIdentity,
  change: Partial<Pick<AgentIdentity, "persona" | "projectIds" | "budget" | "metadata">>,
): AgentIdentity {
  const updatedAt = Math.max(now, Date.parse(current.updatedAt) + 1);
  return { ...current, ...change, updatedAt: toIso(updatedAt) };
}

export function checkAuthor(principal: Principal): void {
  if (!mayAuthor(principal)) throw forbidden("Only authors may create and change agents.");
}
