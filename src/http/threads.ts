/** Conversations that clients of other protocols name, and the turns that they start in them. */
import { conversationOfKey } from "../compat/openai/ids.ts";
import type { ConversationActor } from "../protocol/actor-lookup.ts";
import { newConversationIdOf } from "../protocol/location-policy.ts";
import type { StartTurn } from "../protocol/requests.ts";
import type { StartedTurn } from "../protocol/signals.ts";
import { defined } from "../shared/defined.ts";
import { conflict, unwrap } from "../shared/errors.ts";
import { isAgentId, isConversationId } from "../shared/identifiers.ts";
import { invalidAt } from "../shared/validation.ts";
import type { RequestVariables } from "./base/context.ts";
import { nothingNamed } from "./base/respond.ts";
import { findConversation } from "./routes/conversations.ts";

export interface Thread {
  agentId: string;
  conversationId: string;
  /** The client's member with the name. Then the first turn creates the conversation. Absent for the id of a conversation. */
  namedBy?: "threadId" | "messageId";
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
  ports: RequestVariables,
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
    return { agentId, conversationId: name };
  }
  const key = JSON.stringify([agentId, name]);
  const plain = await conversationOfKey(protocol, tenant, subject, key);
  const conversationId = newConversationIdOf(plain, agentId, {}, location(tenant));
  return { agentId, conversationId, namedBy: protocol === "agui" ? "threadId" : "messageId" };
}

/** Checks that a thread may begin, with its first message. Throws `CONFLICT` if its conversation was deleted. */
export async function checkFirst(
  { principal }: RequestVariables,
  conversation: ConversationActor,
  { namedBy }: Thread,
  input?: StartTurn,
): Promise<void> {
  const checked = await conversation.checkFirst(principal, input);
  if (checked.ok || checked.error.code !== "CONFLICT") return void unwrap(checked);
  throw conflict(`The conversation of this ${namedBy} was deleted. Use a new ${namedBy}.`);
}

/** Starts a turn, in a new conversation if the thread is new. The requests that create a thread have no other members. */
export async function startTurn(
  ports: RequestVariables,
  thread: Thread,
  input: StartTurn,
): Promise<StartedTurn & { frames: ReadableStream<Uint8Array> }> {
  const { principal, actors, location } = ports;
  const { agentId, conversationId, namedBy } = thread;
  const foreground: StartTurn = { ...input, foreground: true };
  const conversation = await findConversation(ports, conversationId);
  const started = await conversation.streamTurn(principal, foreground, "ndjson");
  if (started.ok || namedBy === undefined || started.error.code !== "NOT_FOUND") return unwrap(started);
  const { locationHint } = location(principal.tenant);
  await checkFirst(ports, conversation, thread, foreground);
  const created = await actors.conversation(principal.tenant, conversationId, locationHint);
  const request = { id: conversationId, agentId, fingerprint: "thread", ...defined({ locationHint }) };
  unwrap(await created.create(principal, request));
  return unwrap(await created.streamTurn(principal, foreground, "ndjson"));
}
