/** Conversations that clients of other protocols name, and the turns that they start in them. */
import { conversationOfKey } from "../compat/openai/ids.ts";
import { newConversationIdOf } from "../protocol/location-policy.ts";
import type { StartTurn } from "../protocol/requests.ts";
import type { StartedTurn } from "../protocol/signals.ts";
import { defined } from "../shared/defined.ts";
import { unwrap } from "../shared/errors.ts";
import { isAgentId, isConversationId } from "../shared/identifiers.ts";
import { invalidAt } from "../shared/validation.ts";
import type { HttpEnv } from "./base/context.ts";
import { nothingNamed } from "./base/respond.ts";
import { findConversation } from "./routes/conversations.ts";

type Ports = HttpEnv["Variables"];

export interface Thread {
  agentId: string;
  conversationId: string;
  /** The first turn creates the conversation. */
  isNamedByClient: boolean;
}

interface ThreadName {
  protocol: "agui" | "a2a";
  /** The id of a conversation, or a name of the client. */
  name: string;
  /** The JSON pointer of the name, for errors. */
  path: string;
}

/** Returns the conversation of a thread. The same name of the same user for the same agent has the same conversation. */
export async function threadOf(
  ports: Ports,
  agentId: string,
  { protocol, name, path }: ThreadName,
): Promise<Thread> {
  const { principal, location } = ports;
  const { tenant, subject } = principal;
  if (!isAgentId(agentId)) throw nothingNamed("agent", agentId);
  if (isConversationId(name)) {
    const conversation = await findConversation(ports, name);
    const view = unwrap(await conversation.view(principal));
    if (view.agentId !== agentId)
      throw invalidAt(path, `Belongs to the agent "${view.agentId}". Use the address of that agent.`);
    return { agentId, conversationId: name, isNamedByClient: false };
  }
  const key = JSON.stringify([agentId, name]);
  const plain = await conversationOfKey(protocol, tenant, subject, key);
  const conversationId = newConversationIdOf(plain, agentId, {}, location(tenant));
  return { agentId, conversationId, isNamedByClient: true };
}

/** Starts a turn, in a new conversation if the thread is new. The requests that create a thread have no other members. */
export async function startTurn(
  ports: Ports,
  { agentId, conversationId, isNamedByClient }: Thread,
  input: StartTurn,
): Promise<StartedTurn & { frames: ReadableStream<Uint8Array> }> {
  const { principal, actors, location } = ports;
  const foreground: StartTurn = { ...input, foreground: true };
  const conversation = await findConversation(ports, conversationId);
  const started = await conversation.streamTurn(principal, foreground, "ndjson");
  if (started.ok || !isNamedByClient || started.error.code !== "NOT_FOUND") return unwrap(started);
  const { locationHint } = location(principal.tenant);
  const created = await actors.conversation(principal.tenant, conversationId, locationHint);
  const request = { id: conversationId, agentId, fingerprint: "thread", ...defined({ locationHint }) };
  unwrap(await created.create(principal, request));
  return unwrap(await created.streamTurn(principal, foreground, "ndjson"));
}
