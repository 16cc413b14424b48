/** The trace of a turn or a run, as its readers see it: spans of finished work, in every conversation and run that it reached. */
import type { Span } from "../model/span.ts";
import { defined } from "../shared/defined.ts";
import { toIso } from "../shared/time.ts";

/** A span of OpenTelemetry. It covers a working period of a turn, a model call, a tool, a call of an agent, a run, or a node of a run. */
export interface SpanView {
  /** 16 hexadecimal digits. */
  spanId: string;
  /** Absent for the first span of a trace. It may be one of the caller's, which the trace does not contain. */
  parentSpanId?: string;
  name: string;
  kind: "internal" | "client";
  /** ISO 8601 UTC. */
  startedAt: string;
  endedAt: string;
  attributes: Record<string, string | number | boolean | string[]>;
  /** The code of the error with which it ended; absent after a success. */
  error?: string;
}

/** The part of a trace in a conversation or a run. */
export interface TracePart {
  /** 32 hexadecimal digits. */
  traceId: string;
  spans: SpanView[];
  /** The ids of the conversations and the runs that its calls opened. */
  opened: string[];
  /** The turns that the nodes of a run started in the conversation that started the run. Absent without such turns. */
  invited?: InvitedTurns;
  /** Some of its spans are left out. */
  partial?: boolean;
}

/** Turns of a conversation that a run invited, after the turn that called its tool. */
export interface InvitedTurns {
  conversationId: string;
  turnId: string;
  runId: string;
}

/** A turn or a run with all that followed from it. */
export interface TraceView extends Pick<TracePart, "traceId" | "spans"> {
  /** `true` if spans are missing: there are too many, or a conversation could not be read. */
  partial: boolean;
}

/** Returns a span as readers get it. */
export function spanView({
  spanId,
  parentSpanId,
  name,
  kind,
  startedAt,
  endedAt,
  attributes,
  error,
}: Span): SpanView {
  return {
    spanId,
    ...defined({ parentSpanId }),
    name,
    kind,
    startedAt: toIso(startedAt),
    endedAt: toIso(endedAt),
    // A span has read-only arrays, an answer does not.
    attributes: Object.fromEntries(
      Object.entries(attributes).map(([key, value]) => [key, typeof value === "object" ? [...value] : value]),
    ),
    ...defined({ error }),
  };
}
