/**
 * The spans of a run and of its nodes, derived from the entries of its journal. Pure.
 *
 * RUNSPAN-1  A run has a span once it is over, from its start to its end. After a retry, the next end of the run adds a span.
 * RUNSPAN-2  A node with work has a span once the work has ended: a task, a question to a person, a sub-workflow, a part of a fan-out, or an
 *            agent. The span has all attempts. After a retry of the run, the node gets another span.
 * RUNSPAN-3  Spans of runs have ids, names, counts and error codes only. They have no text of people, models or tools.
 */
import { type Span, type SpanAttributes, spanIdOf } from "../../../model/span.ts";
import type { RunEntry } from "../../../protocol/workflow-run.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { graphOf } from "./graph.ts";
import { childRunId, operationOf } from "./operations.ts";
import type { RunRecord } from "./record.ts";
import type { RunState } from "./state.ts";
import { correlationOf, nodeSpanId, traceOf } from "./trace.ts";
import { workOf } from "./work.ts";

export interface SpannedRow {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly entries: readonly RunEntry[];
}

/** The work of a token, since the token was made or the run was retried. */
interface OpenWork {
  readonly node: string;
  readonly from: number;
  readonly part: boolean;
  /** Attempts before the newest retry of the run. */
  readonly before: number;
  readonly attempt: number;
}

/** The time of a run since its start, or since its newest retry. */
interface RunTimes {
  readonly retries: number;
  readonly from: number;
}

export function endedSpans(before: RunState, { at, entries }: SpannedRow): Span[] {
  const { record, retried } = before;
  const open = (id: number): OpenWork | undefined => {
    const token = before.tokens.get(id);
    if (token?.phase.kind !== "working") return undefined;
    const { node, createdAt: from, part = false, again, phase } = token;
    return { node, from, part, before: again?.attempts ?? 0, attempt: phase.attempt };
  };
  const ended = new Set<number>();
  return entries.flatMap((entry) => {
    const { token } = entry;
    if (token === undefined)
      return runSpan(record, entry, { retries: 0, from: record.createdAt, ...retried }, at);
    const work = isEnd(entry) && !ended.has(token) ? open(token) : undefined;
    if (work === undefined) return [];
    ended.add(token);
    return nodeSpan(record, token, work, entry, at);
  });
}

/** Returns the spans of the finished work of a run, and the ids of the runs and conversations that its nodes opened. */
export function spansOf(
  record: RunRecord,
  rows: Iterable<SpannedRow>,
  maxSpans: number,
): { spans: Span[]; opened: string[]; hasInvited: boolean; isCut: boolean } {
  const spans: Span[] = [];
  const opened = new Set<string>();
  const works = new Map<number, OpenWork & { isOpen: boolean }>();
  let times: RunTimes = { retries: 0, from: record.createdAt };
  let hasInvited = false;
  for (const { at, entries } of rows)
    for (const entry of entries) {
      if (spans.length >= maxSpans) return { spans, opened: [...opened], hasInvited, isCut: true };
      const { type, token, node = "" } = entry;
      const data = isJsonObject(entry.data) ? entry.data : {};
      if (type === "workflow.retried") {
        times = { retries: times.retries + 1, from: at };
        for (const id of numbersIn(data.tokens)) {
          const work = works.get(id);
          if (work !== undefined) works.set(id, { ...work, from: at, before: work.attempt });
        }
      }
      if (token === undefined) {
        spans.push(...runSpan(record, entry, times, at));
        continue;
      }
      const known = works.get(token) ?? { node, from: at, part: false, before: 0, attempt: 0, isOpen: false };
      if (type === "token.created") works.set(token, known);
      if (type === "task.dispatched") {
        const attempt = typeof data.attempt === "number" ? data.attempt : 1;
        const part = typeof data.runId === "string";
        const kind = part ? "part" : workOf(record, { node })?.kind;
        if (kind === "part" || kind === "workflow") opened.add(childRunId(record, token, attempt));
        // An invited agent works in the conversation that started the run. That conversation is above the run.
        if (typeof data.conversationId === "string") {
          if (data.conversationId === record.origin?.conversationId) hasInvited = true;
          else opened.add(data.conversationId);
        }
        works.set(token, { ...known, part, attempt, isOpen: true, ...(kind === "agent" && { from: at }) });
      }
      if (type === "task.retried") works.set(token, { ...known, attempt: known.attempt + 1 });
      if (isEnd(entry) && known.isOpen) {
        spans.push(...nodeSpan(record, token, known, entry, at));
        works.set(token, { ...known, isOpen: false });
      }
    }
  return { spans, opened: [...opened], hasInvited, isCut: false };
}

function isEnd({ type }: RunEntry): boolean {
  return ENDS.has(type);
}

const ENDS: ReadonlySet<RunEntry["type"]> = new Set([
  "task.completed",
  "task.failed",
  "gate.answered",
  "gate.expired",
  "token.cancelled",
]);

function attributesOf(record: RunRecord): SpanAttributes {
  const { id, tenant, projectId, workflow } = record;
  return {
    "gen_ai.workflow.name": `${workflow.library}/${workflow.id}`,
    "dramatis.tenant": tenant,
    "dramatis.project.id": projectId,
    "dramatis.run.id": id,
    "dramatis.correlation.id": correlationOf(record),
  };
}

function runSpan(
  record: RunRecord,
  { type, data }: RunEntry,
  { retries, from }: RunTimes,
  at: number,
): Span[] {
  const status = /^workflow\.(completed|failed|cancelled|timed_out)$/.exec(type)?.[1];
  if (status === undefined) return [];
  const { traceId, spanId, parentSpanId } = traceOf(record);
  const { library, id } = record.workflow;
  return [
    {
      traceId,
      spanId: retries === 0 ? spanId : spanIdOf(`${record.id}:${retries}`),
      ...defined({ parentSpanId: retries === 0 ? parentSpanId : spanId }),
      name: `invoke_workflow ${library}/${id}`,
      kind: "internal",
      startedAt: from,
      endedAt: at,
      attributes: {
        ...attributesOf(record),
        "gen_ai.operation.name": "invoke_workflow",
        "dramatis.run.status": status,
        ...(record.part && { "dramatis.part.first": record.part.first }),
      },
      ...(status === "completed" ? {} : { error: codeOf(data) ?? status.toUpperCase() }),
    },
  ];
}

function nodeSpan(
  record: RunRecord,
  token: number,
  { node, from, part, before, attempt }: OpenWork,
  { type, data }: RunEntry,
  at: number,
): Span[] {
  const work = workOf(record, { node, ...(part && { part }) });
  if (work === undefined) return [];
  const { traceId, spanId: parentSpanId } = traceOf(record);
  const { agent = "" } = graphOf(record.workflow.definition).node(node);
  const below = record.workflow.workflows[node];
  const kinds = {
    task: ["execute_task", node],
    gate: ["await_input", node],
    workflow: ["invoke_workflow", `${below?.library}/${below?.id}`],
    part: ["run_part", node],
    agent: ["invoke_agent", agent],
  } as const;
  const [operation, name] = kinds[work.kind];
  const error = type === "token.cancelled" ? "CANCELLED" : codeOf(data);
  return [
    {
      traceId,
      spanId: nodeSpanId(record, token, before),
      parentSpanId,
      name: `${operation} ${name}`,
      kind: work.kind === "task" || work.kind === "gate" ? "internal" : "client",
      startedAt: from,
      endedAt: at,
      attributes: {
        ...attributesOf(record),
        "gen_ai.operation.name": operation,
        ...(work.kind === "agent" && { "gen_ai.agent.id": agent }),
        ...(work.kind === "task" && { "dramatis.task": `${work.task.library}/${work.task.id}` }),
        "dramatis.node": node,
        "dramatis.operation.id": operationOf(record, token),
        "dramatis.attempts": attempt - before,
        ...modelsOf(data),
      },
      ...defined({ error }),
    },
  ];
}

export function codeOf(data: Json | undefined): string | undefined {
  const error = isJsonObject(data) ? data.error : undefined;
  return isJsonObject(error) && typeof error.code === "string" ? error.code : undefined;
}

function modelsOf(data: Json | undefined): SpanAttributes {
  const task = isJsonObject(data) ? data.task : undefined;
  const models: JsonObject = isJsonObject(task) && isJsonObject(task.models) ? task.models : {};
  const count = (value: Json | undefined) => (typeof value === "number" ? value : undefined);
  return defined({
    "dramatis.task.model_calls": count(models.calls),
    "dramatis.task.input_tokens": count(models.inputTokens),
    "dramatis.task.output_tokens": count(models.outputTokens),
  });
}

function numbersIn(value: Json | undefined): number[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "number") : [];
}
