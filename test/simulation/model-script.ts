/** What the simulated model says, as answers of a provider that speaks Chat Completions. */
import type { CallPlan, ModelFailure } from "./plan.ts";

const WORDS = ["one", "tide", "über", "🙂", "slow", "e\u0301t", "kettle", "日本", "of", "👩‍👩‍👧"] as const;

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** Payloads of server-sent events, or one body. */
  pieces: string[];
  pace: number;
  end: "complete" | "stalled" | "refused";
}

/** What a user's message begins with; the model knows by it what it is to say. */
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

interface Script {
  text: string;
  calls: readonly CallPlan[];
  /** Of the round. */
  key: string;
  pace: number;
}

export function answerOf(script: Script, failure: ModelFailure | undefined): Answer {
  const { pace } = script;
  const refusal = (status: number, headers: object = {}): Answer => ({
    status,
    headers: { ...JSON_BODY, ...headers },
    pieces: [JSON.stringify({ error: { message: `Planned: ${status}.` } })],
    pace: 0,
    end: "complete",
  });
  const stream = (pieces: string[], end: Answer["end"] = "complete"): Answer => ({
    status: 200,
    headers: SSE,
    pieces,
    pace,
    end,
  });
  const pieces = textPieces(script.text);
  const half = pieces.slice(0, Math.ceil(pieces.length / 2));
  switch (failure) {
    case undefined:
      return stream([
        ...pieces,
        ...callPieces(script),
        chunk({}, script.calls.length === 0 ? "stop" : "tool_calls"),
        event("[DONE]"),
      ]);
    case "rate limit":
      return refusal(429, { "retry-after": "2" });
    case "server error":
      return refusal(503);
    case "bad request":
      return refusal(400);
    case "refused connection":
      return { ...refusal(0), end: "refused" };
    case "error in the stream":
      return stream([...half, event({ error: { message: "Overloaded.", code: 529 } })]);
    case "stalled stream":
      return stream(half, "stalled");
    case "truncated stream":
      return stream(half);
    default:
      return failure satisfies never;
  }
}

/** Cut every few units, also within a character. */
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
