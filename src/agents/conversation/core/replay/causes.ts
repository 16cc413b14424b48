/**
 * The causes of recorded entries: the signals that planning took when it made them. Pure.
 *
 * CAUSE-1  A cause is derived from stored content. A decision on content that is not stored is taken as recorded, and the replay names it.
 */
import { planCycle } from "../planning/background.ts";
import { budgetExceeded, recovery, turnFailed } from "./end-causes.ts";
import { emptyReply, failed, replied } from "./model-causes.ts";
import type { RecordedEntry } from "./recording.ts";
import { type Cause, dataOf, NOTHING_NEW, type Scene, textIn } from "./scene.ts";
import { started } from "./start-causes.ts";
import * as tools from "./tool-causes.ts";

/** Returns the possible causes of the next entry, the likeliest first; `[]` if planning makes it at the end of the commit. */
export function causesOf(scene: Scene): Cause[] {
  const [next] = scene.rest;
  if (next === undefined) return [];
  switch (next.type) {
    case "turn.started":
      return started(scene);
    case "memory.recalled":
    case "task.event":
    case "task.metric":
    case "task.completed":
    case "task.failed":
    case "policy.denied":
      return causesOfOutcome(scene);
    case "message.completed":
    case "message.reset":
    case "llm.call.failed":
    case "turn.resumed":
      return causesOfMessage(scene, next);
    case "context_assembly.completed":
    case "context_assembly.failed":
      return assembled(scene, next);
    case "turn.failed":
    case "tool.cancelled":
    case "subagent.stopped":
      return turnFailed(scene);
    case "budget.exceeded":
      return budgetExceeded(scene, next);
    case "turn.queued":
    case "message.started":
    case "context_assembly.started":
    case "agent_call.started":
    case "workflow_run.started":
      return scene.turn === undefined ? [] : [{ signal: NOTHING_NEW }, { decide: planCycle }];
    default:
      return causesOfCall(scene, next);
  }
}

/** The entries that precede the entry of an outcome in its step. */
const BEFORE_OUTCOME = /^(?:memory\.recalled|task\.(?:event|metric|completed|failed)|policy\.denied)$/;

/** Returns the causes of an outcome that records memories or a task first. */
function causesOfOutcome(scene: Scene): Cause[] {
  const next = scene.rest.find(({ type }) => !BEFORE_OUTCOME.test(type));
  if (next === undefined) return [];
  if (/^context_assembly/.test(next.type)) return assembled(scene, next);
  if (next.type === "turn.failed") return turnFailed(scene);
  return [...causesOfMessage(scene, next), ...causesOfCall(scene, next)];
}

function causesOfMessage(scene: Scene, next: RecordedEntry): Cause[] {
  const data = dataOf(next);
  const { turn } = scene;
  switch (next.type) {
    case "message.completed":
      return data.stopped === true ? turnFailed(scene) : replied(scene, next.item);
    case "llm.call.failed":
      return failed(scene, textIn(data, "message"));
    case "turn.resumed":
      return data.reason === "paused" ? emptyReply(scene, "paused") : recovery(scene);
    case "message.reset":
      return turn === undefined ? [] : withdrawn(turn.n, data);
    default:
      return [];
  }
}

function withdrawn(turn: number, data: ReturnType<typeof dataOf>): Cause[] {
  const unchecked = "The text of the withdrawn answer is not stored.";
  if (data.reason === "newer_message")
    return [{ decide: () => [{ type: "RECONSIDER", turn, messages: [] }], unchecked }];
  const problem = textIn(data, "message");
  return [{ decide: () => [{ type: "REPAIR_OUTPUT", turn, text: "", problem }], unchecked }];
}

function causesOfCall(scene: Scene, next: RecordedEntry): Cause[] {
  switch (next.type) {
    case "tool.completed":
    case "tool.failed":
      return tools.settledBy(scene, next);
    case "tool.call.failed":
      return tools.failedAttempt(scene, next);
    case "tool.continued":
      return tools.continuation(scene, next);
    case "tool.deferred":
      return tools.deferral(scene, next);
    case "approval.resolved":
      return tools.approvalAnswer(scene, next);
    case "approval.requested":
      return tools.asked(scene, next);
    case "agent_call.completed":
    case "agent_call.failed":
    case "agent_call.charged":
      return tools.calledAgentEnded(scene, next);
    case "work.held":
    case "work.released":
      return tools.held(scene, next);
    default:
      return [];
  }
}

/** The text that planning puts before the failure of a context hook that failed for good. */
const NOT_ASSEMBLED = /^The context of the turn could not be assembled(?: after \d+ attempts)?: /;

/** Returns the end of an attempt of the turn's context hook. */
function assembled(scene: Scene, entry: RecordedEntry): Cause[] {
  const { turn, rest, now } = scene;
  const { assembly } = turn ?? {};
  if (turn === undefined || assembly === undefined) return [];
  const { code, message, final } = dataOf(entry);
  if (final === true && code !== "CONTEXT_ASSEMBLY_FAILED") return turnFailed(scene);
  const { item, attempt, deadline = Number.POSITIVE_INFINITY } = assembly;
  const recalled = rest.find(({ type }) => type === "memory.recalled");
  const { memories, code: failure } = dataOf(recalled);
  const error = { code: String(code), message: String(message).replace(NOT_ASSEMBLED, ""), retriable: false };
  const isGiven = entry.type === "context_assembly.completed";
  const signal = {
    ...{ type: "conversation.tool.completed", turn: turn.n, item, attempt, agentId: turn.agentId },
    ...tools.taskIn(rest, item),
    result: isGiven
      ? { tool_call_id: "", success: true, result: {} }
      : { tool_call_id: "", success: false, error },
    ...(recalled === undefined
      ? {}
      : { recalled: { used: memories ?? [], ...(failure === undefined ? {} : { failed: failure }) } }),
  };
  const expiry: Cause = { signal: { type: "conversation.cmd.expire" } };
  // SAFETY: the members are those of a report on a hook.
  const report = { signal: signal as unknown as Extract<Cause, { signal: unknown }>["signal"] };
  return deadline <= now ? [expiry, report] : [report];
}
