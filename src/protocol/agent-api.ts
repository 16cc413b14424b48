/** The interface of an `Agent` actor: its RPC, and the envelopes it takes. */
import { z } from "zod";
import type { Result } from "../shared/errors.ts";
import { agentIdSchema, agentMetadataSchema, definitionIdSchema } from "../shared/id-schemas.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import { agentBudgetSchema } from "./budget.ts";
import type { AgentDataApi } from "./data-api.ts";
import type { Persona, PersonaSource, VersionChain } from "./definitions.ts";
import { locationFields } from "./location-policy.ts";
import type { MemoryApi } from "./memory.ts";
import { ids, time } from "./scalars.ts";

export const CONVERSATION_OPENED = "conversation.opened";

/** Maximum size of a new agent, and of a change. An agent is one row of its actor and one row of the directory; a row holds less than 2 MB. */
export const MAX_AGENT_BYTES = 512 * 1024;

const projectIds = z
  .array(definitionIdSchema)
  .min(1, "Name at least one project, or omit the field.")
  .max(100)
  .exactOptional();
const budget = agentBudgetSchema.describe("Limits of all of its conversations together.");
const metadata = agentMetadataSchema.describe("Free facts about the agent: at most 16 KiB of JSON.");
/** `parsePersonaSource` checks it. */
// SAFETY: the type is that of its input.
const persona = z.unknown() as z.ZodType<PersonaSource>;

/** A request for a new agent by RPC. */
export const createAgent = z.strictObject({
  id: agentIdSchema,
  persona,
  /** `["default"]` when absent. */
  projectIds,
  budget: budget.exactOptional(),
  metadata: metadata.exactOptional(),
  locationHint: locationFields.locationHint,
});

export type CreateAgent = z.infer<typeof createAgent>;

/** The body of `createAgent`. */
export const newAgent = createAgent.extend({
  id: agentIdSchema.exactOptional(),
  jurisdiction: locationFields.jurisdiction,
});

/** A change of an agent. Absent members stay; `null` removes. */
export const agentChange = z
  .strictObject({
    persona: persona.exactOptional(),
    projectIds,
    budget: budget
      .nullable()
      .exactOptional()
      .describe("Limits of all of its conversations together; null removes them."),
    metadata: metadata.nullable().exactOptional().describe("Replaces the free facts. `null` removes them."),
  })
  .refine(
    (change) => Object.keys(change).length > 0,
    "Give `persona`, `projectIds`, `budget` or `metadata`.",
  );

export type AgentChange = z.infer<typeof agentChange>;

/** An agent's identity, as stored and shown. The description of the API adds the schema of the persona. */
export const agentIdentity = z.strictObject({
  id: ids.agent,
  tenant: z.string(),
  // SAFETY: a persona is checked when it is set.
  persona: z.unknown() as z.ZodType<Persona | { library: string; id: string; version?: number }>,
  projectIds: z.array(definitionIdSchema),
  budget: agentBudgetSchema
    .exactOptional()
    .describe("Limits of all of its conversations together. Lists leave it out."),
  metadata: metadata.exactOptional().describe("Free facts about the agent."),
  /** The jurisdiction that the agent's id names. Lists leave out `locationHint`. */
  ...locationFields,
  createdAt: time,
  updatedAt: time,
});

export type AgentIdentity = z.infer<typeof agentIdentity>;

const amounts = z.strictObject({ tokens: z.int(), usd: z.number(), modelCalls: z.int() });

/** An agent in a list, with the offer of its persona: its name, its description and its examples. */
export const agentSummary = agentIdentity.extend({
  name: z.string().describe("The name of its persona.").exactOptional(),
  description: z.string().describe("The description of its persona.").exactOptional(),
  examples: z.array(z.string()).describe("Example messages of the agent's persona.").exactOptional(),
  codePosition: z
    .int()
    .describe(
      "The place of the agent in `agents` of the code, from 0. Absent if the code does not declare the agent.",
    )
    .exactOptional(),
  personaMissing: z
    .literal(true)
    .describe(
      "No library has its persona any more, so the agent takes no new conversations. Delete the agent, or give it another persona.",
    )
    .exactOptional(),
});

export type AgentSummary = z.infer<typeof agentSummary>;

/** An agent with the state of its budget, which is present after a conversation's first lease. */
export const agentView = agentSummary.extend({
  spent: amounts
    .exactOptional()
    .describe(
      "Used up by its conversations with a lease of its budget, as they last reported. For authors, operators and administrators.",
    ),
  leased: amounts
    .exactOptional()
    .describe("Leased to its conversations, and not used up. For authors, operators and administrators."),
});

export type AgentView = z.infer<typeof agentView>;

export interface AgentApi extends AgentDataApi, MemoryApi {
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
   * agent has a budget, so the conversation's calls need a lease. `projects` are the projects that the conversation may have: the first of
   * them that the agent works in sets the default model. Without them, it is the agent's first project.
   */
  persona(
    version?: number,
    projects?: readonly string[],
  ): Promise<Result<{ chain: VersionChain; projectIds: string[]; leased?: true }>>;
  /** Returns the ids of the agent's conversations, ascending by creation. */
  conversations(options?: PageOptions): Promise<Result<Page<{ id: string; addedAt: string }>>>;
}
