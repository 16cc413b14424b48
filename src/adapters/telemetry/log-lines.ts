/**
 * Spans as lines of a log: a line for each turn, each failed tool or task, and each model call with an error.
 *
 * LOG-1  A line has ids, names, counts, codes and times, and no text of people, models or tools. It has no correlation id, because a client
 *        chooses it.
 */
import type { Span, SpanAttributes } from "../../model/span.ts";

export interface LogEnvironment {
  /** `1`: turns, failed tools and model errors are logged. `npm start` sets it. */
  DRAMATIS_LOG?: string;
}

/** Returns the function that logs spans; `undefined` unless the environment asks for a log. */
export function spanLog({ DRAMATIS_LOG }: LogEnvironment): ((spans: readonly Span[]) => void) | undefined {
  if (DRAMATIS_LOG?.trim() !== "1") return undefined;
  return (spans) => {
    for (const line of logLines(spans)) console.log(line);
  };
}

type Facts = Record<string, SpanAttributes[string] | undefined>;

/** Returns the lines of spans that have ended together. Lines of turns are last. */
export function logLines(spans: readonly Span[]): string[] {
  return spans
    .toSorted((one, other) => Number(isTurn(one)) - Number(isTurn(other)))
    .flatMap((span) => {
      const found = lineOf(span);
      if (found === undefined) return [];
      const { attributes, error, traceId, startedAt, endedAt } = span;
      const facts: Facts = {
        ...found.facts,
        run: attributes["dramatis.run.id"],
        turn: attributes["dramatis.turn.id"],
        conversation: attributes["gen_ai.conversation.id"],
        agent: attributes["gen_ai.agent.id"],
        code: error,
        ms: found.facts.ms ?? endedAt - startedAt,
        trace: traceId,
      };
      const pairs = Object.entries(facts).filter(([, value]) => value !== undefined);
      return [[found.event, ...pairs.map(([name, value]) => `${name}=${shown(value)}`)].join(" ")];
    });
}

function isTurn({ attributes }: Span): boolean {
  return attributes["dramatis.turn.status"] !== undefined;
}

function lineOf(span: Span): { event: string; facts: Facts } | undefined {
  const { attributes, error } = span;
  if (isTurn(span))
    return {
      event: `turn ${attributes["dramatis.turn.status"]}`,
      facts: { ms: attributes["dramatis.turn.duration_ms"] },
    };
  if (attributes["gen_ai.operation.name"] === "chat") {
    const attempts = Number(attributes["dramatis.attempts"]);
    if (error === undefined && attempts < 2) return undefined;
    const facts = {
      provider: attributes["gen_ai.provider.name"],
      model: attributes["gen_ai.request.model"],
      status: attributes["http.response.status_code"],
      attempts,
    };
    return { event: error === undefined ? "model retried" : "model failed", facts };
  }
  const node = attributes["dramatis.node"];
  if (node !== undefined && error !== undefined)
    return { event: "node failed", facts: { node, operation: attributes["dramatis.operation.id"] } };
  const tool = attributes["gen_ai.tool.name"];
  if (tool === undefined || error === undefined) return undefined;
  return { event: "tool failed", facts: { tool, operation: attributes["dramatis.operation.id"] } };
}

/** Writes a value so that it is one word of the line. */
function shown(value: Facts[string]): string {
  const text = String(value);
  return /^[\w.:@/+-]+$/.test(text) ? text : JSON.stringify(text);
}
