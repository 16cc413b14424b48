/**
 * The workload of every system: a manager that passes tasks to a clerk, with the same texts, and the script of their common
 * model.
 */
import { PLAIN_TEXT } from "../turns/workload.ts";

/** Name of the called agent. In each system, the name of the calling tool ends with it. */
export const CLERK = "clerk";

export const MODEL_ID = "scripted";

export const MANAGER_PROMPT = "You pass tasks to the clerk, and report.";
export const CLERK_PROMPT = "You do one task, and report.";
export const CLERK_DESCRIPTION = "Does one task, and reports.";

/** Returns a user's message that makes the manager call the clerk this many times at once. With 0 the manager answers without the clerk. */
export function userText(delegations: number): string {
  return `Delegate ${delegations}: ${PLAIN_TEXT}`;
}

const PIECES = [
  "The eastern and the ",
  "southern lights are lit ",
  "before dusk, the others ",
  "wait for the keeper; and ",
  "the log says the lamp on ",
  "the northern pier was ",
  "relit within the hour ",
];

/** A message of a request to the model, in any role. */
export interface ChatMessage {
  role: string;
  content?: unknown;
}

/** A reply of the model: calls of the clerk with these tasks, or a text in deltas. */
export type Reply = { tasks: string[] } | { pieces: string[] };

/**
 * The scripted model. The clerk's report contains the number of its task. The manager's answer contains the number of different
 * reports. With these the runner verifies a run.
 */
export function replyTo(messages: readonly ChatMessage[]): Reply {
  const at = messages.findLastIndex(({ role }) => role === "user");
  const asked = JSON.stringify(messages[at]?.content ?? "");
  const task = /Task (\d+):/.exec(asked)?.[1];
  if (task !== undefined) return { pieces: [...PIECES, `(task ${task} done).`] };
  const wanted = Number(/Delegate (\d+):/.exec(asked)?.[1]);
  const after = messages.slice(at + 1).map(({ content }) => JSON.stringify(content ?? ""));
  const reports = new Set(
    after.flatMap((text) => [...text.matchAll(/\(task (\d+) done\)/g)].map(([, n]) => n)),
  );
  if (wanted > 0 && reports.size === 0) {
    return { tasks: Array.from({ length: wanted }, (_, n) => `Task ${n + 1}: ${PLAIN_TEXT}`) };
  }
  return { pieces: [...PIECES, `(${reports.size} reports).`] };
}

/** Returns the number of reports in the manager's answer; `null` for any other text. */
export function reportsIn(answer: string): number | null {
  const match = /\((\d+) reports\)\.$/.exec(answer);
  return match === null ? null : Number(match[1]);
}
