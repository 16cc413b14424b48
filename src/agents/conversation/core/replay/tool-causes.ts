/** The results of calls, from the entries that they caused. Pure. */
import type { Amounts } from "../../../../model/spending.ts";
import type { CallAsk } from "../../../../protocol/agent-call.ts";
import type { ApprovalOutcome } from "../../../../protocol/approval.ts";
import { amountOf } from "../../../../protocol/budget.ts";
import type { Caller } from "../../../../protocol/caller-schemas.ts";
import type { Elicited } from "../../../../protocol/elicitation.ts";
import type { ToolResult } from "../../../../protocol/executor-api.ts";
import type { StepSummary, TaskSummary } from "../../../../protocol/task-summary.ts";
import { defined } from "../../../../shared/defined.ts";
import { isJsonObject, type JsonObject } from "../../../../shared/json.ts";
import { dueAt, isGivenUp, type Operation } from "../operation.ts";
import { supersede } from "../planning/approval.ts";
import type { Signal } from "../signals.ts";
import type { RecordedEntry } from "./recording.ts";
import { type Cause, dataOf, operationAt, type Scene, textIn } from "./scene.ts";

const EXPIRY: Cause = { signal: { type: "conversation.cmd.expire" } };

/** Returns the causes of the result of a call. */
export function settledBy(scene: Scene, entry: RecordedEntry): Cause[] {
  const { turn, recording, now } = scene;
  const operation = operationAt(turn, entry.item);
  const recorded = operationAt(recording.turn, entry.item);
  const result = recorded?.result;
  if (turn === undefined || operation === undefined || result === undefined) return [];
  const given = resultCauses(turn.n, operation, result, scene);
  const isLate = dueAt(operation) <= now && isGivenUp({ status: operation.status, result });
  return isLate ? [EXPIRY, ...given] : [...given, EXPIRY];
}

function resultCauses(turn: number, operation: Operation, result: ToolResult, scene: Scene): Cause[] {
  const { item, target, attempt, effect, agent } = operation;
  const outcome = result.success ? { result: result.result ?? null } : { error: errorOf(result) };
  if (target === "client") return [{ signal: { type: "conversation.tool.submitted", turn, item, outcome } }];
  if (target === "agent" && agent?.mode === "loop_in") return [invited(turn, operation, result)];
  if (target === "agent") return [];
  const completed: Signal = {
    type: "conversation.tool.completed",
    ...{ turn, item, attempt, result, agentId: scene.recording.turn.agentId },
    ...taskIn(scene.rest, item),
  };
  const resolved: Cause = { signal: { type: "conversation.tool.resolved", turn, item, outcome } };
  const isResolvable = target === "code" && effect !== "pure";
  if (operation.status === "deferred") return [resolved];
  return [{ signal: completed }, ...(isResolvable ? [resolved] : [])];
}

function errorOf({ error }: ToolResult): NonNullable<ToolResult["error"]> {
  return error ?? { code: "EXECUTION_FAILED", message: "", retriable: false };
}

/** The errors of an invitation, by the codes that planning gives to their results. */
const INVITATION_CODES: Readonly<Record<string, string>> = {
  NOT_FOUND: "NOT_FOUND",
  PERMISSION_DENIED: "FORBIDDEN",
  INVALID_INPUT: "INVALID_INPUT",
};

function invited(turn: number, { item, attempt }: Operation, result: ToolResult): Cause {
  const { code, message, retriable } = errorOf(result);
  const error = { code: INVITATION_CODES[code] ?? "UNAVAILABLE", message, retriable };
  const outcome = result.success ? {} : { error };
  return { signal: { type: "conversation.agent.invited", turn, item, attempt, outcome } };
}

/** Returns the failed attempt of a call that is repeated. */
export function failedAttempt(scene: Scene, entry: RecordedEntry): Cause[] {
  const { turn, rest } = scene;
  const operation = operationAt(turn, entry.item);
  if (turn === undefined || operation === undefined) return [];
  const { item, attempt, target, toolCallId, agent } = operation;
  const data = dataOf(entry);
  // SAFETY: the entry has the code of a tool's error.
  const code = textIn(data, "code") as NonNullable<ToolResult["error"]>["code"];
  const error = { code, message: textIn(data, "message"), retriable: true };
  if (agent?.mode === "loop_in")
    return [
      { signal: { type: "conversation.agent.invited", turn: turn.n, item, attempt, outcome: { error } } },
    ];
  if (target === "agent") return [];
  const result = { tool_call_id: toolCallId, success: false, error };
  const address = { turn: turn.n, item, attempt, result, transient: true } as const;
  return [{ signal: { type: "conversation.tool.completed", ...address, ...taskIn(rest, item) } }];
}

/** Returns the record of a task from the entries of its attempt, as a member; `{}` without such entries. */
export function taskIn(rest: Scene["rest"], item: number): { task?: TaskSummary } {
  const end = rest.find((entry) => entry.item === item && /^task\.(?:completed|failed)$/.test(entry.type));
  if (end === undefined) return {};
  const given = rest.slice(0, rest.indexOf(end)).filter((entry) => entry.item === item);
  const listed = (type: string) => given.filter((entry) => entry.type === type).map(dataOf);
  const [events, metrics] = [listed("task.event"), listed("task.metric")];
  const { task: name, steps: count, durationMs, models, failedStep } = dataOf(end);
  const [, library = "", id = "", version = "0"] = /^(.*?)\/(.*)@(\d+)$/.exec(String(name)) ?? [];
  const step: StepSummary = { ref: "step", status: "completed", startedAfterMs: 0, durationMs: 0 };
  const failed: StepSummary = { ...step, ref: String(failedStep), status: "failed" };
  const steps = Array.from({ length: Number(count) }, (_, index) =>
    index === 0 && failedStep !== undefined ? failed : step,
  );
  const summary = {
    task: { library, id, version: Number(version) },
    steps,
    durationMs,
    ...defined({ models }),
    ...(events.length === 0 ? {} : { events }),
    ...(metrics.length === 0 ? {} : { metrics }),
  };
  // SAFETY: the entries of an attempt hold the members of its record.
  return { task: summary as unknown as TaskSummary };
}

/** Returns the end of an attempt while the work of a remote agent continues. */
export function continuation({ turn }: Scene, entry: RecordedEntry): Cause[] {
  const operation = operationAt(turn, entry.item);
  if (turn === undefined || operation === undefined) return [];
  const { item, attempt, toolCallId } = operation;
  const continuesAt = Date.parse(textIn(dataOf(entry), "notBefore"));
  const error = { code: "TIMEOUT", message: "", retriable: true } as const;
  const result = { tool_call_id: toolCallId, success: false, error };
  const address = { turn: turn.n, item, attempt, result, continuesAt };
  return [{ signal: { type: "conversation.tool.completed", ...address } }];
}

/** Returns the end of an attempt with a result that comes by a handle. */
export function deferral({ turn }: Scene, entry: RecordedEntry): Cause[] {
  const operation = operationAt(turn, entry.item);
  if (turn === undefined || operation === undefined) return [];
  const { item, attempt } = operation;
  const expiresAt = Date.parse(textIn(dataOf(entry), "expiresAt"));
  return [{ signal: { type: "conversation.tool.deferred", turn: turn.n, item, attempt, expiresAt } }];
}

/** Returns the end of a call of another agent, or a report of its use. */
export function calledAgentEnded(scene: Scene, entry: RecordedEntry): Cause[] {
  const { turn, recording, rest } = scene;
  const { n, agentId } = recording.turn;
  const operation = operationAt(turn, entry.item);
  if (operation === undefined) return [];
  const { item, attempt } = operation;
  const spent = amountsOf(dataOf(entry).spent);
  const address = { turn: n, item, attempt, agentId, spent };
  if (entry.type === "agent_call.charged")
    return [{ signal: { type: "conversation.agent.ended", ...address } }];
  const result = operationAt(recording.turn, item)?.result;
  const repeated = dataOf(rest.find((next) => next.type === "tool.call.failed" && next.item === item));
  const failure =
    "code" in repeated
      ? {
          ...errorOf({ tool_call_id: "", success: false }),
          code: textIn(repeated, "code"),
          message: textIn(repeated, "message"),
          retriable: true,
        }
      : errorOf(result ?? { tool_call_id: "", success: false });
  const view = isJsonObject(result?.result) ? { view: result.result } : {};
  const answer = { text: typeof result?.result === "string" ? result.result : "", ...view };
  // SAFETY: the codes of tools' errors come from the recording.
  const outcome = (entry.type === "agent_call.failed" ? { error: failure } : answer) as { text: string };
  return [{ signal: { type: "conversation.agent.ended", ...address, outcome } }];
}

function amountsOf(spent: unknown): Amounts {
  const { tokens = 0, usd = 0, toolCalls = 0, modelCalls = 0 } = isJsonObject(spent) ? spent : {};
  const nanoDollars = amountOf(Number(usd), "usd");
  return {
    tokens: Number(tokens),
    nanoDollars,
    toolCalls: Number(toolCalls),
    modelCalls: Number(modelCalls),
  };
}

/** Returns the answer to a request for approval, of the turn's call or of an agent below. */
export function approvalAnswer(scene: Scene, entry: RecordedEntry): Cause[] {
  const { turn } = scene;
  if (turn === undefined || entry.item === undefined) return [];
  const { n } = turn;
  const { of, by, reason, ...data } = dataOf(entry);
  const outcome = textIn(data, "outcome");
  if (of !== undefined) return asked(scene, entry);
  if (outcome === "expired") return [EXPIRY];
  if (outcome === "superseded") return [{ decide: (state) => supersede(state.active.get(n) ?? turn) }];
  const given = { approved: outcome === "approved", ...(typeof reason === "string" ? { reason } : {}) };
  // SAFETY: the entry names the caller who answered.
  const caller = by as unknown as Caller;
  return [
    { signal: { type: "conversation.approval.resolved", turn: n, item: entry.item, caller, ...given } },
  ];
}

/** Returns the request of an agent below, or its answer, or the question of a server. */
export function asked({ turn }: Scene, entry: RecordedEntry): Cause[] {
  const operation = operationAt(turn, entry.item);
  const { of, outcome: given, elicitation } = dataOf(entry);
  if (turn === undefined || operation === undefined) return [];
  const { item, attempt } = operation;
  if (isJsonObject(elicitation)) {
    // SAFETY: the entry has the question as its readers see it.
    const elicited = { ...elicitation, forms: [], urls: [] } as unknown as Elicited;
    const error = { code: "EXECUTION_FAILED", message: "", retriable: false } as const;
    const result = { tool_call_id: operation.toolCallId, success: false, error };
    return [
      { signal: { type: "conversation.tool.completed", turn: turn.n, item, attempt, result, elicited } },
    ];
  }
  if (!isJsonObject(of)) return [];
  // SAFETY: the entry has the request as its readers see it.
  const ask = { ...(of as JsonObject), expiresAt: Date.parse(textIn(of, "expiresAt")) } as unknown as CallAsk;
  // SAFETY: the entry has the outcome of the answer.
  const outcome = given as ApprovalOutcome | undefined;
  const signal = {
    type: "conversation.agent.asked",
    turn: turn.n,
    item,
    attempt,
    ask,
    ...defined({ outcome }),
  } as const;
  return [{ signal }];
}

/** Returns the report of a wait for a person below a call. */
export function held({ turn }: Scene, entry: RecordedEntry): Cause[] {
  const operation = operationAt(turn, entry.item);
  if (turn === undefined || operation === undefined) return [];
  const { item, attempt, hold } = operation;
  const seq = (hold?.seq ?? 0) + 1;
  const isHeld = entry.type === "work.held";
  return [{ signal: { type: "conversation.work.held", turn: turn.n, item, attempt, seq, isHeld } }];
}
