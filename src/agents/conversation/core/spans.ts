/**
 * The spans of a turn, with the attributes of OpenTelemetry's GenAI conventions. Pure.
 *
 * SPANS-1  A span is made from stored data when its work is over, so waiting work has no open span. Only a crash between the commit and the
 *          export loses spans.
 * SPANS-2  A turn has a span for each period of work, without waits. Each model call, tool and agent call has a span, from its request to
 *          its result. The span of a deferred call ends with its tool. Client tools have no span.
 * SPANS-5  A wait for a person's approval has its own span, from the request to its end. After a wait, the spans of a turn are numbered
 *          from 2.
 * SPANS-3  Only spans of model calls have `gen_ai.usage.*`, so the sum over a trace equals the providers' counts. The model use of a task's
 *          steps is in `dramatis.task.*` of its tool.
 * SPANS-4  Spans have no text of people, models or tools: ids, names, counts and codes of errors only. A tool that the agent does not have
 *          is `unknown`, because the model made up its name. Ids of providers are cut.
 * SPANS-6  For a reader, open work of an active turn has a span up to the time of the reading. It is not exported.
 */
import { profileAt } from "../../../library/definitions/version-chain.ts";
import { costOf } from "../../../model/cost.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { type Span, type SpanAttributes, spanIdOf } from "../../../model/span.ts";
import { operationId, sideCallId, turnId } from "../../../protocol/ids.ts";
import { defined } from "../../../shared/defined.ts";
import { shorten } from "../../../shared/text.ts";
import { openRecord } from "./calls.ts";
import { correlationOf } from "./correlation.ts";
import { awaitsApproval, type Operation } from "./operation.ts";
import { sideProfile } from "./side-calls.ts";
import { type ConversationIdentity, chainOf } from "./state.ts";
import {
  approvalSpanId,
  callSpanId,
  operationSpanId,
  type TracedTurn,
  traceOf,
  workSpanId,
} from "./trace.ts";
import type { ClosedSideCall } from "./transition.ts";
import type { AttemptsRecord, CallRecord, Turn } from "./turn.ts";
import { workTimes } from "./work-times.ts";

/** Returns the spans of a turn up to the time `now`, with its open work (SPANS-6). */
export function spansUpTo(record: ConversationIdentity, turn: Turn, now: number): Span[] {
  if (turn.status !== "active") return spansOf(record, turn);
  const { call, calls = [] } = turn;
  // A call has a record after its first attempt.
  const first = call === null || openRecord(turn) !== undefined ? [] : [firstAttempt(call)];
  return spansOf(record, { ...turn, calls: [...calls, ...first] }, new Set(), now);
}

function firstAttempt({ item, profile = 0, notBefore: startedAt }: NonNullable<Turn["call"]>): CallRecord {
  return { item, profile, startedAt, attempts: 1, category: "unknown" };
}

/** Returns the finished spans of a turn, except spans of calls and operations in `but`. With a time `until`, also its open spans. */
export function spansOf(
  record: ConversationIdentity,
  turn: Turn,
  but: ReadonlySet<CallRecord | Operation> = new Set(),
  until?: number,
): Span[] {
  return [
    ...workSpans(record, turn, until),
    ...(turn.calls ?? []).flatMap((call, index) =>
      but.has(call) ? [] : callSpan(record, turn, call, index, until),
    ),
    // The calls that the turn took over have their spans in the old turn.
    ...turn.operations.flatMap((operation) =>
      but.has(operation) || operation.reply < (turn.taken ?? 0)
        ? []
        : [...approvalSpan(record, turn, operation, until), ...operationSpan(record, turn, operation, until)],
    ),
  ];
}

/** Returns the spans of a turn that have ended since it was as `before`. */
export function endedSpans(record: ConversationIdentity, before: Turn | undefined, turn: Turn): Span[] {
  if (before === undefined) return spansOf(record, turn);
  // An unchanged object is identical: its spans ended before, or are still open.
  const same = new Set<CallRecord | Operation>([
    ...common(before.calls ?? [], turn.calls ?? []),
    ...common(before.operations, turn.operations),
  ]);
  const known = new Set(spansOf(record, before, same).map(({ spanId }) => spanId));
  return spansOf(record, turn, same).filter(({ spanId }) => !known.has(spanId));
}

/** Returns the span of a side call, which the end of a turn began. */
export function sideSpan(
  record: ConversationIdentity,
  turn: SpannedTurn,
  { record: call, ...place }: Pick<ClosedSideCall, "session" | "title" | "record">,
): Span[] {
  const { traceId, spanId: parentSpanId } = traceOf(turn);
  const spanId = spanIdOf(sideCallId(turn, place));
  return chatSpan(record, turn, { traceId, parentSpanId, spanId }, sideProfile(record, place), call);
}

/** Returns what two lists have in common. */
function common<Item>(one: readonly Item[], other: readonly Item[]): Item[] {
  const known = new Set(one);
  return other.filter((item) => known.has(item));
}

/** A turn, as far as all of its spans depend on it. */
type SpannedTurn = TracedTurn & Pick<Turn, "agentId" | "correlationId">;

type Place = Pick<Span, "traceId" | "spanId" | "parentSpanId">;

function attributesOf({ id, tenant, projectId }: ConversationIdentity, turn: SpannedTurn): SpanAttributes {
  return {
    "gen_ai.conversation.id": id,
    "dramatis.tenant": tenant,
    "dramatis.project.id": projectId,
    "dramatis.turn.id": turnId(turn),
    "dramatis.correlation.id": correlationOf(turn),
  };
}

function workSpans(record: ConversationIdentity, turn: Turn, until?: number): Span[] {
  const { agentId, error, status } = turn;
  const { traceId, spanId: first, parentSpanId } = traceOf(turn);
  const times = workTimes(turn);
  const { name } = chainOf(record, agentId).persona.definition;
  return times.flatMap(({ from, to: end }, index) => {
    const to = end ?? until;
    if (to === undefined) return [];
    const isLast = status !== "active" && index === times.length - 1;
    return {
      traceId,
      spanId: workSpanId(turn, index),
      ...defined({ parentSpanId: index === 0 ? parentSpanId : first }),
      name: `invoke_agent ${agentId}`,
      kind: "internal",
      ...timesOf(from, to, end === undefined),
      attributes: {
        ...attributesOf(record, turn),
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": agentId,
        ...(name === undefined ? {} : { "gen_ai.agent.name": name }),
        ...(index === 0 ? {} : { "dramatis.turn.part": index + 1 }),
        ...(isLast
          ? { "dramatis.turn.status": status, "dramatis.turn.duration_ms": to - turn.createdAt }
          : {}),
      },
      ...(isLast ? defined({ error: error?.code }) : {}),
    };
  });
}

/** Returns the times of a span. Clocks may differ: a span never ends before it starts. */
function timesOf(startedAt: number, endedAt: number, isOpen: boolean) {
  return { startedAt, endedAt: Math.max(startedAt, endedAt), ...(isOpen ? { isOpen } : {}) };
}

/** Returns the span of the work period that contains a time; the first span outside all periods. */
function workSpanAt(turn: Turn, at: number): string {
  const times = workTimes(turn);
  const index = times.findIndex(({ from, to }) => from <= at && (to === undefined || at <= to));
  return workSpanId(turn, Math.max(0, index));
}

function callSpan(
  record: ConversationIdentity,
  turn: Turn,
  call: CallRecord,
  index: number,
  until?: number,
): Span[] {
  const profile = profileAt(chainOf(record, turn.agentId), call.profile);
  if (profile === undefined) return [];
  const reply = turn.replies.find(({ item }) => item === call.item);
  const place = {
    traceId: traceOf(turn).traceId,
    spanId: callSpanId(turn, index),
    parentSpanId: workSpanAt(turn, call.startedAt),
  };
  return chatSpan(record, turn, place, profile, call, { finishReason: reply?.finishReason, until });
}

function chatSpan(
  record: ConversationIdentity,
  turn: SpannedTurn,
  place: Place,
  profile: ModelProfile,
  { startedAt, finishedAt, usage, estimate, category, attempts, requestId, status }: AttemptsRecord,
  { finishReason, until }: { finishReason?: string | undefined; until?: number | undefined } = {},
): Span[] {
  const endedAt = finishedAt ?? until;
  if (endedAt === undefined) return [];
  const cost = usage && costOf(usage, profile);
  const counts = defined({
    "gen_ai.usage.input_tokens": usage?.inputTokens,
    "gen_ai.usage.output_tokens": usage?.outputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage?.cachedInputTokens,
    "gen_ai.usage.cache_creation.input_tokens": usage?.cacheWriteTokens,
    "dramatis.usage.estimated_tokens": estimate && estimate.inputTokens + estimate.outputTokens,
    "dramatis.cost.usd": cost,
    "http.response.status_code": status,
    "dramatis.request.id": requestId && shorten(requestId, MAX_PROVIDER_ID_LENGTH),
  });
  return [
    {
      ...place,
      name: `chat ${profile.modelId}`,
      kind: "client",
      ...timesOf(startedAt, endedAt, finishedAt === undefined),
      attributes: {
        ...attributesOf(record, turn),
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": PROVIDERS[profile.provider] ?? profile.provider,
        "gen_ai.request.model": profile.modelId,
        "gen_ai.agent.id": turn.agentId,
        "dramatis.attempts": attempts,
        ...counts,
        ...(finishReason === undefined ? {} : { "gen_ai.response.finish_reasons": [finishReason] }),
      },
      ...(category === "none" || finishedAt === undefined ? {} : { error: category }),
    },
  ];
}

/** Provider names of the conventions that differ from the names here. */
const PROVIDERS: Readonly<Record<string, string>> = { gemini: "gcp.gemini", "openai-responses": "openai" };

/** The name of a tool that the agent does not have (SPANS-4). */
const UNKNOWN_TOOL = "unknown";

/** UTF-16 units of an id that a provider gives. */
const MAX_PROVIDER_ID_LENGTH = 64;

/** Returns the span of the wait for a person (SPANS-5). */
function approvalSpan(
  record: ConversationIdentity,
  turn: Turn,
  operation: Operation,
  until?: number,
): Span[] {
  const { item, name, toolCallId, approval } = operation;
  const endedAt = approval?.at ?? (awaitsApproval(operation) ? until : undefined);
  if (endedAt === undefined) return [];
  const requested = turn.replies[operation.reply]?.at ?? turn.createdAt;
  return [
    {
      traceId: traceOf(turn).traceId,
      spanId: approvalSpanId(turn, item),
      parentSpanId: workSpanAt(turn, requested),
      name: `await_approval ${name}`,
      kind: "internal",
      ...timesOf(Math.min(requested, endedAt), endedAt, approval === undefined),
      attributes: {
        ...attributesOf(record, turn),
        "gen_ai.operation.name": "await_approval",
        "gen_ai.agent.id": turn.agentId,
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": shorten(toolCallId, MAX_PROVIDER_ID_LENGTH),
        "dramatis.operation.id": operationId(turn, item),
        ...defined({ "dramatis.approval.outcome": approval?.outcome }),
      },
    },
  ];
}

function operationSpan(
  record: ConversationIdentity,
  turn: Turn,
  operation: Operation,
  until?: number,
): Span[] {
  const { item, tool, target, agent, toolCallId, attempt, approval, result, completedAt, deferredAt, task } =
    operation;
  const isOpen = until !== undefined && completedAt === undefined;
  const endedAt = isOpen ? until : (deferredAt ?? completedAt);
  if (target === "client" || awaitsApproval(operation) || endedAt === undefined) return [];
  // A call without approval has not run.
  if (approval !== undefined && approval.outcome !== "approved") return [];
  const requested = turn.replies[operation.reply]?.at ?? turn.createdAt;
  const startedAt = Math.min(endedAt, Math.max(requested, approval?.at ?? 0));
  const called = agent?.mode === "delegate" ? agent.id : undefined;
  const name = tool === null ? UNKNOWN_TOOL : operation.name;
  const error = deferredAt === undefined ? (result?.error?.code ?? failureOf(result)) : undefined;
  return [
    {
      traceId: traceOf(turn).traceId,
      spanId: operationSpanId(turn, item),
      parentSpanId: workSpanAt(turn, requested),
      name: called === undefined ? `execute_tool ${name}` : `invoke_agent ${called}`,
      kind: called === undefined ? "internal" : "client",
      ...timesOf(startedAt, endedAt, isOpen),
      attributes: {
        ...attributesOf(record, turn),
        "gen_ai.operation.name": called === undefined ? "execute_tool" : "invoke_agent",
        "gen_ai.agent.id": called ?? turn.agentId,
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": shorten(toolCallId, MAX_PROVIDER_ID_LENGTH),
        "dramatis.operation.id": operationId(turn, item),
        "dramatis.attempts": attempt,
        ...(deferredAt === undefined ? {} : { "dramatis.deferred": true }),
        ...defined({
          "dramatis.task.model_calls": task?.models?.calls,
          "dramatis.task.input_tokens": task?.models?.inputTokens,
          "dramatis.task.output_tokens": task?.models?.outputTokens,
        }),
      },
      ...defined({ error }),
    },
  ];
}

function failureOf(result: Operation["result"]): string | undefined {
  return result?.success === false ? "EXECUTION_FAILED" : undefined;
}
