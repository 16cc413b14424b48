/**
 * Turns and runs as tasks of MCP, the extension `io.modelcontextprotocol/tasks`. Pure.
 *
 * MCP-11  The id of a task names its turn or run, so any isolate finds the task. A task lives as long as its conversation or run.
 */
import type { CallToolResult, ElicitRequestFormParams } from "@modelcontextprotocol/server";
import type { TurnView } from "../../protocol/conversation-schemas.ts";
import type { RunView } from "../../protocol/run-schemas.ts";
import { isConversationId, isTurnId, RUN_ID } from "../../shared/identifiers.ts";
import { answerOf } from "../answer.ts";
import { type Question, type QuestionPlace, questionKey } from "./questions.ts";
import { runResult, turnResult } from "./tools.ts";

export const TASKS = "io.modelcontextprotocol/tasks";

/** Milliseconds between two looks of a client at a task. */
const POLL_MS = 1_000;
const SEPARATOR = ":";

export type TaskPlace = { conversationId: string; turnId: string } | { runId: string };

interface Task {
  taskId: string;
  status: "working" | "input_required" | "completed" | "cancelled";
  statusMessage?: string;
  createdAt: string;
  lastUpdatedAt: string;
  /** It is not discarded. */
  ttlMs: null;
  pollIntervalMs: number;
  inputRequests?: Record<string, { method: "elicitation/create"; params: ElicitRequestFormParams }>;
  result?: CallToolResult;
}

export function taskId(place: TaskPlace): string {
  return "runId" in place ? place.runId : [place.conversationId, place.turnId].join(SEPARATOR);
}

/** Reads the id of a task. Returns `undefined` for ids of other origin. */
export function parseTaskId(id: string): TaskPlace | undefined {
  const [first = "", turnId = "", ...rest] = id.split(SEPARATOR);
  if (RUN_ID.test(id)) return { runId: id };
  const isTurn = isConversationId(first) && isTurnId(turnId) && rest.length === 0;
  return isTurn ? { conversationId: first, turnId } : undefined;
}

export function isOfTask(place: QuestionPlace, task: TaskPlace): boolean {
  const { operationId: _, ...owner } = place;
  return taskId(owner) === taskId(task);
}

/** Returns the result of a call that becomes a task. The SDK requires `content` in it. */
export function createdTask(place: TaskPlace, createdAt: string): CallToolResult {
  return { content: [], resultType: "task", ...working(place, createdAt, createdAt) };
}

/** Returns the task of a turn. `questions` are the forms for the client. */
export function taskOfTurn(
  place: { conversationId: string; turnId: string },
  turn: TurnView,
  questions: readonly Question[],
  now: string,
): Task {
  const { status, createdAt, completedAt, error } = turn;
  const task = working(place, createdAt, completedAt ?? now);
  if (status === "active") return asking(task, questions);
  if (error?.code === "CANCELLED") return { ...task, status: "cancelled" };
  const answer = answerOf(turn, { index: 0, finalOnly: false });
  if (answer === null) throw new Error("A turn that has ended has an answer.");
  return { ...task, status: "completed", result: turnResult(place, answer) };
}

/** Returns the task of a run, as `taskOfTurn` does. */
export function taskOfRun(run: RunView, questions: readonly Question[], now: string): Task {
  const { id: runId, status, createdAt, endedAt } = run;
  const task = working({ runId }, createdAt, endedAt ?? now);
  if (endedAt === undefined) return asking(task, questions);
  if (status === "cancelled") return { ...task, status: "cancelled" };
  return { ...task, status: "completed", result: runResult(run) };
}

function working(place: TaskPlace, createdAt: string, lastUpdatedAt: string): Task {
  const times = { createdAt, lastUpdatedAt, ttlMs: null, pollIntervalMs: POLL_MS };
  return { taskId: taskId(place), status: "working", ...times };
}

function asking(task: Task, questions: readonly Question[]): Task {
  const [first] = questions;
  if (first === undefined) return task;
  const forms = questions.flatMap(({ place, form }) => {
    if (form === undefined) return [];
    return [[questionKey(place), { method: "elicitation/create" as const, params: form }] as const];
  });
  if (forms.length === 0) return { ...task, statusMessage: `Waits for a person: ${first.message}` };
  return { ...task, status: "input_required", inputRequests: Object.fromEntries(forms) };
}
