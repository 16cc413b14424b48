/**
 * Spans as OTLP, in its JSON encoding. A collector receives them at `/v1/traces`. Pure.
 *
 * OTLP-1  Ids are hexadecimal, times are whole nanoseconds as text, whole numbers are `intValue` as text.
 */
import type { Span, SpanAttributes } from "../../model/span.ts";

/** Values of the enum `SpanKind`. */
const KINDS = { internal: 1, client: 3 } as const satisfies Record<Span["kind"], number>;

/** A value of the enum `StatusCode`. */
const ERROR = 2;

type AttributeValue = SpanAttributes[string];

export function otlpBody(spans: readonly Span[], serviceName: string): object {
  const resource = { attributes: attributesOf({ "service.name": serviceName }) };
  return {
    resourceSpans: [{ resource, scopeSpans: [{ scope: { name: "dramatis" }, spans: spans.map(spanOf) }] }],
  };
}

function spanOf({
  traceId,
  spanId,
  parentSpanId,
  name,
  kind,
  startedAt,
  endedAt,
  attributes,
  error,
}: Span): object {
  return {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(startedAt),
    endTimeUnixNano: nanoseconds(endedAt),
    attributes: attributesOf(error === undefined ? attributes : { ...attributes, "error.type": error }),
    ...(error === undefined ? {} : { status: { code: ERROR, message: error } }),
  };
}

function nanoseconds(milliseconds: number): string {
  return String(BigInt(Math.round(milliseconds)) * 1_000_000n);
}

function attributesOf(attributes: SpanAttributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: typedValue(value) }));
}

function typedValue(value: AttributeValue): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value !== "number")
    return { arrayValue: { values: value.map((one) => ({ stringValue: one })) } };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
