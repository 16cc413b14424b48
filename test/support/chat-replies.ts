/** Replies of a Chat Completions provider, as payloads of server-sent events. */

/** The part of a request that scripts read. */
export interface ChatRequestBody {
  model?: string;
  messages: { role: string; content: string | null }[];
  tools?: unknown[];
}

/** A scripted provider: maps a request's body to the payloads of its response. */
export type Provider = (body: ChatRequestBody) => string[];

const chunk = (delta: object, finish: string | null = null) =>
  JSON.stringify({ id: "c", choices: [{ index: 0, delta, finish_reason: finish }] });

/** Text, streamed word by word. */
export function textPayloads(text: string): string[] {
  return [...text.split(/(?<= )/).map((content) => chunk({ content })), chunk({}, "stop"), "[DONE]"];
}

/** Some text, then an error of the provider in the stream. */
export function failingPayloads(text: string, code: string): string[] {
  return [chunk({ content: text }), JSON.stringify({ error: { message: "No.", code } })];
}

/** Tool calls in one message, after some text. */
export function callPayloads(text: string, calls: readonly [name: string, input: object][]): string[] {
  const toolCalls = calls.map(([name, input], index) => ({
    index,
    id: `call_${index}`,
    type: "function",
    function: { name, arguments: JSON.stringify(input) },
  }));
  return [chunk({ content: text }), chunk({ tool_calls: toolCalls }), chunk({}, "tool_calls"), "[DONE]"];
}

/** Counts the replies to the request's last user message so far. */
export function repliesSoFar({ messages }: ChatRequestBody): number {
  const start = messages.findLastIndex(({ role }) => role === "user");
  return messages.slice(start).filter(({ role }) => role === "assistant").length;
}

/** Creates a `fetch` that answers from a rule, for a gateway without a network. */
export function scriptedFetch(provider: Provider) {
  return async (_url: string, init: RequestInit): Promise<Response> => {
    const payloads = provider(JSON.parse(String(init.body)));
    const text = payloads.map((payload) => `data: ${payload}\n\n`).join("");
    return new Response(text, { headers: { "content-type": "text/event-stream" } });
  };
}
