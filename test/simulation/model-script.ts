/** Replies of the simulated model, in the format of Chat Completions. */
import type { OutputSpec } from "../../src/model/context.ts";
import type { CallPlan, ModelFailure, SummaryPlan, UnfitAnswer } from "./plan.ts";

const WORDS = ["one", "tide", "über", "🙂", "slow", "e\u0301t", "kettle", "日本", "of", "👩‍👩‍👧"] as const;

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** Payloads of server-sent events, or one body. */
  pieces: string[];
  /** Index of the payload with the usage. */
  usageAt?: number;
  pace: number;
  end: "complete" | "stalled" | "refused";
}

/** Prefix of a user's message. It identifies the script of the reply. */
export function tagOf(conversation: number, client: number, index: number): string {
  return `#${conversation}.${client}.${index}`;
}

export function words(count: number, salt: number): string {
  return Array.from({ length: count }, (_, index) => WORDS[(index * 7 + salt * 3) % WORDS.length]).join(" ");
}

const SSE = { "content-type": "text/event-stream" };
const JSON_BODY = { "content-type": "application/json" };
const event = (value: unknown) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
const chunk = (delta: object, finish: string | null = null) =>
  event({ id: "c", choices: [{ index: 0, delta, finish_reason: finish }] });
const usage = (tokens: number) =>
  event({ id: "c", choices: [], usage: { prompt_tokens: tokens, completion_tokens: 1 } });

/** Maximum number of attempts at structured output. */
export const OUTPUT_TRIES = 3;

/** The schema of structured output. */
export const OUTPUT: OutputSpec = {
  name: "said",
  schema: {
    type: "object",
    properties: { said: { type: "string" } },
    required: ["said"],
    additionalProperties: false,
  },
};

/** An answer instead of `text` for structured output. */
export function dataOf(text: string, unfit: UnfitAnswer | undefined): string {
  switch (unfit) {
    case undefined:
      return JSON.stringify({ said: text });
    case "prose":
      return `${text} indeed`;
    case "wrong":
      return JSON.stringify({ heard: text });
    case "empty":
      return "";
    case "cut off":
    case "refused":
      return `{"said": "${text}`;
    default:
      return unfit satisfies never;
  }
}

/** An answer to a request for a summary. */
export function summaryOf(says: SummaryPlan["says"], name: string): string {
  switch (says) {
    case "summary":
    case "calls":
    case "cut off":
      return `${name} ${words(8, name.length)}`;
    case "too long":
      return `${name} ${words(600, name.length)}`;
    case "nothing":
      return "";
    default:
      return says satisfies never;
  }
}

interface Script {
  text: string;
  calls: readonly CallPlan[];
  /** Key of the round. */
  key: string;
  pace: number;
  requestId: string;
  /** Same as in `ModelCallRecord`. */
  tokens: number;
  finish?: "length" | "content_filter";
}

export function answerOf(script: Script, failure: ModelFailure | undefined): Answer {
  const { pace, tokens } = script;
  const named = { "x-request-id": script.requestId };
  const refusal = (status: number, headers: object = {}): Answer => ({
    status,
    headers: { ...JSON_BODY, ...named, ...headers },
    pieces: [JSON.stringify({ error: { message: `Planned: ${status}.` } })],
    pace: 0,
    end: "complete",
  });
  const stream = (before: string[], after: string[] = [], end: Answer["end"] = "complete"): Answer => ({
    status: 200,
    headers: { ...SSE, ...named },
    pieces: tokens === 0 ? [...before, ...after] : [...before, usage(tokens), ...after],
    ...(tokens === 0 ? {} : { usageAt: before.length }),
    pace,
    end,
  });
  const pieces = textPieces(script.text);
  const half = pieces.slice(0, Math.ceil(pieces.length / 2));
  const finish = script.finish ?? (script.calls.length === 0 ? "stop" : "tool_calls");
  switch (failure) {
    case undefined:
      return stream([...pieces, ...callPieces(script), chunk({}, finish)], [event("[DONE]")]);
    case "rate limit":
      return refusal(429, { "retry-after": "2" });
    case "server error":
      return refusal(503);
    case "bad request":
      return refusal(400);
    case "wrong key":
      return refusal(401);
    case "unknown model":
      return refusal(404);
    case "refused connection":
      return { ...refusal(0), end: "refused" };
    case "error in the stream":
      return stream(half, [event({ error: { message: "Overloaded.", code: 529 } })]);
    case "stalled stream":
      return stream(half, [], "stalled");
    case "truncated stream":
      return stream(half);
    default:
      return failure satisfies never;
  }
}

/** Splits a text every few units, also within a character. */
function textPieces(text: string): string[] {
  return (text.match(/[\s\S]{1,9}/g) ?? []).map((content) => chunk({ content }));
}

function callPieces({ calls, key }: Script): string[] {
  return calls.flatMap((call, index) => {
    const text = argumentsOf(call, `${key}.${index}`);
    const middle = Math.ceil(text.length / 2);
    const name = call.tool;
    const first = {
      index,
      id: `call_${index}`,
      type: "function",
      function: { name, arguments: text.slice(0, middle) },
    };
    return [
      chunk({ tool_calls: [first] }),
      chunk({ tool_calls: [{ index, function: { arguments: text.slice(middle) } }] }),
    ];
  });
}

function argumentsOf(call: CallPlan, id: string): string {
  switch (call.arguments) {
    case "valid":
      return JSON.stringify({ call: id });
    case "wrong":
      return JSON.stringify({ call: 7 });
    case "broken":
      return `{"call": "${id}`;
    default:
      return call.arguments satisfies never;
  }
}
