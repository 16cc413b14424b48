/** What an `Agent` actor offers to the others: its RPC surface as a type. */

import type { DefinitionReference } from "../shared/definition-reference.ts";
import type { Result } from "../shared/errors.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import type { Persona, VersionChain } from "./definitions.ts";

export interface CreateAgent {
  id: string;
  persona: Persona | DefinitionReference;
  /** Absent = `["default"]`. */
  projectIds?: string[];
}

/** An agent's identity as it is stored and shown. */
export interface AgentIdentity {
  id: string;
  tenant: string;
  persona: Persona | { library: string; id: string; version?: number };
  projectIds: string[];
  /** ISO 8601 UTC. */
  createdAt: string;
  updatedAt: string;
}

export interface AgentApi {
  /** `CONFLICT` if the agent exists; `INVALID_INPUT` if the persona does not resolve. */
  create(principal: Principal, input: CreateAgent): Promise<Result<AgentIdentity>>;
  /** `NOT_FOUND` if it was never created. */
  identity(): Promise<Result<AgentIdentity>>;
  /** Changes persona or projects; conversations that exist keep what they pinned. */
  update(
    principal: Principal,
    change: { persona?: Persona | DefinitionReference; projectIds?: string[] },
  ): Promise<Result<AgentIdentity>>;
  /** The resolved chain a new conversation pins. `version` asks for another version of the persona. */
  persona(version?: number): Promise<Result<{ chain: VersionChain; projectIds: string[] }>>;
  /** Ids of the agent's conversations, ascending by creation. */
  conversations(options?: PageOptions): Promise<Result<Page<{ id: string; addedAt: string }>>>;
}
