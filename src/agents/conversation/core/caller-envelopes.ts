/**
 * The envelopes of a commit to the caller of a conversation: a run, or the conversation of another agent. Pure.
 *
 * DELEGATE-10  A result always fits into its envelope, so it cannot fail the commit that ends the call. The envelope has an excerpt of a
 *             longer answer, and the caller reads the whole answer.
 * HELD-2  A conversation that a run or an agent called informs its caller when a wait for a person begins, and when it ends.
 * DELEGATE-8  A conversation that a call opened sends its caller one result when it ends. It reports the later spending of calls below it
 *             in later envelopes.
 */
import { excerptOf } from "../../../attachments/large-result.ts";
import { isWithin, NOTHING, subtractAmounts } from "../../../model/spending.ts";
import {
  AGENT_ASK,
  AGENT_RESULT,
  type AgentAskBody,
  type AgentOutcome,
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
import { operationId } from "../../../protocol/ids.ts";
import { RUN_WAITS, type RunWaitsBody } from "../../../protocol/run-call.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { shorten, shortenToJson } from "../../../shared/text.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { awaitsApproval, isOpen, type Operation, waitsForPerson } from "./operation.ts";
import { answeredBy, shownCall } from "./shown-call.ts";
import {
  CALL_TURN,
  type CallOrigin,
  type ConversationIdentity,
  type ConversationState,
  chainOf,
} from "./state.ts";
import type { Transition } from "./transition.ts";
import type { Turn } from "./turn.ts";
import { finalReply } from "./turn-operations.ts";

/** An envelope without its own id. */
export type CallEnvelope = Omit<NewEnvelope, "operationId">;

/** A conversation after a commit. The number of its newest entry numbers the envelopes of the commit. */
export type CommittedState = Pick<ConversationState, "record" | "seq">;

/** Returns the waits, requests for approval and results that a commit owes to callers. */
export function callerEnvelopes(
  before: ConversationState,
  after: ConversationState,
  { touched: changed, entries }: Pick<Transition, "touched" | "entries">,
): CallEnvelope[] {
  const touched = [...changed.values()];
  const { record } = after;
  const envelopes: CallEnvelope[] = [];
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
  { record, seq }: CommittedState,
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

/** Returns the requests for approval of an operation, including the requests of its called agent. */
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

/** Returns the result of a turn that a run waits for (RUNINVITE-2); an empty list for other turns. */
function invitationResult({ tenant }: ConversationIdentity, turn: Turn): CallEnvelope[] {
  const { invited, caller } = turn;
  if (invited === undefined || caller.type !== "workflow") return [];
  const { runId } = caller;
  // The use stays with the conversation.
  const ended = { ...endOf(turn), spent: NOTHING };
  return [resultEnvelope(tenant, { ...invited, from: runId, caller: { runId } }, ended)];
}

export function resultEnvelope(
  tenant: string,
  origin: Pick<CallOrigin, "operationId" | "attempt" | "from" | "caller">,
  ended: Omit<AgentResultBody, keyof CallAddress>,
): CallEnvelope {
  return toCaller(tenant, origin, AGENT_RESULT, ended);
}

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

/** Returns the end of a call from the turn that answered it; `undefined` if the call was stopped before a turn began. */
function endOf(turn: Turn | undefined): Pick<AgentResultBody, "outcome" | "large"> {
  const answer = turn && answerOf(turn);
  if (answer === undefined) return { outcome: failureOf(turn) };
  const text = inEnvelope(answer);
  return { outcome: { text }, ...(text === answer ? {} : { large: excerptOf(JSON.stringify(answer)) }) };
}

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

export function jsonOf(body: object): Json {
  // SAFETY: the bodies are plain data.
  return body as unknown as Json;
}
