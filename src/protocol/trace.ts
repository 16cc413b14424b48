/** The trace of a turn or a run, as its readers see it: spans of work, in every conversation and run that it reached. */
import { z } from "zod";
import type { Span } from "../model/span.ts";
import { defined } from "../shared/defined.ts";
import { toIso } from "../shared/time.ts";
import { time } from "./scalars.ts";

const spanId = z
  .string()
  .regex(/^[0-9a-f]{16}$/)
  .meta({ example: "00f067aa0ba902b7" });

const spanSchema = z
  .strictObject({
    spanId,
    parentSpanId: spanId
      .meta({
        description: "It may be a span of the caller's, which is not in the list.",
        example: "00f067aa0ba902b7",
      })
      .exactOptional(),
    name: z.string().meta({ example: "chat gpt-5-mini" }),
    kind: z.enum(["internal", "client"]),
    startedAt: time,
    endedAt: time.describe("For open work, the time of the answer."),
    open: z
      .literal(true)
      .describe("The work continues, or waits for a person or another actor.")
      .exactOptional(),
    attributes: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]))
      .describe("Attributes of OpenTelemetry's GenAI conventions. They contain no text of people or models."),
    error: z.string().describe("The code of the final error.").exactOptional(),
  })
  .meta({
    id: "Span",
    description:
      "Work: a working period of a turn, a model call, a tool, a call of an agent, a run or a node of a run.",
  });

/** A span of OpenTelemetry. */
export type SpanView = z.infer<typeof spanSchema>;

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

export const traceSchema = z
  .strictObject({
    traceId: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .meta({ example: "4bf92f3577b34da6a3ce929d0e0e4736" }),
    spans: z.array(spanSchema).describe("In the order of their beginnings."),
    partial: z
      .boolean()
      .describe("Spans are missing: there are too many, or a conversation or a run could not be read."),
  })
  .meta({ id: "Trace", description: "The work of a turn or a run, with all that followed from it." });

/** A turn or a run with all that followed from it. */
export type TraceView = z.infer<typeof traceSchema>;

export function spanView({
  spanId,
  parentSpanId,
  name,
  kind,
  startedAt,
  endedAt,
  isOpen,
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
    ...defined({ open: isOpen }),
    // A span has read-only arrays, an answer does not.
    attributes: Object.fromEntries(
      Object.entries(attributes).map(([key, value]) => [key, typeof value === "object" ? [...value] : value]),
    ),
    ...defined({ error }),
  };
}
