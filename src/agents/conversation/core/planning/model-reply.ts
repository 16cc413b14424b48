/**
 * Planning after a model's reply: run its tool calls, accept its answer, or have the answer repaired.
 *
 * NATIVE-2  A reply's native parts are kept only if they match the stored reply. They are dropped if a notice replaces its text, if
 *           calls were dropped, and beyond `MAX_NATIVE_LENGTH`.
 * EMPTY-1  An empty reply is an empty message, and the turn has the issue `emptyReply`. A notice replaces an empty reply only in the call
 *          after the last move. The message is marked as a notice, because its words are the platform's.
 * OUTPUT-1  A turn with an output schema completes only with an answer that is JSON and fits the schema.
 * OUTPUT-2  An answer that does not fit is withdrawn, and the model gets the problem, at most `MAX_OUTPUT_REPAIRS` times a turn. Then
 *           the turn fails with `OUTPUT_INVALID`. It fails at once if the answer was cut off or refused.
 * OUTPUT-3  Only the answer's text is stored. Each read parses its data from the text.
 * TALK-4  In a turn that another agent started, the model may call `stay_silent`. The turn completes without a message, and other text and
 *         calls of the reply are dropped. Turns of users, and of calls, always answer. A silent agent has not spoken to the user
 *         (ADDRESS-2), and its own tool with that name replaces this tool.
 */
import { maxMovesPerTurn } from "../../../../library/personas/persona.ts";
import { isContinuable } from "../../../../model/joined-reply.ts";
import type { ModelReply } from "../../../../model/reply.ts";
import { joinTaints, taintMember, wholeTaint } from "../../../../model/taint.ts";
import type { ToolResult } from "../../../../protocol/executor-api.ts";
import { plainText } from "../../../../shared/content.ts";
import { defined } from "../../../../shared/defined.ts";
import { readAnswer } from "../../../../shared/json-schema/answer.ts";
import { checkBudget } from "../../../../shared/json-schema/violations.ts";
import { cut } from "../../../../shared/text.ts";
import { originOf } from "../caller.ts";
import {
  MAX_CALLS_PER_REPLY,
  MAX_NATIVE_LENGTH,
  MAX_NOTED_TURNS,
  MAX_OUTPUT_REPAIRS,
  MAX_WITHDRAWN_LENGTH,
  NOTICES,
} from "../conversation-limits.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { Operation } from "../operation.ts";
import { taintsAfter, wholeReply } from "../replies.ts";
import type { ModelCompleted } from "../signals.ts";
import { type ConversationState, chainOf } from "../state.ts";
import { taintOfText } from "../taints.ts";
import type { Addition, CallingTurn, Turn } from "../turn.ts";
import { openCalls } from "../turn-operations.ts";
import { declineIn, emptyAnswer, planDecline } from "./agent-call.ts";
import { endOfCycle } from "./background.ts";
import { toolCallsLeft } from "./budget.ts";
import { callRefusal, runRefusal } from "./call-guards.ts";
import { isStuck, type RepeatableCall } from "./repeats.ts";
import { planNext } from "./results.ts";
import { maySilence, STAY_SILENT } from "./silence-tool.ts";
import { excerpt } from "./speakers.ts";
import { checkToolCall, failure, overBudget, refusedCall } from "./tool-call.ts";
import { planMentions, type RecordedAttempt } from "./turn-taking.ts";

export function planModelReply(
  state: ConversationState,
  turn: CallingTurn,
  { reply: given, facts, recalled }: ModelCompleted,
  input: PlanInput,
): AgentDecision[] {
  const { n, call } = turn;
  const record: RecordedAttempt = {
    ...{ type: "RECORD_ATTEMPT", turn: n, facts, category: "none", isLast: true },
    ...defined({ recalled }),
  };
  const whole = wholeReply(turn, given);
  if (mayContinue(state, turn, whole)) return [record, { type: "CONTINUE_REPLY", turn: n, reply: whole }];
  const reply = ended(whole);
  if (reply.toolCalls.length === 0 || call.final)
    return [
      record,
      ...planAnswer(state, turn, reply, { record, input, isPaused: whole.finishReason === "paused" }),
    ];
  const silence = planSilence(state, turn, reply);
  if (silence !== undefined) return [record, ...silence];
  const decline = declineIn(state, turn, reply);
  if (decline !== undefined) return [record, ...planDecline(turn, reply, decline)];
  const toolCalls = reply.toolCalls.slice(0, MAX_CALLS_PER_REPLY);
  // An agent's messages in other turns belong to those turns.
  const isOfUser = turn.caller.type === "user";
  const isUnaware = isOfUser && state.turns > messageCursorOf(turn) && callsOnce(state, turn, toolCalls);
  const newer = isUnaware ? newerMessages(state, turn, input) : undefined;
  if (newer !== undefined) return [record, { type: "RECONSIDER", turn: n, ...newer }];
  const decisions: AgentDecision[] = [
    record,
    {
      type: "RECORD_MOVE",
      turn: n,
      reply: kept(reply, { text: reply.text, toolCalls }),
      ...(isUnaware ? { messageCursor: state.turns } : {}),
    },
  ];
  const used = new Set(turn.operations.map(({ toolCallId }) => toolCallId));
  const budget = checkBudget();
  const taint = wholeTaint(taintsAfter(turn, facts));
  const pending: Pick<Operation, "target" | "status">[] = [];
  const operations: RepeatableCall[] = [...turn.operations];
  const left = toolCallsLeft(state, turn);
  let ran = 0;
  const open: Pick<Operation, "input" | "agent">[] = [...state.active.values()].flatMap(openCalls);
  for (const [index, toolCall] of toolCalls.entries()) {
    const id = unusedId(toolCall.id, used);
    const checked = checkToolCall(state.record, turn, toolCall, { toolCallId: id, taint }, input, budget);
    const isBeyond = checked.result === undefined && ran >= left;
    const refusal = isBeyond
      ? null
      : (excessCall(turn, index, id) ??
        callRefusal(state.record, turn, checked, open, input.calls) ??
        runRefusal(state.record, turn, checked, input.calls));
    const allowed = refusal === null ? checked : refusedCall(checked, refusal);
    const operation = isBeyond ? overBudget(checked) : allowed;
    if (operation.result === undefined) ran += 1;
    if (operation.agent?.mode === "delegate") open.push(operation);
    if (operation.result === undefined && operation.mode === "sync") pending.push(operation);
    operations.push({ ...operation, reply: turn.replies.length });
    decisions.push({ type: "DISPATCH_TASK", turn: n, operation });
  }
  return [...decisions, ...planNext(state, { ...turn, operations }, pending, turn.replies.length + 1)];
}

/** Returns the refusal of a further call if the turn allows a single call (SINGLECALL-1); `null` for an allowed call. */
function excessCall({ singleCalls }: Turn, index: number, toolCallId: string): ToolResult | null {
  if (singleCalls === undefined || index === 0) return null;
  const message =
    "One call at a time is allowed here, so this call did not run. Repeat it in your next reply.";
  return failure(toolCallId, "INVALID_INPUT", message);
}

/** Reports whether a reply calls a tool of the agent that must not run twice. */
function callsOnce(
  { record }: ConversationState,
  { agentId }: Turn,
  calls: ModelReply["toolCalls"],
): boolean {
  const once = chainOf(record, agentId).tools.filter(({ definition }) => definition.effect === "once");
  return calls.some((call) => once.some(({ definition }) => definition.name === call.name));
}

/** Reports whether a reply must be continued (PAUSE-2). A reply with parts that are too long to keep cannot be continued. */
function mayContinue(
  { record }: ConversationState,
  { agentId, call, replies, continuations = 0 }: CallingTurn,
  reply: ModelReply,
): boolean {
  if (call.final || !isContinuable(reply, continuations)) return false;
  const moves = maxMovesPerTurn(chainOf(record, agentId).persona.definition);
  return replies.length + continuations + 1 < moves && fits(reply.native);
}

/** Returns a reply that is not continued. The parts of a paused one do not go back: they may wait for a continuation. */
function ended({ native, ...reply }: ModelReply): ModelReply {
  if (reply.finishReason === "paused") return { ...reply, finishReason: "other" };
  return { ...reply, ...defined({ native }) };
}

/** Ends the turn or its cycle with an answer, repairs the answer, or fails the turn. */
function planAnswer(
  state: ConversationState,
  turn: CallingTurn,
  reply: ModelReply,
  { record, input, isPaused }: { record: RecordedAttempt; input: PlanInput; isPaused: boolean },
): AgentDecision[] {
  const { n, call, output, repairs = [] } = turn;
  const empty = emptyAnswer(state, turn, reply);
  if (empty !== null) return [{ type: "FAIL_TURN", turn: n, error: empty }];
  const answer = output === undefined ? reply : readAnswer(output.schema, reply.text);
  if ("text" in answer) {
    const exhausted = isStuck(turn.operations, turn.replies.length) ? "callsRepeated" : "movesExhausted";
    const isEmpty = answer.text.trim() === "";
    const hasNotice = isEmpty && call.final;
    const text = hasNotice ? NOTICES[exhausted] : answer.text;
    const mentions = planMentions(state, turn, { text, record }, input);
    const issues = {
      ...(isEmpty && !hasNotice ? { emptyReply: true as const } : {}),
      ...(isPaused ? { replyPaused: true as const } : {}),
    };
    return [
      {
        type: "APPEND_MESSAGE",
        turn: n,
        reply: kept(reply, { text, toolCalls: [] }),
        ...(hasNotice ? { notice: true } : {}),
        ...(Object.keys(issues).length === 0 ? {} : { issues }),
      },
      ...mentions.before,
      endOfCycle(state, turn),
      ...mentions.after,
    ];
  }
  const { problem } = answer;
  const fail = (message: string): AgentDecision[] => [
    { type: "FAIL_TURN", turn: n, error: { code: "OUTPUT_INVALID", message, retriable: true } },
  ];
  if (reply.finishReason === "length")
    return fail(
      "The model's answer was cut off before it was complete: allow it more output, or ask for less.",
    );
  if (reply.finishReason === "content_filter") return fail("The model refused to answer.");
  if (repairs.length >= MAX_OUTPUT_REPAIRS)
    return fail(`The model's answer does not fit the schema after ${repairs.length + 1} tries: ${problem}`);
  const text = cut(reply.text, MAX_WITHDRAWN_LENGTH);
  return [{ type: "REPAIR_OUTPUT", turn: n, text, problem }];
}

/** Returns the reply as it is recorded (NATIVE-2). */
function kept(reply: ModelReply, parts: Pick<ModelReply, "text" | "toolCalls">): ModelReply {
  const { native, ...rest } = reply;
  const isWhole = parts.text === reply.text && parts.toolCalls.length === reply.toolCalls.length;
  return { ...rest, ...parts, ...(isWhole && fits(native) ? defined({ native }) : {}) };
}

function fits(native: ModelReply["native"]): boolean {
  return native === undefined || JSON.stringify(native).length <= MAX_NATIVE_LENGTH;
}

/** Makes the id of a tool call unique in its turn: results are matched to calls by id. */
function unusedId(given: string, used: Set<string>): string {
  let id = given;
  for (let suffix = 2; used.has(id); suffix++) id = `${given}_${suffix}`;
  used.add(id);
  return id;
}

/** The part of an addition that does not depend on its place. */
type Newer = Omit<Addition, "after">;

/** Returns the number of the newest turn that a turn's model has seen; at first its own number. */
function messageCursorOf({ n, messageCursor = n }: Pick<Turn, "n" | "messageCursor">): number {
  return messageCursor;
}

/** Returns newer messages of a turn's caller; `undefined` without newer messages. */
function newerMessages(
  state: ConversationState,
  turn: Turn,
  { turns }: Pick<PlanInput, "turns">,
): Newer | undefined {
  const messageCursor = messageCursorOf(turn);
  const later = [...state.active.values()].filter(({ n }) => n > messageCursor);
  const own = later.filter(({ caller }) => originOf(caller) === originOf(turn.caller)).map(({ n }) => n);
  const areAllActive = later.length === state.turns - messageCursor;
  const stored = areAllActive ? [] : (turns?.after(messageCursor, turn.caller) ?? []);
  const numbers = [...new Set([...own, ...stored])].sort((one, other) => one - other);
  if (numbers.length === 0) return undefined;
  const newest = numbers.slice(-MAX_NOTED_TURNS).flatMap((n) => state.active.get(n) ?? turns?.turn(n) ?? []);
  const messages = newest.map(({ input }) => excerpt(plainText(input)));
  const earlier = numbers.length - messages.length;
  const taint = joinTaints(...newest.map(taintOfText));
  return { messages, ...(earlier === 0 ? {} : { earlier }), ...taintMember(taint) };
}

/** Plans the end of a turn, or of its cycle, without a message; `undefined` if the reply does not ask for it. */
function planSilence(
  state: ConversationState,
  turn: CallingTurn,
  { toolCalls }: Pick<ModelReply, "toolCalls">,
): AgentDecision[] | undefined {
  if (!toolCalls.some(({ name }) => name === STAY_SILENT.name) || !maySilence(state.record, turn))
    return undefined;
  const end = endOfCycle(state, turn);
  return [
    { type: "STAY_SILENT", turn: turn.n, ...(end.type === "COMPLETE_TURN" ? { silent: true } : {}) },
    end,
  ];
}
