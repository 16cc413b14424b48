/** Streamed replies in the providers' formats: a long text, then one tool call with long arguments. */
import type { ProviderId } from "../../src/model/profile.ts";

/** Number of text deltas, and of argument deltas. */
const PIECES = 2_000;
const WORDS = ["the ", "river ", "bends ", "größer ", "東京 ", '\\"quoted\\" ', "in ", "spring, "];

export interface ReplyStream {
  provider: ProviderId;
  body: Uint8Array;
  /** The body, split after each event. */
  events: Uint8Array[];
}

export function replyStream(provider: ProviderId): ReplyStream {
  const encoder = new TextEncoder();
  const events = payloadsOf(provider).map((payload) => {
    const type = /^\{"type":"([\w.]+)"/.exec(payload)?.[1];
    return encoder.encode(`${type === undefined ? "" : `event: ${type}\n`}data: ${payload}\n\n`);
  });
  return {
    provider,
    body: encoder.encode(events.map((event) => new TextDecoder().decode(event)).join("")),
    events,
  };
}

function payloadsOf(provider: ProviderId): string[] {
  const words = Array.from({ length: PIECES }, (_, n) => WORDS[n % WORDS.length]);
  const numbers = Array.from({ length: PIECES }, (_, n) => `${n === 0 ? "" : ","}${n}`);
  switch (provider) {
    case "openai": {
      const chunk = (choice: string) =>
        `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1770000000,"model":"gpt-4.1-mini","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,${choice}}],"usage":null,"obfuscation":"Qup1BsQ3"}`;
      const call = (fields: string) =>
        chunk(`"delta":{"tool_calls":[{"index":0,${fields}}]},"logprobs":null,"finish_reason":null`);
      return [
        chunk(
          '"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null',
        ),
        ...words.map((word) => chunk(`"delta":{"content":"${word}"},"logprobs":null,"finish_reason":null`)),
        call('"id":"call_1","type":"function","function":{"name":"sum","arguments":"{\\"of\\":["}'),
        ...numbers.map((number) => call(`"function":{"arguments":"${number}"}`)),
        call('"function":{"arguments":"]}"}'),
        chunk('"delta":{},"logprobs":null,"finish_reason":"tool_calls"'),
        '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1770000000,"model":"gpt-4.1-mini","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4000,"total_tokens":4009}}',
        "[DONE]",
      ];
    }
    case "openai-responses": {
      let n = 0;
      const event = (type: string, fields: string) =>
        `{"type":"response.${type}","sequence_number":${n++},${fields}}`;
      const reply = (fields: string) =>
        `"response":{"id":"resp_1","object":"response","created_at":1770000000,"model":"gpt-4.1-mini",${fields}}`;
      const text = words.join("");
      const args = `{\\"of\\":[${numbers.join("")}]}`;
      const message = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"${text}"}]}`;
      const call = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"sum","arguments":"${args}"}`;
      return [
        event("created", reply('"status":"in_progress","output":[]')),
        event(
          "output_item.added",
          '"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}',
        ),
        event(
          "content_part.added",
          '"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}',
        ),
        ...words.map((word) =>
          event(
            "output_text.delta",
            `"item_id":"msg_1","output_index":0,"content_index":0,"delta":"${word}","logprobs":[],"obfuscation":"Qup1BsQ3"`,
          ),
        ),
        event(
          "output_text.done",
          `"item_id":"msg_1","output_index":0,"content_index":0,"text":"${text}","logprobs":[]`,
        ),
        event("output_item.done", `"output_index":0,"item":${message}`),
        event(
          "output_item.added",
          '"output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"sum","arguments":""}',
        ),
        ...['{\\"of\\":[', ...numbers, "]}"].map((piece) =>
          event(
            "function_call_arguments.delta",
            `"item_id":"fc_1","output_index":1,"delta":"${piece}","obfuscation":"Qup1BsQ3"`,
          ),
        ),
        event(
          "function_call_arguments.done",
          `"item_id":"fc_1","output_index":1,"name":"sum","arguments":"${args}"`,
        ),
        event("output_item.done", `"output_index":1,"item":${call}`),
        event(
          "completed",
          reply(
            `"status":"completed","output":[${message},${call}],"usage":{"input_tokens":9,"output_tokens":4000,"total_tokens":4009}`,
          ),
        ),
      ];
    }
    case "anthropic": {
      const delta = (index: number, fields: string) =>
        `{"type":"content_block_delta","index":${index},"delta":{${fields}}}`;
      return [
        '{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}',
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        ...words.map((word) => delta(0, `"type":"text_delta","text":"${word}"`)),
        '{"type":"content_block_stop","index":0}',
        '{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"sum","input":{}}}',
        ...['{\\"of\\":[', ...numbers, "]}"].map((piece) =>
          delta(1, `"type":"input_json_delta","partial_json":"${piece}"`),
        ),
        '{"type":"content_block_stop","index":1}',
        '{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":4000}}',
        '{"type":"message_stop"}',
      ];
    }
    case "gemini": {
      const chunk = (part: string, finish = "") =>
        `{"candidates":[{"content":{"parts":[${part}],"role":"model"}${finish},"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":5,"totalTokenCount":199,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}],"thoughtsTokenCount":185},"modelVersion":"gemini-3-pro","responseId":"r1"}`;
      return [
        ...[...words, ...words].map((word) => chunk(`{"text":"${word}"}`)),
        chunk(
          `{"functionCall":{"name":"sum","args":{"of":[${numbers.join("")}]}}}`,
          ',"finishReason":"STOP"',
        ),
      ];
    }
    default:
      throw new Error(`There is no stream of ${provider}.`);
  }
}
