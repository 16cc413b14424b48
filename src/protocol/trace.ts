/** The trace of a turn, as its readers see it: spans of the work that is over, in every conversation that the turn reached. */

/** A span of OpenTelemetry: a time in which a turn worked, a model call, a tool, or a call of an agent. */
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

/** The part of a trace that one conversation has. */
export interface TracePart {
  /** 32 hexadecimal digits. */
  traceId: string;
  spans: SpanView[];
  /** The conversations that the turns opened by calls of agents. */
  opened: string[];
  /** Some of its spans are left out. */
  partial?: boolean;
}

/** A turn with all that followed from it. */
export interface TraceView extends Pick<TracePart, "traceId" | "spans"> {
  /** `true` if spans are missing: there are too many, or a conversation could not be read. */
  partial: boolean;
}
