/** The answers to the turns of a thread, and reading it. */
import type { HeldRun } from "../../compat/agui/encoder.ts";
import type { AgUiMessage } from "../../compat/agui/events.ts";
import type { InterruptAnswer, RunRequest } from "../../compat/agui/request.ts";
import type { MessageView } from "../../protocol/conversation-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { MAX_PAGE_SIZE } from "../../shared/page.ts";
import { invalidAt } from "../../shared/validation.ts";
import type { RequestVariables } from "../base/context.ts";
import { turnOf } from "../openai/turns.ts";
import { activeTurn } from "../routes/chat.ts";
import { findConversation } from "../routes/conversations.ts";
import { checkFirst, type Thread } from "../threads.ts";

type Gate = NonNullable<InterruptAnswer["gate"]>;

/**
 * Gives the results and the answers of a run to the turn that waits for them. Returns the turn, its answered calls, and its changed calls.
 * `held` has the calls with workflows that ask further questions, if no other call is answered.
 */
export async function answerTurn(
  ports: RequestVariables,
  { conversationId }: Thread,
  { results, answers }: Extract<RunRequest, { type: "answers" }>,
): Promise<{ turnId: string; answered: string[]; changed: string[]; held?: HeldRun[] }> {
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
  const runs = new Map(
    moves.flatMap(({ toolCall }) => (toolCall ? [[toolCall.operationId, toolCall.runId]] : [])),
  );
  const changed: string[] = [];
  const held = new Map<string, string>();
  if (answers.some(({ operationId, gate }) => gate !== undefined && gate.runId !== runs.get(operationId)))
    throw invalidAt("/resume", "The interrupts must belong to this thread.");
  // If an answer is wrong, no answer of the run has an effect (AGUI-5).
  await checkGates(ports, answers);
  const approvals = answers
    .filter(({ gate }) => gate === undefined)
    .map(({ operationId, approved, reason, values, round, isCancelled }) => ({
      ...{ operationId, approved },
      ...defined({ reason, values, round, mayBeOver: isCancelled || undefined }),
    }));
  if (approvals.length > 0 || own.length > 0) {
    const calls = { approvals, ...(own.length > 0 && { results: own }) };
    changed.push(...unwrap(await conversation.answerCalls(principal, calls)));
  }
  for (const { operationId, gate, isCancelled } of answers) {
    if (gate === undefined) continue;
    const { waited, asksMore } = await answerGate(ports, gate, isCancelled);
    if (waited) changed.push(operationId);
    // The last answer of a run decides.
    if (asksMore) held.set(operationId, gate.runId);
    else held.delete(operationId);
  }
  const all = [...answers, ...own].map(({ operationId }) => operationId);
  const answered = [...new Set(all)].filter((operationId) => !held.has(operationId));
  const waiting = [...held].map(([operationId, runId]) => ({ turnId, operationId, runId }));
  return { turnId, answered, changed, ...(answered.length === 0 && held.size > 0 && { held: waiting }) };
}

/**
 * Throws if an answer to a question cannot count. The reasons are a person who may not answer, a wrong form, a cancellation of the same workflow,
 * and an earlier, different answer.
 */
async function checkGates(
  { actors, principal }: RequestVariables,
  answers: readonly InterruptAnswer[],
): Promise<void> {
  const readable = new Set<string>();
  for (const [index, { gate, isCancelled }] of answers.entries()) {
    if (gate === undefined) continue;
    const { runId, operationId, answer } = gate;
    const path = `/resume/${index}`;
    if (answers.some((other) => other.gate?.runId === runId && other.isCancelled !== isCancelled))
      throw invalidAt(path, "Answer the questions of a workflow together, or cancel all of them.");
    const run = await actors.coordinator(principal.tenant, runId);
    if (!readable.has(runId)) unwrap(await run.status(principal));
    readable.add(runId);
    if (isCancelled) continue;
    const had = await run.hasHumanInput(principal, operationId, answer);
    if (had.ok) continue;
    const errors = had.error.errors?.map(({ path: at, message }) => ({
      path: at.replace(/^\/answer/, `${path}/payload`),
      message,
    }));
    unwrap({ ok: false, error: { ...had.error, ...defined({ errors }) } });
  }
}

/** Answers a question of a workflow, or cancels the workflow. Reports whether the question waited, and whether others wait now. */
async function answerGate(
  { actors, principal }: RequestVariables,
  { runId, operationId, answer }: Gate,
  isCancelled: boolean,
): Promise<{ waited: boolean; asksMore: boolean }> {
  const run = await actors.coordinator(principal.tenant, runId);
  const { gates } = unwrap(await run.status(principal));
  const waited = gates.some((gate) => gate.operationId === operationId);
  if (isCancelled) {
    if (waited) unwrap(await run.cancel(principal));
    return { waited, asksMore: !waited && gates.length > 0 };
  }
  const after = unwrap(await run.submitHumanInput(principal, operationId, answer));
  return { waited, asksMore: after.gates.length > 0 };
}

/** Returns the newest messages of a thread, and its active turn. A thread that has not begun has no messages. */
export async function readThread(
  ports: RequestVariables,
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
