/** Replies of Anthropic, for the scripted server. */
import type { Reply } from "./openai-server.ts";

/** Builds a reply of Anthropic, each block in one piece. */
export function claudeReply(reason: string, ...blocks: Record<string, unknown>[]): Reply {
  const pieces = blocks.flatMap((block, index) => {
    const { input, text, thinking, signature } = block;
    const deltas = [
      ...(input === undefined ? [] : [{ type: "input_json_delta", partial_json: JSON.stringify(input) }]),
      ...(text === undefined ? [] : [{ type: "text_delta", text }]),
      ...(thinking === undefined ? [] : [{ type: "thinking_delta", thinking }]),
      ...(signature === undefined ? [] : [{ type: "signature_delta", signature }]),
    ];
    const empty = {
      ...block,
      ...(input === undefined ? {} : { input: {} }),
      ...(text === undefined ? {} : { text: "" }),
      ...(thinking === undefined ? {} : { thinking: "", signature: "" }),
    };
    return [
      { type: "content_block_start", index, content_block: empty },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ];
  });
  const message = { id: "msg_1", type: "message", role: "assistant", content: [], stop_reason: null };
  const events = [
    { type: "message_start", message: { ...message, usage: { input_tokens: 5, output_tokens: 1 } } },
    ...pieces,
    { type: "message_delta", delta: { stop_reason: reason }, usage: { output_tokens: 9 } },
    { type: "message_stop" },
  ];
  return { kind: "stream", steps: events.map((event) => ({ event })) };
}
