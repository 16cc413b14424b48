/**
 * Turns as tasks of A2A. Pure.
 *
 * A2A-1  The id of a task names its conversation and its turn, so any isolate finds the task. The context of a task is its conversation.
 * A2A-2  A task needs input if its turn has requests for approval that its reader may answer. Its status has the requests.
 * A2A-10  The time of a status is the time of its last change: the end of the turn, the newest reply, or the newest answer to a request.
 * A2A-3  Each reply with text is an artifact. The artifacts of a stream are the artifacts of the finished task.
 */
import type { TurnView } from "../../protocol/conversation-schemas.ts";
import type { WireError } from "../../protocol/move-schemas.ts";
import type { ListedTask } from "../../protocol/turn-records.ts";
import type { Content } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import type { JsonObject } from "../../shared/json.ts";
import { answerCount, answerOf } from "../answer.ts";
import { answerForm, type Question, type QuestionPlace, questionKey } from "../mcp/questions.ts";
import { taskId } from "../mcp/tasks.ts";
import type { A2aArtifact, A2aMessage, A2aPart, A2aTask, StreamEvent, TaskStatus } from "./wire.ts";

export interface TurnPlace {
  conversationId: string;
  turnId: string;
}

/** Returns the members of events that name their task. */
export function taskIds(place: TurnPlace): { taskId: string; contextId: string } {
  return { taskId: taskId(place), contextId: place.conversationId };
}

/** Returns the task of a turn. `questions` are the requests that the reader may answer. */
export function taskOf(place: TurnPlace, turn: TurnView, questions: readonly Question[]): A2aTask {
  const { taskId: id, contextId } = taskIds(place);
  const history = [
    {
      messageId: turn.userMessageId,
      contextId,
      taskId: id,
      role: "ROLE_USER" as const,
      parts: partsOf(turn.input),
    },
  ];
  return {
    id,
    contextId,
    status: statusOf(place, turn, questions),
    artifacts: artifactsOf(turn),
    history,
  };
}

/** Returns a task as its stream begins: the events of the stream have its artifacts. */
export function taskAtStart(task: A2aTask, time: string): A2aTask {
  return { ...task, status: { state: "TASK_STATE_WORKING", timestamp: time }, artifacts: [] };
}

/** Returns a task with the newest messages of its history, and with its artifacts if they are wanted. */
export function shownTask(
  { artifacts = [], history = [], ...task }: A2aTask,
  {
    historyLength,
    includeArtifacts = true,
  }: { historyLength?: number | undefined; includeArtifacts?: boolean },
): A2aTask {
  const shown =
    historyLength === undefined ? history : history.slice(Math.max(0, history.length - historyLength));
  return {
    ...task,
    ...(includeArtifacts && { artifacts }),
    ...(historyLength !== 0 && { history: shown }),
  };
}

export function statusNotice(place: TurnPlace, turn: TurnView, questions: readonly Question[]): StreamEvent {
  return { statusUpdate: { ...taskIds(place), status: statusOf(place, turn, questions) } };
}

/** Returns the task of a turn that is over, as a list has it. The message of a failed task is the code of its error. */
export function listedTask({
  id: turnId,
  conversationId,
  status,
  errorCode = "INTERNAL_ERROR",
  at,
}: ListedTask): A2aTask {
  const place = { conversationId, turnId };
  const { taskId: id, contextId } = taskIds(place);
  const done = { state: "TASK_STATE_COMPLETED", timestamp: at } as const;
  return {
    id,
    contextId,
    status: status === "completed" ? done : endedStatus(place, errorCode, errorCode, at),
  };
}

function statusOf(place: TurnPlace, turn: TurnView, questions: readonly Question[]): TaskStatus {
  const { status, error, completedAt } = turn;
  const timestamp = completedAt ?? updateOf(turn);
  if (status === "completed") return { state: "TASK_STATE_COMPLETED", timestamp };
  if (status === "failed") return failedStatus(place, error, timestamp);
  if (questions.length === 0) return { state: "TASK_STATE_WORKING", timestamp };
  return askingStatus(place, questions, timestamp);
}

/** Returns the time of the last change of an active turn (A2A-10). */
function updateOf({ createdAt, moves }: Pick<TurnView, "createdAt" | "moves">): string {
  const times = moves.flatMap((move) => [move.createdAt, move.toolCall?.approval?.at ?? createdAt]);
  return [createdAt, ...times].toSorted().at(-1) ?? createdAt;
}

export function failedStatus(
  place: TurnPlace,
  error: Pick<WireError, "code" | "message"> | undefined,
  timestamp: string,
): TaskStatus {
  const { code, message } = error ?? { code: "INTERNAL_ERROR", message: "The turn failed." };
  return endedStatus(place, code, `${code}: ${message}`, timestamp);
}

function endedStatus(place: TurnPlace, code: string, text: string, timestamp: string): TaskStatus {
  const state = code === "CANCELLED" ? "TASK_STATE_CANCELED" : "TASK_STATE_FAILED";
  return { state, message: agentMessage(place, "end", [{ text }]), timestamp };
}

/** Returns the status of a task that needs answers (A2A-2). */
export function askingStatus(
  place: TurnPlace,
  questions: readonly Question[],
  timestamp: string,
): TaskStatus {
  const parts = questions.flatMap(({ place: asked, message, elicitation }) => [
    { text: message },
    // SAFETY: a JSON Schema is JSON.
    { data: { id: requestId(asked, elicitation?.round), answer: answerForm(elicitation) as JsonObject } },
  ]);
  const name = questions
    .map(({ place: { operationId }, elicitation }) => `${operationId}${elicitation?.round ?? ""}`)
    .join("_");
  return { state: "TASK_STATE_INPUT_REQUIRED", message: agentMessage(place, name, parts), timestamp };
}

/** Returns the id of a request. The id of a question of an MCP server has its round, so that an answer counts for this question only. */
function requestId(place: QuestionPlace, round?: number): string {
  return round === undefined ? questionKey(place) : `${questionKey(place)}:${round}`;
}

export function replyArtifact(number: number, text: string): A2aArtifact {
  return { artifactId: `reply-${number}`, name: "Reply", parts: [{ text }] };
}

function agentMessage(place: TurnPlace, name: string, parts: A2aPart[]): A2aMessage {
  return { messageId: `${place.turnId}-${name}`, ...taskIds(place), role: "ROLE_AGENT", parts };
}

function artifactsOf(turn: TurnView): A2aArtifact[] {
  const answers = Array.from({ length: answerCount(turn) }, (_, index) =>
    answerOf(turn, { index, finalOnly: false }),
  );
  const texts = answers.flatMap((answer) => answer?.messages ?? []).map(({ content }) => content);
  return texts.filter((text) => text.trim() !== "").map((text, index) => replyArtifact(index + 1, text));
}

function partsOf(content: Content): A2aPart[] {
  if (typeof content === "string") return [{ text: content }];
  return content.map((part) => {
    if (part.type === "text") return { text: part.text };
    const { url, mediaType, name: filename } = part;
    const [, type, raw] = /^data:([^;,]+);base64,(.+)$/s.exec(url) ?? [];
    return raw === undefined
      ? { url, ...defined({ mediaType, filename }) }
      : { raw, ...defined({ mediaType: type, filename }) };
  });
}
