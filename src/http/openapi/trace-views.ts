/** Schemas of traces. */
import { z } from "zod";
import { time } from "../../protocol/scalars.ts";
import type { SpanView, TraceView } from "../../protocol/trace.ts";

const spanId = z
  .string()
  .regex(/^[0-9a-f]{16}$/)
  .meta({ example: "00f067aa0ba902b7" });

const span: z.ZodType<SpanView> = z
  .strictObject({
    spanId,
    parentSpanId: z.exactOptional(
      spanId.meta({
        description: "It may be a span of the caller's, which is not in the list.",
        example: "00f067aa0ba902b7",
      }),
    ),
    name: z.string().meta({ example: "chat gpt-5-mini" }),
    kind: z.enum(["internal", "client"]),
    startedAt: time,
    endedAt: time,
    attributes: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]))
      .meta({
        description:
          "Attributes of OpenTelemetry's GenAI conventions. They contain no text of people or models.",
      }),
    error: z.exactOptional(z.string().meta({ description: "The code of the error with which it ended." })),
  })
  .meta({
    id: "Span",
    description:
      "Finished work: a working period of a turn, a model call, a tool, a call of an agent, a run or a node of a run.",
  });

export const trace: z.ZodType<TraceView> = z
  .strictObject({
    traceId: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .meta({ example: "4bf92f3577b34da6a3ce929d0e0e4736" }),
    spans: z.array(span).meta({ description: "In the order of their beginnings." }),
    partial: z.boolean().meta({
      description: "Spans are missing: there are too many, or a conversation or a run could not be read.",
    }),
  })
  .meta({ id: "Trace", description: "The work of a turn or a run, with all that followed from it." });
