/** Display texts of runs. Pure. */
import type { RunStatus, RunSummary } from "../../../src/client/index.ts";
import { durationText } from "../format.ts";
import type { GateAnswer, NodeVisits, RunToken, TokenState } from "./run-log.ts";

export const STATUS_TEXT: Record<RunStatus, string> = {
  running: "Running",
  waiting: "Waiting",
  completed: "Completed",
  failed: "Failed",
  timed_out: "Timed out",
  cancelled: "Cancelled",
};

export const TOKEN_TEXT: Record<TokenState, string> = {
  failed: "Failed",
  lost: "Interrupted",
  retrying: "Waiting to retry",
  asking: "Waiting for a person",
  working: "Working",
  waiting: "Waiting at the fan-in",
  ready: "Ready",
  cancelled: "Cancelled",
  joined: "Joined at the fan-in",
  completed: "Completed",
};

const COUNT_TEXT: Record<TokenState, string> = {
  failed: "failed",
  lost: "interrupted",
  retrying: "waiting to retry",
  asking: "waiting for a person",
  working: "working",
  waiting: "waiting",
  ready: "ready",
  cancelled: "cancelled",
  joined: "joined",
  completed: "completed",
};

// SAFETY: `keys` returns the keys of the record in their order: the most important state first.
const STATES = Object.keys(TOKEN_TEXT) as TokenState[];

/** States of a node with open work. */
const BUSY: ReadonlySet<TokenState> = new Set(["lost", "retrying", "asking", "working", "waiting", "ready"]);

/** The state that a node shows: its current work, then its worst outcome; `idle` before the first token arrives. */
export type NodeState = TokenState | "idle";

export function nodeState({ counts }: NodeVisits): NodeState {
  const present = STATES.filter((state) => (counts[state] ?? 0) > 0);
  return present.find((state) => BUSY.has(state)) ?? present[0] ?? "idle";
}

/** Returns the tokens of a node as text, such as "2 working, 3 completed". */
export function countsText({ counts }: NodeVisits): string {
  const parts = STATES.flatMap((state) => {
    const count = counts[state] ?? 0;
    return count === 0 ? [] : [`${count} ${COUNT_TEXT[state]}`];
  });
  return parts.length === 0 ? "Not reached yet" : parts.join(", ");
}

/** Returns the place of a question: its step, or the run. */
export function stepText(step: string | undefined): string {
  return step === undefined ? "The run" : `Step: ${step}`;
}

/** Returns who answered a question, such as "Approved by ada". */
export function answerText({ by, approved }: GateAnswer): string {
  const verb = approved === undefined ? "Answered" : approved ? "Approved" : "Denied";
  return `${verb} by ${by}`;
}

/** Returns `library/id@version`. */
export function workflowName({ library, id, version }: RunSummary["workflow"]): string {
  return `${library}/${id}@${version}`;
}

/** Returns the name of a run, or of its workflow. */
export function runName({ name, workflow }: Pick<RunSummary, "name" | "workflow">): string {
  return name ?? workflowName(workflow);
}

/** Returns how long something took; `undefined` before its end. */
export function lasted(from: string, to: string | undefined): string | undefined {
  return to === undefined ? undefined : durationText(Math.max(0, Date.parse(to) - Date.parse(from)));
}

/** Returns the duration of a token's work, or of its stay at a node without work; `undefined` before its end. */
export function tokenLasted({ startedAt, createdAt, endedAt }: RunToken): string | undefined {
  return lasted(startedAt ?? createdAt, endedAt);
}
