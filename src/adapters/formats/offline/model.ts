/** The offline model as a server: converts a request to the payloads of a stream. */
import { fingerprint } from "../../../shared/text.ts";
import type { OfflineAnswer } from "./answer.ts";
import { answerTo } from "./rules.ts";
import { viewOf } from "./view.ts";
import { bodySchema, type OfflineBody, type OfflineChunk } from "./wire.ts";

const WORDS_PER_CHUNK = 3;

/**
 * Answers one request. `pause` is awaited between chunks if the request or the answer sets a pace.
 * @example
 * const decoder = offlineFormat.decoder();
 * for await (const payload of offlineModel(body)) console.log(decoder.push(payload));
 */
export async function* offlineModel(
  body: unknown,
  pause: (milliseconds: number) => Promise<void> = async () => {},
): AsyncGenerator<string> {
  const { data, error } = bodySchema.safeParse(body);
  if (data === undefined) {
    const [issue] = error.issues;
    const reason = `${issue?.path.join(".")}: ${issue?.message}`;
    yield encode({ error: `The request does not fit the offline model: ${reason}` });
    return;
  }
  const answer = answerTo(viewOf(data));
  const pauseMs = (answer.kind === "text" ? answer.pauseMs : undefined) ?? data.pauseMs;
  for (const chunk of chunksOf(answer, data)) {
    yield encode(chunk);
    if (pauseMs > 0 && chunk.text !== undefined) await pause(pauseMs);
  }
}

function encode(chunk: OfflineChunk): string {
  return JSON.stringify(chunk);
}

/** Builds the chunks of an answer. Ids are made from the request: equal requests and answers give equal chunks. */
function chunksOf(answer: OfflineAnswer, { messages, maxOutputTokens }: OfflineBody): OfflineChunk[] {
  const stem = fingerprint(JSON.stringify(messages));
  const inputTokens = messages.reduce((sum, { text }) => sum + countWords(text), 0);
  const start: OfflineChunk = { id: `offline_${stem}` };
  if (answer.kind === "calls") {
    const calls = answer.calls.map(({ tool, input }, index) => ({
      call: { index, id: `call_${stem}_${index}`, name: tool, input },
    }));
    const outputTokens = answer.calls.reduce((sum, { input }) => sum + 1 + countWords(input), 0);
    return [start, ...calls, { done: "tool_calls", usage: { inputTokens, outputTokens } }];
  }
  const text = firstWords(answer.text, maxOutputTokens);
  const texts = pieces(text, answer.words ?? WORDS_PER_CHUNK).map((piece) => ({ text: piece }));
  const done = text === answer.text ? "stop" : "length";
  return [start, ...texts, { done, usage: { inputTokens, outputTokens: countWords(text) } }];
}

/** Cuts a text into pieces of `words` words, with their spaces. A very long word is cut too. */
function pieces(text: string, words: number): string[] {
  const parts = text.match(/\s*\S{1,80}\s?|\s+/gu) ?? [];
  const count = Math.ceil(parts.length / words);
  return Array.from({ length: count }, (_, index) =>
    parts.slice(index * words, (index + 1) * words).join(""),
  );
}

/** Returns the whole text if it has no more words than `most`; else its first words. */
function firstWords(text: string, most = Number.POSITIVE_INFINITY): string {
  return countWords(text) <= most ? text : (text.match(/\s*\S+/gu) ?? []).slice(0, most).join("");
}

function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}
