/** The tools `ask_AGENT`: each call is a turn of a conversation with the agent. */
import type { z } from "zod";
import { TurnProgress } from "../../compat/mcp/progress.ts";
import { approvalOf, questionsOfTurn } from "../../compat/mcp/questions.ts";
import { createdTask } from "../../compat/mcp/tasks.ts";
import { type askInput, structured, turnResult, waitingResult } from "../../compat/mcp/tools.ts";
import { startedAt } from "../../compat/openai/ids.ts";
import type { MessageInput } from "../../compat/openai/input.ts";
import { type DramatisError, notFound, unwrap } from "../../shared/errors.ts";
import { invalidAt } from "../../shared/validation.ts";
import { finishedAnswer } from "../openai/answers.ts";
import {
  type AnswerRequest,
  beginConversation,
  continueConversation,
  type PendingAnswer,
  pendingAnswer,
} from "../openai/turns.ts";
import { answered } from "../routes/chat.ts";
import { findConversation } from "../routes/conversations.ts";
import type { CallResult, ToolCall } from "./call.ts";

export async function askAgent(
  call: ToolCall,
  agentId: string,
  input: z.output<typeof askInput>,
): Promise<CallResult> {
  const retried = await resumed(call, agentId);
  const pending = retried ?? (await begin(call, agentId, input));
  const { address } = pending;
  call.onCancel(async (ports) => {
    const conversation = await findConversation(ports, address.conversationId);
    return conversation.cancelTurn(ports.principal, address.turnId);
  });
  if (call.takesTasks && retried === undefined) return createdTask(address, startOf(address.turnId));
  const progress = new TurnProgress();
  const asked = new Set<string>();
  let end = retried && (await askPerson(call, pending, asked));
  if (end !== undefined) return end;
  for await (const frame of pending.frames(call.signal)) {
    await call.progress(progress.push(frame));
    if (frame.type === "approval.requested") end = await askPerson(call, pending, asked);
    if (end !== undefined) return end;
  }
  return turnResult(address, await finishedAnswer(pending));
}

/** Asks the person at the client what the turn waits for. Returns the result that ends the call, if there is one. */
async function askPerson(
  call: ToolCall,
  { address, view }: PendingAnswer,
  asked: Set<string>,
): Promise<CallResult | undefined> {
  const waiting = questionsOfTurn(address, await view(), call.ports.principal);
  const questions = waiting.filter(({ place }) => !asked.has(place.operationId));
  if (questions.length === 0) return undefined;
  for (const { place } of questions) asked.add(place.operationId);
  const hasClosed = call.answers.some(({ action }) => action === "cancel");
  const end = hasClosed ? null : await call.ask(questions);
  return end === null ? waitingResult(structured(address, ""), questions) : end;
}

/** Gives the answers of a retried call. Returns its turn, which continues after them; `undefined` for the first call. */
async function resumed({ ports, answers }: ToolCall, agentId: string): Promise<PendingAnswer | undefined> {
  const given = answers.flatMap((answer) =>
    "turnId" in answer.place ? [{ ...answer, ...answer.place }] : [],
  );
  const [first] = given;
  if (first === undefined) return undefined;
  const { conversationId, turnId } = first;
  const resolved = given.flatMap(({ operationId, ...answer }) => {
    const approval = approvalOf(answer);
    return approval === undefined ? [] : [{ operationId, answer: approval }];
  });
  const conversation = await findConversation(ports, conversationId);
  const from = await answered(conversation, ports.principal, { turnId, answers: resolved });
  return pendingAnswer(ports, { conversationId, turnId, index: 0, finalOnly: false }, agentId, { from });
}

async function begin(
  { ports, headers, key }: ToolCall,
  agentId: string,
  { message, conversation }: z.output<typeof askInput>,
): Promise<PendingAnswer> {
  const { actors, location, principal } = ports;
  const request: AnswerRequest = {
    ...{ protocol: "mcp", noAgent, actors, location, principal, key },
    ...{ pointers: { input: "/message", format: "/message" }, finalOnly: false },
    traceparent: headers.get("traceparent") ?? undefined,
  };
  const content: MessageInput = { type: "message", history: [], content: message };
  if (conversation === undefined)
    return beginConversation(request, agentId, content, { listed: true, question: { agentId, message } });
  const actor = await findConversation(ports, conversation);
  const { agentId: model } = unwrap(await actor.view(principal));
  if (model !== agentId)
    throw invalidAt(
      "/conversation",
      `\`conversation\` belongs to the agent "${model}". Call the tool of that agent, or omit the field.`,
    );
  return continueConversation(request, { id: conversation, model }, content, {});
}

/** The id of a turn contains the time of its start. */
function startOf(turnId: string): string {
  return new Date(startedAt(turnId) * 1_000).toISOString();
}

function noAgent(id: string): DramatisError {
  return notFound(`There is no agent "${id}". \`tools/list\` has the agents.`);
}
