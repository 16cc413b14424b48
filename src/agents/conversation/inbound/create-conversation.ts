/** Checks the request that creates a conversation, and makes its record. */
import { checkPrices, checkRoom } from "../../../library/registry/prices.ts";
import type { Clock } from "../../../ports/clock.ts";
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import type { AgentApi } from "../../../protocol/agent-api.ts";
import { type CreateConversation, createConversation } from "../../../protocol/conversation-requests.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, invalid, tooLarge } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { validateRequest } from "../../../shared/validation.ts";
import type { ConversationIdentity } from "../core/state.ts";
import { checkHistory } from "./seed-history.ts";

/** Maximum length of a version chain as JSON. The chain is one value of the actor's storage, and a value has at most 2 MB. */
const MAX_CHAIN_LENGTH = 900_000;

type AgentPart = Awaited<ReturnType<AgentApi["persona"]>>;

/** Time limit of an agent's answer, in milliseconds. Its own reads of the registry have a shorter limit. */
export const AGENT_TIMEOUT_MS = 15_000;

/**
 * Returns the agent's part of a conversation that has one of the projects; without projects, the agent's own project. Throws `UNAVAILABLE` if the
 * agent does not answer in time.
 */
export function agentPart(
  clock: Pick<Clock, "timer">,
  agent: () => Promise<Pick<AgentApi, "persona">>,
  projects?: readonly string[],
): Promise<AgentPart> {
  const reason = unanswered("The agent", AGENT_TIMEOUT_MS);
  return withDeadline(clock, AGENT_TIMEOUT_MS, async () => (await agent()).persona(undefined, projects), {
    reason,
  });
}

/** Throws `INVALID_INPUT`, `INVALID_JSON` or `TOO_LARGE`. */
export function parseCreate(input: CreateConversation): CreateConversation {
  checkHistory(input.history);
  return validateRequest(createConversation, input);
}

/** Throws `INVALID_INPUT` unless the actor's name is the address of this conversation. */
export function checkActorName(actual: string, { tenant }: Principal, { id }: CreateConversation): void {
  const name = `${tenant}:${id}`;
  if (actual === name) return;
  throw invalid(
    `The actor of this conversation is "${name}", but the request reached "${actual}". Address it by \`<tenant>:<id>\`.`,
    { errors: [{ path: "/id", message: "Must be the id in the actor's name." }] },
  );
}

/** Throws `INVALID_INPUT` if the agent does not work in the project, `TOO_LARGE` if its persona and tools are too large. */
export function conversationRecord(
  principal: Principal,
  input: CreateConversation,
  { chain, projectIds, leased }: { chain: VersionChain; projectIds: string[]; leased?: true },
  now: number,
): ConversationIdentity {
  const projectId = input.projectId ?? projectIds[0] ?? "default";
  if (!projectIds.includes(projectId))
    throw invalid(`The agent "${input.agentId}" does not belong to this project.`, {
      errors: [{ path: "/projectId", message: `Must be one of: ${projectIds.join(", ")}.` }],
    });
  if (input.budget !== undefined) {
    checkPrices(chain, input.budget);
    checkRoom(chain, input.budget);
  }
  checkChainLength(input.agentId, chain);
  const users = [...new Set([principal.subject, ...(input.users ?? [])])];
  return {
    id: input.id,
    tenant: principal.tenant,
    title: input.title ?? null,
    projectId,
    participants: [
      ...users.map((id) => ({ type: "user" as const, id })),
      { type: "agent" as const, id: input.agentId },
    ],
    agents: [{ id: input.agentId, ...defined({ leased, projectIds: severalOf(projectIds) }), chain }],
    ...(input.listed === false ? { listed: false as const } : {}),
    ...defined({
      channel: input.channel,
      fingerprint: input.fingerprint,
      locationHint: input.locationHint,
    }),
    createdAt: now,
  };
}

/** Returns an agent's projects, if it has more than the conversation's project. */
export function severalOf(projectIds: readonly string[]): readonly string[] | undefined {
  return projectIds.length > 1 ? projectIds : undefined;
}

/** Throws `TOO_LARGE` if the agent's persona and tools are too large. */
export function checkChainLength(agentId: string, chain: VersionChain): void {
  if (JSON.stringify(chain).length <= MAX_CHAIN_LENGTH) return;
  throw tooLarge(`The persona of "${agentId}" and its tools are too large for a conversation. Shorten them.`);
}

/** Throws `IDEMPOTENCY_CONFLICT` unless this request created the conversation. */
export function checkSameRequest(record: ConversationIdentity, fingerprint: string): void {
  if (record.fingerprint === fingerprint) return;
  throw new DramatisError(
    "IDEMPOTENCY_CONFLICT",
    "This idempotency key was used with another body. Use a new key for a new request.",
  );
}
