/** The interface of an `Agent` actor: its RPC, and the envelopes it takes. */

import type { Result } from "../shared/errors.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import type { Persona, PersonaSource, VersionChain } from "./definitions.ts";

/** The type of the envelope by which a new conversation joins the index of its agent. */
export const CONVERSATION_OPENED = "conversation.opened";

export interface CreateAgent {
  id: string;
  persona: PersonaSource;
  /** `["default"]` when absent. */
  projectIds?: string[];
}

/** An agent's identity, as stored and shown. */
export interface AgentIdentity {
  id: string;
  tenant: string;
  persona: Persona | { library: string; id: string; version?: number };
  projectIds: string[];
  /** ISO 8601 UTC. */
  createdAt: string;
  updatedAt: string;
}

/** An agent's identity with what its persona offers to people. */
export interface AgentView extends AgentIdentity {
  /** The example messages of the persona; absent where it has none, or does not resolve any more. */
  examples?: string[];
}

export interface AgentApi {
  /**
   * `CONFLICT` if the agent exists; `INVALID_INPUT` if the persona does not resolve. With `isDeclaration` an agent that
   * exists becomes what `input` says if this declaration differs from the one before.
   */
  create(
    principal: Principal,
    input: CreateAgent,
    options?: { isDeclaration?: boolean },
  ): Promise<Result<AgentIdentity>>;
  /** `NOT_FOUND` if the agent was never created. */
  identity(): Promise<Result<AgentIdentity>>;
  /** Changes persona or projects. Existing conversations keep what they pinned. */
  update(
    principal: Principal,
    change: { persona?: PersonaSource; projectIds?: string[] },
  ): Promise<Result<AgentIdentity>>;
  /** Returns the resolved chain that a new conversation pins, of the given version of the persona or of its own. */
  persona(version?: number): Promise<Result<{ chain: VersionChain; projectIds: string[] }>>;
  /** Returns the ids of the agent's conversations, ascending by creation. */
  conversations(options?: PageOptions): Promise<Result<Page<{ id: string; addedAt: string }>>>;
}
