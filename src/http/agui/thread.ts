/** The answers to the turns of a thread, and reading it. */
import type { AgUiMessage } from "../../compat/agui/events.ts";
import type { RunRequest } from "../../compat/agui/request.ts";
import type { MessageView } from "../../protocol/conversation-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { MAX_PAGE_SIZE } from "../../shared/page.ts";
import { invalidAt } from "../../shared/validation.ts";
import type { HttpEnv } from "../base/context.ts";
import { turnOf } from "../openai/turns.ts";
import { activeTurn } from "../routes/chat.ts";
import { findConversation } from "../routes/conversations.ts";
import { checkFirst, type Thread } from "../threads.ts";

type Ports = HttpEnv["Variables"];

/** Gives the results and the answers of a run to the turn that waits for them. Returns the turn, its calls that are answered, and those that changed. */
export async function answerTurn(
  ports: Ports,
  { conversationId }: Thread,
  { results, answers }: Extract<RunRequest, { type: "answers" }>,
): Promise<{ turnId: string; answered: string[]; changed: string[] }> {
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
  const approvals = answers.map(({ operationId, approved, reason, isCancelled }) => ({
    ...{ operationId, approved },
    ...defined({ reason, mayBeOver: isCancelled || undefined }),
  }));
  const changed = unwrap(
    await conversation.answerCalls(principal, { approvals, ...(own.length > 0 && { results: own }) }),
  );
  return { turnId, answered: [...answers, ...own].map(({ operationId }) => operationId), changed };
}

/** Returns the newest messages of a thread, and its active turn. A thread that has not begun has no messages. */
export async function readThread(
  ports: Ports,
  thread: Thread,
  toMessage: (message: MessageView) => AgUiMessage,
): Promise<{ turnId?: string | undefined; messages: AgUiMessage[] }> {
  const { principal } = ports;
  const { agentId, conversationId, namedBy } = thread;
  const conversation = await findConversation(ports, conversationId);
  const page = await conversation.messages(principal, { limit: MAX_PAGE_SIZE, order: "desc" });
  if (!page.ok && namedBy !== undefined && page.error.code === "NOT_FOUND") {
    // Clients read a thread before its first run: the error for a missing agent tells them early.
    unwrap(await (await ports.actors.agent(principal.tenant, agentId)).identity());
    await checkFirst(ports, conversation, thread);
    return { messages: [] };
  }
  const { items } = unwrap(page);
  const turnId = (await activeTurn(conversation, principal))?.id;
  // The stream of the active turn has its own messages.
  const earlier = items.filter((message) => message.role === "user" || message.turnId !== turnId);
  return { turnId, messages: earlier.reverse().map(toMessage) };
}
