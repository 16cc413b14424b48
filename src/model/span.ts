/**
 * Spans of OpenTelemetry, as data: the work and the times of a turn, a model call, a tool or a call of an agent. Pure.
 *
 * SPAN-1  The ids of traces and spans derive from the ids of the described work. The same work has the same ids in each actor and after a
 *         crash, so no row has to store them.
 * SPAN-2  A `traceparent` that is not in the form of W3C Trace Context, or has more than 200 characters, is ignored. From a valid value,
 *         only the ids and the sampling flag are kept.
 */

/** A place in a trace: the parent of the spans below it. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  /** `false`: spans of this trace are not exported. */
  isSampled: boolean;
}

/** `client`: it waits for another actor or service. */
export type SpanKind = "internal" | "client";

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** A span that is over, or, with `isOpen`, that continues after `endedAt`. Only readers get open spans. */
export interface Span extends Omit<TraceContext, "isSampled"> {
  /** Absent for the first span of a trace. */
  parentSpanId?: string;
  name: string;
  kind: SpanKind;
  /** Milliseconds since the epoch. */
  startedAt: number;
  endedAt: number;
  isOpen?: true;
  attributes: SpanAttributes;
  /** The error code of a failure. Absent after a success. */
  error?: string;
}

/**
 * Sends spans somewhere. It receives the spans of each commit that ends spans. Spans that end during an export form the next batch. Its
 * errors are logged, and the spans are lost. `signal` aborts at the time limit of an export.
 */
export interface SpanExporter {
  export(spans: readonly Span[], signal: AbortSignal): Promise<void> | void;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Later versions of the form may have more than the current 55 characters. */
const MAX_TRACEPARENT_LENGTH = 200;

/** Reads the header `traceparent`. Returns `undefined` if it is absent or invalid (SPAN-2). */
export function parseTraceparent(header: string | null | undefined): TraceContext | undefined {
  const given = header ?? "";
  const match = given.length > MAX_TRACEPARENT_LENGTH ? null : TRACEPARENT.exec(given);
  if (match === null) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = match;
  if (version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Returns a place in a trace as the header `traceparent`. */
export function traceparentOf({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** Returns the parts of a header `traceparent` that spans need; `undefined` if it is invalid (SPAN-2). */
export function knownTraceparent(header: string | null | undefined): string | undefined {
  const place = parseTraceparent(header);
  return place && traceparentOf(place);
}

/** Returns the place of the first span of an actor's work, and its parent if it has one. Without a parent, `origin` gives the trace id. */
export function placeOf(
  id: string,
  origin: string,
  traceparent: string | undefined,
): TraceContext & { parentSpanId?: string } {
  const parent = parseTraceparent(traceparent);
  const spanId = spanIdOf(id);
  if (parent === undefined) return { traceId: traceIdOf(origin), spanId, isSampled: true };
  return { ...parent, spanId, parentSpanId: parent.spanId };
}

/** Returns the trace id that derives from a text (SPAN-1). */
export function traceIdOf(text: string): string {
  return `${digest(`trace:${text}`)}${digest(text)}`;
}

/** Returns the span id that derives from a text (SPAN-1). */
export function spanIdOf(text: string): string {
  return digest(text);
}

const OFFSET = 0xcbf29ce484222325n;
const PRIME = 0x100000001b3n;
/** The multipliers of the finalizer of MurmurHash3: texts that differ in one character differ in half of the bits. */
const MIX = [0xff51afd7ed558ccdn, 0xc4ceb9fe1a85ec53n] as const;

/** Returns 16 hexadecimal digits of a text: FNV-1a of its UTF-16 units, mixed. Never all zeros, which no id may be. */
function digest(text: string): string {
  let hash = OFFSET;
  for (let index = 0; index < text.length; index++)
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(index))) * PRIME);
  for (const factor of MIX) hash = BigInt.asUintN(64, (hash ^ (hash >> 33n)) * factor);
  hash ^= hash >> 33n;
  return (hash === 0n ? 1n : hash).toString(16).padStart(16, "0");
}
