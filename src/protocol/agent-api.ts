/** The interface of an `Agent` actor: its RPC, and the envelopes it takes. */

import type { Result } from "../shared/errors.ts";
import type { Facts } from "../shared/json.ts";
import type { Jurisdiction, LocationHint } from "../shared/location.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import type { AgentBudget } from "./budget.ts";
import type { Persona, PersonaSource, VersionChain } from "./definitions.ts";
import type { AgentKeepingApi } from "./keeping-api.ts";
import type { MemoryApi } from "./memory.ts";

export const CONVERSATION_OPENED = "conversation.opened";

export interface CreateAgent {
  id: string;
  persona: PersonaSource;
  /** `["default"]` when absent. */
  projectIds?: string[];
  /** Limits for the sum of all its conversations. Absent: no limits. */
  budget?: AgentBudget;
  /** Free facts about the agent, at most 16 KiB of JSON. */
  metadata?: Facts;
  /** The region that the agent was asked to begin in, to be shown. The look-up of its actor has the same. */
  locationHint?: LocationHint;
}

/** An agent's identity, as stored and shown. */
export interface AgentIdentity {
  id: string;
  tenant: string;
  persona: Persona | { library: string; id: string; version?: number };
  projectIds: string[];
  budget?: AgentBudget;
  /** Free facts about the agent. */
  metadata?: Facts;
  /** The jurisdiction that the agent's id names. */
  jurisdiction?: Jurisdiction;
  /** The region that it was asked to begin in. Lists leave it out. */
  locationHint?: LocationHint;
  /** ISO 8601 UTC. */
  createdAt: string;
  updatedAt: string;
}

/** An agent with its persona's public description. The budget's state is present after a conversation's first lease. */
export interface AgentView extends AgentIdentity {
  /** The description of a library persona. Absent if it has no description or no longer resolves. */
  description?: string;
  /** The example messages of the persona. Absent if it has no examples or no longer resolves. */
  examples?: string[];
  /** Used up by its conversations, as they last reported. */
  spent?: Required<AgentBudget>;
  /** Leased to conversations, and not used up. */
  leased?: Required<AgentBudget>;
}

/** A change of an agent. Absent members stay; `null` removes. */
export interface AgentChange {
  persona?: PersonaSource;
  projectIds?: string[];
  budget?: AgentBudget | null;
  metadata?: Facts | null;
}

export interface AgentApi extends AgentKeepingApi, MemoryApi {
  /**
   * Creates the agent. Fails with `CONFLICT` if it exists, and with `INVALID_INPUT` if the persona does not resolve.
   * With `isDeclaration`, an existing agent is updated to `input` if this declaration differs from the previous
   * declaration.
   */
  create(
    principal: Principal,
    input: CreateAgent,
    options?: { isDeclaration?: boolean },
  ): Promise<Result<AgentIdentity>>;
  /** `NOT_FOUND` if the agent was never created. */
  identity(): Promise<Result<AgentView>>;
  /**
   * Changes persona, projects, budget or metadata. `null` removes the budget or the metadata. Existing conversations
   * keep their pinned versions.
   */
  update(principal: Principal, change: AgentChange): Promise<Result<AgentView>>;
  /**
   * Returns the resolved chain that a new conversation pins, of the given version of the persona or of its own. `leased`: the
   * agent has a budget, so the conversation's calls need a lease.
   */
  persona(version?: number): Promise<Result<{ chain: VersionChain; projectIds: string[]; leased?: true }>>;
  /** Returns the ids of the agent's conversations, ascending by creation. */
  conversations(options?: PageOptions): Promise<Result<Page<{ id: string; addedAt: string }>>>;
}
