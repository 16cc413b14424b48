/**
 * The envelopes of a commit for calls of agents and of runs. They derive from the state before and after the commit, so that each call,
 * cancellation and result is sent. Pure.
 *
 * DELEGATE-7  If the caller's turn was stopped or has failed, or the time limit of a call has passed, the call and the calls below it are
 *             stopped.
 * DELEGATE-11  At the end of a call or of its attempt, an undelivered envelope of it is withdrawn. So abandoned calls use no room in the
 *             outbox.
 * DELEGATE-9  A person who joins the caller's conversation may read the conversations of its open calls and of all calls below them. A person
 *             who leaves may not. The lists have numbers, and the list with the highest number counts.
 * A2ATASK-2  If a call of a remote agent was stopped, its time limit has passed, or its outcome is unknown, its task is cancelled at the other
 *            server, also after a crash.
 * A2ATASK-4  The stored call of a remote agent is deleted in the commit of its result. The receiver of a cancellation deletes it, too.
 * FLOWCALL-3  The run of a call is cancelled if the call was stopped, its time limit has passed, or it is unknown whether its start has
 *             arrived. A start that arrives after its cancellation is refused.
 */
import { callMessage } from "../../../library/tools/agent-tool.ts";
import { a2aTarget } from "../../../library/tools/remote-agent.ts";
import { boundsOf } from "../../../library/tools/sub-agent.ts";
import {
  AGENT_CALL,
  AGENT_CANCEL,
  AGENT_READERS,
  type AgentCallBody,
  type AgentCancelBody,
  type AgentReadersBody,
} from "../../../protocol/agent-call.ts";
import type { CallAddress } from "../../../protocol/call-address.ts";
import { calledConversationId, calledRunId, operationId, turnId } from "../../../protocol/ids.ts";
import { REMOTE_CANCEL, REMOTE_TASK, type RemoteCancelBody } from "../../../protocol/remote-call.ts";
import { RUN_CANCEL, RUN_START, type RunCancelBody } from "../../../protocol/run-call.ts";
import { defined } from "../../../shared/defined.ts";
import { checkBudget } from "../../../shared/json-schema/violations.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import { cut } from "../../../shared/text.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { userOf, worksForRun } from "./called-workflow.ts";
import { type CallEnvelope, type CommittedState, callerEnvelopes, jsonOf } from "./caller-envelopes.ts";
import { CALL_GRACE_MS } from "./conversation-limits.ts";
import { correlationOf } from "./correlation.ts";
import { isOpen, isSent, type Operation, OUTCOME_UNKNOWN } from "./operation.ts";
import { pathTo } from "./planning/call-guards.ts";
import { targetInput } from "./shown-call.ts";
import { type ConversationIdentity, type ConversationState, chainOf, workspaceIn } from "./state.ts";
import { templateOf } from "./sub-agents.ts";
import { operationTraceparent } from "./trace.ts";
import type { Transition } from "./transition.ts";
import type { Turn } from "./turn.ts";
import { openCalls } from "./turn-operations.ts";

/** Bytes of an envelope beside its body, including the data that the start of a call adds. */
const CALL_OVERHEAD_BYTES = 2 * 1024;

/** Returns the calls, cancellations and results that a commit owes: one with these changes and entries. */
export function callEnvelopes(
  before: ConversationState,
  after: ConversationState,
  { touched: changed, entries }: Pick<Transition, "touched" | "entries">,
): CallEnvelope[] {
  const touched = [...changed.values()];
  const { record } = after;
  const envelopes: CallEnvelope[] = [];
  for (const turn of touched) {
    const known = before.active.get(turn.n)?.operations;
    for (const operation of turn.operations) {
      if (!isSent(operation) && operation.remote === undefined) continue;
      const earlier = known?.find(({ item }) => item === operation.item);
      if (operation.remote !== undefined) {
        if (earlier !== undefined && needsCancellation(operation, earlier))
          envelopes.push(remoteCancellation(record, turn, operation));
        continue;
      }
      if (isUnderWay(operation) && !(isUnderWay(earlier) && earlier?.attempt === operation.attempt))
        envelopes.push(begin(after, turn, operation));
      if (isUnderWay(earlier) && earlier !== undefined && isGivenUp(operation, earlier))
        envelopes.push(cancellation(record, turn, earlier));
    }
  }
  if (readersOf(before.record).join("\n") !== readersOf(record).join("\n")) {
    for (const turn of after.active.values())
      for (const operation of openCalls(turn))
        if (isUnderWay(operation)) envelopes.push(readersEnvelope(after, turn, operation));
  }
  return [...envelopes, ...callerEnvelopes(before, after, { touched: changed, entries })];
}

/** Returns the envelopes of the calls, and of their attempts, that end with a commit (DELEGATE-11). */
export function endedCalls(
  before: ConversationState,
  { record }: Pick<ConversationState, "record">,
  { touched }: Pick<Transition, "touched">,
): Pick<CallEnvelope, "to" | "type">[] {
  return [...touched.values()].flatMap((turn) => {
    const known = before.active.get(turn.n)?.operations ?? [];
    const ended = known.filter((earlier) => {
      const now = turn.operations.find(({ item }) => item === earlier.item);
      return isUnderWay(earlier) && !(isUnderWay(now) && now?.attempt === earlier.attempt);
    });
    return ended.map((operation) => ({
      ...toCalled(record, turn, operation),
      type: operation.target === "workflow" ? RUN_START : AGENT_CALL,
    }));
  });
}

/** Returns the ids of the calls of remote agents that end with a commit, and need no cancellation (A2ATASK-4). */
export function endedRemoteCalls(
  before: ConversationState,
  { touched }: Pick<Transition, "touched">,
): string[] {
  return [...touched.values()].flatMap((turn) => {
    const open = (before.active.get(turn.n)?.operations ?? []).filter(
      (operation) => operation.remote !== undefined && isOpen(operation),
    );
    const ended = open.filter((earlier) => {
      const now = turn.operations.find(({ item }) => item === earlier.item);
      return now !== undefined && !isOpen(now) && !needsCancellation(now, earlier);
    });
    return ended.map(({ item }) => operationId(turn, item));
  });
}

/** Returns the bytes that a call takes in the outbox, at most. */
export function callBytes(state: CommittedState, turn: Turn, operation: Operation): number {
  return utf8Length(JSON.stringify(begin(state, turn, operation))) + CALL_OVERHEAD_BYTES;
}

function isUnderWay(operation: Operation | undefined): boolean {
  return operation?.status === "dispatched";
}

/** Reports whether an attempt of a call of a remote agent may have begun. */
function mayRun({ status }: Operation): boolean {
  return status === "pending" || status === "interrupted";
}

/** Reports whether the task of a call of a remote agent must be cancelled (A2ATASK-2). */
function needsCancellation(operation: Operation, earlier: Operation): boolean {
  return mayRun(earlier) && isGivenUp(operation, earlier);
}

/** Reports whether an open call ended without a message from its agent or its run: it was stopped, or its caller waited no longer. */
function isGivenUp(
  { status, target, remote, result, completedAt = 0 }: Operation,
  { deadline = 0 }: Operation,
): boolean {
  if (status === "cancelled") return true;
  const { code, message = "" } = result?.error ?? {};
  if ((target === "workflow" || remote !== undefined) && message.startsWith(OUTCOME_UNKNOWN)) return true;
  return code === "TIMEOUT" && completedAt >= deadline;
}

/** Returns the envelope that begins a call. The run of a workflow reads the rest from the conversation. */
function begin(state: CommittedState, turn: Turn, operation: Operation): CallEnvelope {
  if (operation.target !== "workflow") return call(state, turn, operation);
  return toRun<CallAddress>(state.record, turn, operation, RUN_START, {});
}

function toRun<Body extends CallAddress>(
  record: ConversationIdentity,
  turn: Turn,
  operation: Operation,
  type: string,
  body: Omit<Body, keyof CallAddress>,
): CallEnvelope {
  const address = { operationId: operationId(turn, operation.item), attempt: operation.attempt };
  return { ...toCalled(record, turn, operation), type, body: jsonOf({ ...address, ...body }) };
}

function call({ record, seq }: CommittedState, turn: Turn, operation: Operation): CallEnvelope {
  const { agentId } = turn;
  const { agent, attempt, deadline = 0 } = operation;
  const caller = record.agents.find(({ id }) => id === agentId);
  const workspace = workspaceIn(record);
  const body: AgentCallBody = {
    operationId: operationId(turn, operation.item),
    attempt,
    agentId: agent?.id ?? "",
    caller: { agentId, turnId: turnId(turn) },
    content: callMessageOf(record, turn, operation),
    projectIds: [...new Set([record.projectId, ...(caller?.projectIds ?? [])])],
    path: pathTo(record, turn),
    readers: readersOf(record),
    readersSeq: seq,
    deadline: deadline - CALL_GRACE_MS,
    correlationId: correlationOf(turn),
    traceparent: operationTraceparent(turn, operation.item),
    workspace: agent?.workspace === "shared" ? workspace : { from: workspace.id },
    ...defined({
      requester: userOf(record, turn),
      budget: agent?.budget,
      calls: agent?.calls,
      worksForRun: worksForRun(record, turn),
      bounds: boundsOf(record.call?.bounds, templateOf(record, agentId, operation.name)),
    }),
  };
  return { ...toCalled(record, turn, operation), type: AGENT_CALL, body: jsonOf(body) };
}

function cancellation(record: ConversationIdentity, turn: Turn, operation: Operation): CallEnvelope {
  const { item, attempt } = operation;
  const reason = turn.error && cut(turn.error.message, 500);
  if (operation.target === "workflow")
    return toRun<RunCancelBody>(record, turn, operation, RUN_CANCEL, {
      reason: reason ?? "The call that started it was stopped.",
    });
  const body: AgentCancelBody = { operationId: operationId(turn, item), attempt, ...defined({ reason }) };
  return { ...toCalled(record, turn, operation), type: AGENT_CANCEL, body: jsonOf(body) };
}

/** Returns the cancellation of the task of a remote agent (A2ATASK-2). */
function remoteCancellation(
  record: ConversationIdentity,
  turn: Turn,
  { item, name }: Operation,
): CallEnvelope {
  const tool = chainOf(record, turn.agentId).tools.find(({ definition }) => definition.name === name);
  const id = operationId(turn, item);
  const body: RemoteCancelBody = {
    operationId: id,
    tool: { library: tool?.library ?? "", id: tool?.id ?? "" },
    url: a2aTarget(tool?.definition.target)?.a2a ?? "",
    projectId: record.projectId,
  };
  return { to: { kind: REMOTE_TASK, tenant: record.tenant, id }, type: REMOTE_CANCEL, body: jsonOf(body) };
}

function toCalled(
  { tenant, id: own }: ConversationIdentity,
  turn: Turn,
  { item, attempt, agent, target }: Operation,
): Pick<CallEnvelope, "to"> {
  if (target === "workflow") {
    const runId = calledRunId(operationId(turn, item), attempt, jurisdictionOf(own));
    return { to: { kind: "coordinator", tenant, id: runId } };
  }
  const id = calledConversationId(operationId(turn, item), attempt, agent?.jurisdiction);
  return { to: { kind: "conversation", tenant, id } };
}

/** Returns the message of a call. Planning mapped the input before, so it can be mapped. */
export function callMessageOf(
  record: ConversationIdentity,
  { agentId }: Turn,
  { name, input }: Operation,
): string {
  const tool = chainOf(record, agentId).tools.find(({ definition }) => definition.name === name);
  const passed = tool === undefined ? input : targetInput(tool.definition, input, checkBudget());
  return callMessage(passed);
}

/** Returns the users who may read the conversations that calls open. */
function readersOf({ call, participants }: ConversationIdentity): string[] {
  return call === undefined
    ? participants.filter(({ type }) => type === "user").map(({ id }) => id)
    : [...call.readers];
}

function readersEnvelope({ record, seq }: CommittedState, turn: Turn, operation: Operation): CallEnvelope {
  const { item, attempt } = operation;
  const body: AgentReadersBody = {
    operationId: operationId(turn, item),
    attempt,
    readers: readersOf(record),
    readersSeq: seq,
  };
  return { ...toCalled(record, turn, operation), type: AGENT_READERS, body: jsonOf(body) };
}
