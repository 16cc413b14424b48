/** The conversation of a thread, and the turns of its runs. */
import type { AgUiMessage } from "../../compat/agui/events.ts";
import { type InterruptAnswer, otherAgent, type RunRequest } from "../../compat/agui/request.ts";
import { conversationOfKey } from "../../compat/openai/ids.ts";
import type { ConversationActor } from "../../protocol/actor-lookup.ts";
import type { MessageView } from "../../protocol/conversation-schemas.ts";
import { newConversationIdOf } from "../../protocol/location-policy.ts";
import type { StartTurn } from "../../protocol/requests.ts";
import type { StartedTurn } from "../../protocol/signals.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { isAgentId, isConversationId } from "../../shared/identifiers.ts";
import { MAX_PAGE_SIZE } from "../../shared/page.ts";
import { invalidAt } from "../../shared/validation.ts";
import type { HttpEnv } from "../base/context.ts";
import { nothingNamed } from "../base/respond.ts";
import { turnOf } from "../openai/turns.ts";
import { activeTurn } from "../routes/chat.ts";
import { findConversation } from "../routes/conversations.ts";

type Ports = HttpEnv["Variables"];

/** The request that begins a thread has no other members. */
const FINGERPRINT = "agui";

interface Thread {
  agentId: string;
  conversationId: string;
  /** The first run of the thread creates the conversation. */
  isNamedByClient: boolean;
}

/** Returns the conversation of a thread (AGUI-7). */
export async function threadOf(ports: Ports, agentId: string, threadId: string): Promise<Thread> {
  const { principal, location } = ports;
  const { tenant, subject } = principal;
  if (!isAgentId(agentId)) throw nothingNamed("agent", agentId);
  if (isConversationId(threadId)) {
    const conversation = await findConversation(ports, threadId);
    const view = unwrap(await conversation.view(principal));
    if (view.agentId !== agentId) throw otherAgent(view.agentId);
    return { agentId, conversationId: threadId, isNamedByClient: false };
  }
  const key = JSON.stringify([agentId, threadId]);
  const plain = await conversationOfKey("agui", tenant, subject, key);
  const conversationId = newConversationIdOf(plain, agentId, {}, location(tenant));
  return { agentId, conversationId, isNamedByClient: true };
}

/** Starts a turn, in a new conversation if the thread is new. */
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
  const request = { id: conversationId, agentId, fingerprint: FINGERPRINT, ...defined({ locationHint }) };
  unwrap(await created.create(principal, request));
  return unwrap(await created.streamTurn(principal, foreground, "ndjson"));
}

/** Gives the results and the answers of a run to the turn that waits for them. Returns the turn, and its calls that are answered. */
export async function answerTurn(
  ports: Ports,
  { conversationId }: Thread,
  { results, answers }: Extract<RunRequest, { type: "answers" }>,
): Promise<{ turnId: string; answered: string[] }> {
  const { principal } = ports;
  const [turnId = "", ...others] = new Set([
    ...answers.map((answer) => answer.turnId),
    ...results.map(({ operationId }) => turnOf(operationId)),
  ]);
  if (others.length > 0) throw invalidAt("/messages", "The answers must belong to calls of one turn.");
  if (answers.some((answer) => answer.conversationId !== conversationId))
    throw invalidAt("/resume", "The interrupts must belong to this thread.");
  const conversation = await findConversation(ports, conversationId);
  const { moves } = unwrap(await conversation.turn(principal, turnId));
  const clients = new Set(
    moves.flatMap(({ toolCall }) => (toolCall?.client === true ? [toolCall.operationId] : [])),
  );
  const own = results.filter(({ operationId }) => clients.has(operationId));
  for (const answer of answers) await resolve(conversation, ports, answer);
  if (own.length > 0) unwrap(await conversation.submitToolResults(principal, own));
  return { turnId, answered: [...answers, ...own].map(({ operationId }) => operationId) };
}

/** Answers a request for approval. A request without an answer may be over. */
async function resolve(
  conversation: ConversationActor,
  { principal }: Ports,
  { operationId, approved, reason, isCancelled }: InterruptAnswer,
): Promise<void> {
  const resolved = await conversation.resolveApproval(principal, operationId, {
    approved,
    ...defined({ reason }),
  });
  if (!resolved.ok && isCancelled && resolved.error.code === "CONFLICT") return;
  unwrap(resolved);
}

/** Returns the newest messages of a thread, and its active turn. A thread that has not begun has no messages. */
export async function readThread(
  ports: Ports,
  { agentId, conversationId, isNamedByClient }: Thread,
  toMessage: (message: MessageView) => AgUiMessage,
): Promise<{ turnId?: string | undefined; messages: AgUiMessage[] }> {
  const { principal } = ports;
  const conversation = await findConversation(ports, conversationId);
  const page = await conversation.messages(principal, { limit: MAX_PAGE_SIZE, order: "desc" });
  if (!page.ok && isNamedByClient && page.error.code === "NOT_FOUND") {
    // Clients read a thread before its first run: the error for a missing agent tells them early.
    unwrap(await (await ports.actors.agent(principal.tenant, agentId)).identity());
    return { messages: [] };
  }
  const { items } = unwrap(page);
  const turnId = (await activeTurn(conversation, principal))?.id;
  // The stream of the active turn has its own messages.
  const earlier = items.filter((message) => message.role === "user" || message.turnId !== turnId);
  return { turnId, messages: earlier.reverse().map(toMessage) };
}
