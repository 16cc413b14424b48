/**
 * Tasks of A2A: reads of one task, and their list.
 *
 * A2A-7  A task of another agent, or of a conversation that the principal may not read, is not found.
 * A2A-12  A list has only tasks of the caller, whatever the roles of the caller: turns that the caller's messages to this agent started, in
 *         conversations that the caller is in. A page ends with the task that brings it to 4 MiB. It reads a conversation only for a task
 *         that is not over, and for artifacts or history.
 */
import { A2aError } from "../../compat/a2a/errors.ts";
import { type ListParams, taskFilter } from "../../compat/a2a/requests.ts";
import { listedTask, shownTask, type TurnPlace, taskOf } from "../../compat/a2a/tasks.ts";
import type { A2aTask, TaskPage } from "../../compat/a2a/wire.ts";
import { type Question, questionsOfTurn } from "../../compat/mcp/questions.ts";
import { parseTaskId } from "../../compat/mcp/tasks.ts";
import type { TurnView } from "../../protocol/conversation-schemas.ts";
import type { ListedTask } from "../../protocol/turn-records.ts";
import { defined } from "../../shared/defined.ts";
import { hasCode, unwrap } from "../../shared/errors.ts";
import { MAX_PAGE_BYTES } from "../../shared/page.ts";
import { utf8Length } from "../../shared/utf8.ts";
import type { RequestVariables } from "../base/context.ts";
import { findConversation } from "../routes/conversations.ts";

export interface A2aCall {
  ports: RequestVariables;
  agentId: string;
  /** The version of A2A that the client names. */
  version: string | undefined;
  traceparent: string | undefined;
  card(): Promise<object>;
}

/** Conversations that a list reads at the same time. */
const READS_AT_ONCE = 10;

export const noTask = () =>
  new A2aError("TASK_NOT_FOUND", "The task was not found. Check its id and your access.");

/** Returns the turn of a task's id. Throws `TASK_NOT_FOUND` for an id of another form. */
export function placeOf(id: string): TurnPlace {
  const place = parseTaskId(id);
  if (place === undefined || "runId" in place) throw noTask();
  return place;
}

/** Reads a task (A2A-7). */
export async function taskAt(
  { ports, agentId }: A2aCall,
  place: TurnPlace,
): Promise<{ turn: TurnView; questions: Question[]; task: A2aTask }> {
  const { principal } = ports;
  const read = async () =>
    unwrap(await (await findConversation(ports, place.conversationId)).turn(principal, place.turnId));
  const turn = await ifFound(read(), noTask);
  if (turn.agentId !== agentId) throw noTask();
  const questions = questionsOfTurn(place, turn, principal);
  return { turn, questions, task: taskOf(place, turn, questions) };
}

/** Returns a page of the caller's tasks, the newest change first (A2A-12). */
export async function listTasks(call: A2aCall, params: ListParams): Promise<TaskPage> {
  const { ports, agentId } = call;
  const { pageSize, pageToken = "" } = params;
  const filter = taskFilter(params);
  if (filter === null) return { tasks: [], nextPageToken: "", pageSize, totalSize: 0 };
  const cursor = defined({ cursor: pageToken === "" ? undefined : pageToken });
  const request = { ...filter, ...cursor, agentId, limit: pageSize };
  const found = await ports.directory().tasks(ports.principal, request);
  const tasks: A2aTask[] = [];
  let [bytes, next] = [0, found.nextCursor];
  for (let from = 0; from < found.tasks.length && bytes < MAX_PAGE_BYTES; from += READS_AT_ONCE) {
    const some = found.tasks.slice(from, from + READS_AT_ONCE);
    const read = await Promise.all(some.map((one) => taskInList(call, one, params)));
    for (const [index, task] of read.entries()) {
      const isLast = from + index + 1 === found.tasks.length;
      if (task !== undefined) {
        tasks.push(task);
        bytes += utf8Length(JSON.stringify(task));
      }
      if (bytes < MAX_PAGE_BYTES || isLast) continue;
      next = some[index]?.cursor;
      break;
    }
  }
  const byTime = tasks.sort((a, b) => (a.status.timestamp < b.status.timestamp ? 1 : -1));
  return { tasks: byTime, nextPageToken: next ?? "", pageSize, totalSize: found.total };
}

/** Returns a task as a list shows it; `undefined` if its conversation is gone, or if it has left the state of the filter. */
async function taskInList(
  call: A2aCall,
  listed: ListedTask,
  params: ListParams,
): Promise<A2aTask | undefined> {
  const { status: state, historyLength, includeArtifacts } = params;
  if (listed.status !== "active" && !includeArtifacts && historyLength === 0) return listedTask(listed);
  const place = { conversationId: listed.conversationId, turnId: listed.id };
  try {
    const { task } = await taskAt(call, place);
    const isWanted = state === undefined || state === "TASK_STATE_UNSPECIFIED" || state === task.status.state;
    return isWanted ? shownTask(task, { historyLength, includeArtifacts }) : undefined;
  } catch (error) {
    if (error instanceof A2aError) return undefined;
    throw error;
  }
}

/** Replaces the error of a missing actor. */
export async function ifFound<Value>(
  found: Promise<Value>,
  missing: () => Error | undefined,
): Promise<Value> {
  try {
    return await found;
  } catch (error) {
    const isMissing = hasCode(error, "NOT_FOUND");
    throw (isMissing ? missing() : undefined) ?? error;
  }
}
