/** What a rule answers, and how an answer becomes the payloads of a stream. */
import { fingerprint } from "../../../shared/text.ts";
import type { OfflineBody, OfflineChunk } from "./body.ts";

export type OfflineReply =
  | {
      kind: "text";
      text: string;
      /** Words per chunk; 3 when absent. */
      words?: number;
      /** A wait after each chunk, in milliseconds. */
      pauseMs?: number;
    }
  /** `input` is JSON text as the user wrote it, valid or not. */
  | { kind: "calls"; calls: { tool: string; input: string }[] };

const WORDS_PER_CHUNK = 3;

/** An answer in the model's own words, marked as such. */
export function labelled(text: string): OfflineReply {
  return { kind: "text", text: `Offline model: ${text}` };
}

export function call(tool: string, input: Record<string, unknown>): OfflineReply {
  return { kind: "calls", calls: [{ tool, input: JSON.stringify(input) }] };
}

/** Equal requests and answers give equal chunks: the ids are made from the request. */
export function chunksOf(answer: OfflineReply, body: OfflineBody): OfflineChunk[] {
  const stem = fingerprint(JSON.stringify(body.messages));
  const inputTokens = body.messages.reduce((sum, { text }) => sum + countWords(text), 0);
  const start: OfflineChunk = { id: `offline_${stem}` };
  if (answer.kind === "calls") {
    const calls = answer.calls.map(({ tool, input }, index) => ({
      call: { index, id: `call_${stem}_${index}`, name: tool, input },
    }));
    const outputTokens = answer.calls.reduce((sum, { input }) => sum + 1 + countWords(input), 0);
    return [start, ...calls, { done: "tool_calls", usage: { inputTokens, outputTokens } }];
  }
  const texts = pieces(answer.text, answer.words ?? WORDS_PER_CHUNK).map((text) => ({ text }));
  const usage = { inputTokens, outputTokens: countWords(answer.text) };
  return [start, ...texts, { done: "stop", usage }];
}

/** `text` cut into pieces of so many words with their spaces; joined they are `text`. A very long word is cut too. */
function pieces(text: string, words: number): string[] {
  const parts = text.match(/\s*\S{1,80}\s?|\s+/gu) ?? [];
  const count = Math.ceil(parts.length / words);
  return Array.from({ length: count }, (_, index) =>
    parts.slice(index * words, (index + 1) * words).join(""),
  );
}

function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}
