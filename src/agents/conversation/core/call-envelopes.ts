/**
 * The envelopes of calls of agents and of runs that a commit owes. They derive from the state before and after the commit, so that each call,
 * cancellation and result is sent. Pure.
 *
 * DELEGATE-7  A call whose caller gave it up is stopped, with the calls below it: the turn was stopped or has failed, or the call's
 *             time was over.
 * DELEGATE-10  A result fits into its envelope, whatever its agent has written: no commit that ends a call can fail because of it. A
 *             longer answer is shortened there, beside its excerpt, and the caller reads the whole answer.
 * DELEGATE-11  With the end of a call or of its attempt, its envelope is withdrawn where it is still under way: calls that nobody waits for
 *             take no room from others.
 * DELEGATE-9  Who joins the caller's conversation may read those of its open calls, and who leaves may not any more; so it is with all
 *             calls below them. The lists are numbered: whatever arrives when, the newest one holds.
 * FLOWCALL-3  The run of a call that waits no longer is cancelled: the call was stopped, its time was over, or it is unknown whether its start
 *             has arrived. A cancellation that overtakes the start refuses it.
 * HELD-2  A conversation that a run or an agent called informs its caller when a wait for a person begins, and when it ends.
 * DELEGATE-8  A conversation that a call opened sends its caller one result, when it ends. What calls below it use up later, it reports
 *             later.
 */

import { excerptOf } from "../../../attachments/large-result.ts";
import { callMessage } from "../../../library/tools/agent-tool.ts";
import { boundsOf } from "../../../library/tools/sub-agent.ts";
import { isWithin, NOTHING, subtractAmounts } from "../../../model/spending.ts";
import {
  AGENT_ASK,
  AGENT_CALL,
  AGENT_CANCEL,
  AGENT_READERS,
  AGENT_RESULT,
  type AgentAskBody,
  type AgentCallBody,
  type AgentCancelBody,
  type AgentOutcome,
  type AgentReadersBody,
  type AgentResultBody,
  type AskView,
  type CallAsk,
  MAX_ANSWER_BYTES,
  MAX_ANSWER_LENGTH,
  MAX_REASON_BYTES,
  shownInput,
} from "../../../protocol/agent-call.ts";
import type { ApprovalOutcome } from "../../../protocol/approval.ts";
import type { CallAddress } from "../../../protocol/call-address.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import { TOOL_ERROR_CODES, type ToolErrorCode } from "../../../protocol/executor-api.ts";
import { calledConversationId, calledRunId, operationId, turnId } from "../../../protocol/ids.ts";
import {
  RUN_CANCEL,
  RUN_START,
  RUN_WAITS,
  type RunCancelBody,
  type RunWaitsBody,
} from "../../../protocol/run-call.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { checkBudget } from "../../../shared/json-schema/violations.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import { cut, shorten, shortenToJson } from "../../../shared/text.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { userOf } from "./called-workflow.ts";
import { CALL_GRACE_MS } from "./conversation-limits.ts";
import { correlationOf } from "./correlation.ts";
import type { JournalEntry } from "./journal-entry.ts";
import {
  awaitsApproval,
  isOpen,
  isSent,
  type Operation,
  OUTCOME_UNKNOWN,
  waitsForPerson,
} from "./operation.ts";
import { pathTo } from "./planning/call-guards.ts";
import { targetInput } from "./planning/tool-call.ts";
import { answeredBy, shownCall } from "./shown-call.ts";
import {
  CALL_TURN,
  type CallOrigin,
  type ConversationIdentity,
  type ConversationState,
  chainOf,
} from "./state.ts";
import { templateOf } from "./sub-agents.ts";
import { operationTraceparent } from "./trace.ts";
import type { Transition } from "./transition.ts";
import { finalReply, openCalls, type Turn } from "./turn.ts";

/** Bytes of what an envelope has beside its body, and of what a call gets when it begins. */
const CALL_OVERHEAD_BYTES = 2 * 1024;

/** An envelope without its own id. */
export type CallEnvelope = Omit<NewEnvelope, "operationId">;

/** The conversation that a commit gives, with the number of its newest entry: what the commit sends is numbered by it. */
type Owing = Pick<ConversationState, "record" | "seq">;

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
      if (!isSent(operation)) continue;
      const earlier = known?.find(({ item }) => item === operation.item);
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
  for (const turn of touched) {
    if (turn.status === "active") envelopes.push(...holdOfTurn(after, before.active.get(turn.n), turn));
    else if (before.active.has(turn.n) || turn.n > before.turns)
      envelopes.push(...invitationResult(record, turn));
  }
  const { call: origin } = record;
  if (origin !== undefined) envelopes.push(...askEnvelopes(record, origin, before, { touched, entries }));
  if (origin !== undefined && after.status === "active") envelopes.push(...holdOf(before, after, origin));
  if (origin !== undefined && after.status !== "active") {
    const ended =
      before.status === "active" ? { ...endOf(changed.get(CALL_TURN)), spent: after.spent } : null;
    const spent = subtractAmounts(after.spent, before.spent);
    if (ended !== null) envelopes.push(resultEnvelope(record.tenant, origin, ended));
    else if (!isWithin(spent, NOTHING)) envelopes.push(resultEnvelope(record.tenant, origin, { spent }));
  }
  return envelopes;
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

/** Returns the messages of a conversation about its waits for a person, to its caller (HELD-2). */
function holdOf(before: ConversationState, after: ConversationState, origin: CallOrigin): CallEnvelope[] {
  const isHeld = ({ active }: ConversationState) =>
    [...active.values()].some(({ operations }) => operations.some((one) => isHeldFor(origin, one)));
  return holdMessage(after, origin, isHeld(before), isHeld(after));
}

/** Returns the message about a turn that a node of a run invited, to the run. */
function holdOfTurn(after: ConversationState, before: Turn | undefined, turn: Turn): CallEnvelope[] {
  const { invited, caller } = turn;
  if (invited === undefined || caller.type !== "workflow") return [];
  const { runId } = caller;
  const origin = { ...invited, from: runId, caller: { runId } };
  const isHeld = (known?: Turn) => known?.operations.some((one) => isHeldFor(origin, one)) ?? false;
  return holdMessage(after, origin, isHeld(before), isHeld(turn));
}

function holdMessage(
  { record, seq }: Owing,
  origin: Pick<CallOrigin, "operationId" | "attempt" | "from" | "caller">,
  before: boolean,
  isHeld: boolean,
): CallEnvelope[] {
  return before === isHeld ? [] : [toCaller(record.tenant, origin, RUN_WAITS, { isHeld, seq })];
}

/** Reports whether the caller must learn that an operation waits for a person. An agent learns of requests for approval by `agent.ask`. */
function isHeldFor({ caller }: Pick<CallOrigin, "caller">, operation: Operation): boolean {
  return "runId" in caller ? waitsForPerson(operation) : operation.hold?.isHeld === true;
}

/** Returns the bytes that a call takes in the outbox, at most. */
export function callBytes(state: Owing, turn: Turn, operation: Operation): number {
  return utf8Length(JSON.stringify(begin(state, turn, operation))) + CALL_OVERHEAD_BYTES;
}

/** Returns the requests for approval that begin or end with a commit, for the caller (ASK-1). */
function askEnvelopes(
  record: ConversationIdentity,
  origin: CallOrigin,
  { active }: ConversationState,
  { touched, entries }: { touched: readonly Turn[]; entries: Transition["entries"] },
): CallEnvelope[] {
  const envelopes: CallEnvelope[] = [];
  const tell = (ask: CallAsk, outcome?: AgentAskBody["outcome"]) =>
    envelopes.push(toCaller(record.tenant, origin, AGENT_ASK, { ask, ...defined({ outcome }) }));
  for (const turn of touched) {
    const answers = answersOf(turn, entries);
    for (const operation of turn.operations) {
      const earlier = active.get(turn.n)?.operations.find(({ item }) => item === operation.item);
      const [known, shown] = [asksOf(record, turn, earlier), asksOf(record, turn, operation)];
      const isIn = (asks: readonly CallAsk[], { operationId: id }: CallAsk) =>
        asks.some((ask) => ask.operationId === id);
      for (const ask of shown) if (!isIn(known, ask)) tell(ask);
      for (const ask of known) if (!isIn(shown, ask)) tell(ask, answers.get(ask.operationId) ?? "expired");
    }
  }
  return envelopes;
}

/** Returns the outcomes of requests of a turn that a commit notes, its own and those from below, by the id of the request. */
function answersOf(turn: Turn, entries: readonly JournalEntry[]): Map<string, ApprovalOutcome> {
  const notes = entries.filter(({ type, turn: n }) => type === "approval.resolved" && n === turn.n);
  return new Map(
    notes.map(({ item = 0, data }) => {
      // SAFETY: the reducers of approvals wrote the data, with `of` for a request from below.
      const { of, outcome } = data as unknown as { of?: AskView; outcome: ApprovalOutcome };
      return [of?.operationId ?? operationId(turn, item), outcome];
    }),
  );
}

/** Returns the requests for approval of an operation: its own, or those of the agent that it called. */
function asksOf(
  record: ConversationIdentity,
  turn: Turn,
  operation: Operation | undefined,
): readonly CallAsk[] {
  if (operation === undefined || !isOpen(operation)) return [];
  if (!awaitsApproval(operation)) return operation.agent?.asks ?? [];
  const { item, name, deadline = 0 } = operation;
  const ids = { operationId: operationId(turn, item), conversationId: record.id, agentId: turn.agentId };
  const { target, ...call } = shownCall(chainOf(record, turn.agentId), operation);
  const input = shownInput(call.input);
  const modelInput = input && call.modelInput && shownInput(call.modelInput);
  const shown = { ...defined({ input, modelInput, target }), ...answeredBy(record, turn, operation) };
  return [{ ...ids, name, ...shown, expiresAt: deadline }];
}

function isUnderWay(operation: Operation | undefined): boolean {
  return operation?.status === "dispatched";
}

/** Reports whether an open call ended without a message from its agent or its run: it was stopped, or its caller waited no longer. */
function isGivenUp(
  { status, target, result, completedAt = 0 }: Operation,
  { deadline = 0 }: Operation,
): boolean {
  if (status === "cancelled") return true;
  const { code, message = "" } = result?.error ?? {};
  if (target === "workflow" && message.startsWith(OUTCOME_UNKNOWN)) return true;
  return code === "TIMEOUT" && completedAt >= deadline;
}

/** Returns the envelope that begins a call. The run of a workflow reads the rest from the conversation. */
function begin(state: Owing, turn: Turn, operation: Operation): CallEnvelope {
  if (operation.target !== "workflow") return call(state, turn, operation);
  return toRun<CallAddress>(state.record, turn, operation, RUN_START, {});
}

/** Returns an envelope to the run of a call. */
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

function call({ record, seq }: Owing, turn: Turn, operation: Operation): CallEnvelope {
  const { agentId } = turn;
  const { agent, attempt, deadline = 0 } = operation;
  const caller = record.agents.find(({ id }) => id === agentId);
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
    ...defined({
      requester: userOf(record, turn),
      budget: agent?.budget,
      calls: agent?.calls,
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

/** Returns the result of a turn that a run waits for, to the run (RUNINVITE-2); nothing for other turns. */
function invitationResult({ tenant }: ConversationIdentity, turn: Turn): CallEnvelope[] {
  const { invited, caller } = turn;
  if (invited === undefined || caller.type !== "workflow") return [];
  const { runId } = caller;
  // The conversation keeps what the turn has used up.
  const ended = { ...endOf(turn), spent: NOTHING };
  return [resultEnvelope(tenant, { ...invited, from: runId, caller: { runId } }, ended)];
}

/** Returns the result of a call, to its caller. */
export function resultEnvelope(
  tenant: string,
  origin: Pick<CallOrigin, "operationId" | "attempt" | "from" | "caller">,
  ended: Omit<AgentResultBody, keyof CallAddress>,
): CallEnvelope {
  return toCaller(tenant, origin, AGENT_RESULT, ended);
}

/** Returns an envelope to the caller of the call that opened a conversation. */
function toCaller(
  tenant: string,
  { operationId, attempt, from, caller }: Pick<CallOrigin, "operationId" | "attempt" | "from" | "caller">,
  type: typeof AGENT_RESULT | typeof AGENT_ASK | typeof RUN_WAITS,
  content:
    | Omit<AgentResultBody, keyof CallAddress>
    | Omit<AgentAskBody, keyof CallAddress>
    | Omit<RunWaitsBody, keyof CallAddress>,
): CallEnvelope {
  const to = { kind: "runId" in caller ? "coordinator" : "conversation", tenant, id: from };
  return { to, type, body: jsonOf({ operationId, attempt, ...content }) };
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

function readersEnvelope({ record, seq }: Owing, turn: Turn, operation: Operation): CallEnvelope {
  const { item, attempt } = operation;
  const body: AgentReadersBody = {
    operationId: operationId(turn, item),
    attempt,
    readers: readersOf(record),
    readersSeq: seq,
  };
  return { ...toCalled(record, turn, operation), type: AGENT_READERS, body: jsonOf(body) };
}

/** Returns the end of a call from the turn that answered it; `undefined` if the call was stopped before a turn began. */
function endOf(turn: Turn | undefined): Pick<AgentResultBody, "outcome" | "large"> {
  const answer = turn && answerOf(turn);
  if (answer === undefined) return { outcome: failureOf(turn) };
  const text = inEnvelope(answer);
  return { outcome: { text }, ...(text === answer ? {} : { large: excerptOf(JSON.stringify(answer)) }) };
}

/** Returns the answer of the turn of a call; `undefined` without an answer. */
export function answerOf(turn: Turn): string | undefined {
  return turn.status === "completed" ? finalReply(turn)?.text : undefined;
}

function failureOf(turn: Turn | undefined): AgentOutcome {
  const { code = "CANCELLED", message = "The call was stopped.", retriable = false } = turn?.error ?? {};
  const written = (turn?.replies ?? [])
    .map(({ text }) => text.trim())
    .filter((text) => text !== "")
    .join("\n\n");
  const partial = inEnvelope(written);
  const known = toolCodeOf(code);
  const why = shortenToJson(message, MAX_REASON_BYTES);
  const error = { code: known, message: why, retriable: known === "EXECUTION_FAILED" || retriable };
  return { error, ...(partial === "" ? {} : { partial }) };
}

/** Shortens a text so that the envelope of a result has room for it. */
function inEnvelope(text: string): string {
  return shortenToJson(shorten(text, MAX_ANSWER_LENGTH), MAX_ANSWER_BYTES);
}

function toolCodeOf(code: string): ToolErrorCode {
  return TOOL_ERROR_CODES.find((one) => one === code) ?? "EXECUTION_FAILED";
}

function jsonOf(body: object): Json {
  // SAFETY: the bodies are plain data.
  return body as unknown as Json;
}
