/**
 * Counts the tokens of messages, tools and instructions. A library estimates the text, and fixed surcharges cover the framing. Pure.
 *
 * TOKEN-1  All parts of a message that are sent count: content, name, the ids, names and arguments of tool calls, the provider's native
 *          parts, and a flat estimate for each image and file.
 * TOKEN-2  An estimate takes bounded time: it counts evenly spaced samples of a long text. It is never below the minimum for the characters
 *          of the whole text, so text between the samples cannot evade the limit. Recent counts are cached.
 * TOKEN-6  `mostTokens` is never below `estimateTokens`.
 *
 * The library is calibrated on OpenAI's `o200k_base`: within 10 % for English prose, code and CJK text, within 15 % for other European
 * languages. Other model families differ by up to a third. Leave this margin in a budget, or pass the tokenizer of your model as a
 * `TokenCounter`.
 */
import { estimateTokenCount, type TokenEstimationOptions } from "tokenx";
import type { ContextMessage, NativeReply } from "../../model/messages.ts";
import { type DramatisError, invalid } from "../../shared/errors.ts";

/** Counts the tokens of a text, exactly or by estimate. */
export type TokenCounter = (text: string) => number;

/** A tool as it is sent. */
export interface CountedTool {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: object;
}

/** Overhead of one message, one tool call and one tool in chat formats. */
const MESSAGE_TOKENS = 4;
const CALL_TOKENS = 8;
const TOOL_TOKENS = 8;

/** Corrections for text that the library underestimates: keys, ids, encoded bytes, and scripts without a rule. */
const OPTIONS: TokenEstimationOptions = {
  languageConfigs: [
    { pattern: /^(?=.*\d)(?=.*[A-Za-z])[A-Za-z\d]{16,}$/, averageCharsPerToken: 2 },
    { pattern: /[\u0590-\u08ff\u0900-\u0dff]/, averageCharsPerToken: 4 },
    { pattern: /[\u0e00-\u0fff]/, averageCharsPerToken: 2.8 },
  ],
};

/** A longer text is sampled. The samples together have this length. */
const MAX_COUNTED_LENGTH = 8 * 1024;
const SAMPLES = 8;
const SAMPLE_LENGTH = MAX_COUNTED_LENGTH / SAMPLES;

/**
 * Estimates the tokens of a text. The default counter.
 *
 * @example estimateTokens("Hello, world")
 */
export const estimateTokens: TokenCounter = (text) => {
  if (text.length < MIN_KEPT_LENGTH) return estimateTokenCount(text, OPTIONS);
  const known = counted.get(text);
  const tokens = known ?? estimateLong(text);
  if (known === undefined) keep(text, tokens);
  return tokens;
};

/** Caches counts of recent long texts, because a reply, a result or a schema is part of several requests. */
const counted = new Map<string, number>();
let cachedLength = 0;
const MIN_KEPT_LENGTH = 1024;
/** Characters of all cached texts. */
const MAX_CACHED_LENGTH = 2 * 1024 * 1024;

function keep(text: string, tokens: number): void {
  if (text.length > MAX_CACHED_LENGTH) return;
  counted.set(text, tokens);
  cachedLength += text.length;
  for (const oldest of counted.keys()) {
    if (cachedLength <= MAX_CACHED_LENGTH) return;
    counted.delete(oldest);
    cachedLength -= oldest.length;
  }
}

function estimateLong(text: string): number {
  if (text.length <= MAX_COUNTED_LENGTH) return estimateTokenCount(text, OPTIONS);
  const distance = (text.length - SAMPLE_LENGTH) / (SAMPLES - 1);
  let counted = 0;
  for (let sample = 0; sample < SAMPLES; sample++) {
    const start = Math.floor(sample * distance);
    counted += estimateTokenCount(text.slice(start, start + SAMPLE_LENGTH), OPTIONS);
  }
  return Math.ceil(Math.max((counted * text.length) / MAX_COUNTED_LENGTH, leastTokens(text)));
}

/** Characters of a token, at most: of white space, of other ASCII, and of other scripts. A control character is one token. */
const [SPACES_PER_TOKEN, ASCII_PER_TOKEN, OTHERS_PER_TOKEN] = [16, 8, 3];

/** Returns the fewest tokens that the characters of a text can have. */
function leastTokens(text: string): number {
  let [spaces, controls, ascii, others] = [0, 0, 0, 0];
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 0x7f) others += 1;
    else if (unit === 0x20 || (unit >= 0x09 && unit <= 0x0d)) spaces += 1;
    else if (unit < 0x20 || unit === 0x7f) controls += 1;
    else ascii += 1;
  }
  return controls + spaces / SPACES_PER_TOKEN + ascii / ASCII_PER_TOKEN + others / OTHERS_PER_TOKEN;
}

/** Returns an upper bound of the estimate of a text, without counting. */
export const mostTokens: TokenCounter = (text) => text.length * (/[^\0-\x7f]/.test(text) ? 2 : 1);

/** Reports whether a text has at most `maxTokens`. Counts only if `mostTokens` does not decide. */
export function fitsTokens(text: string, maxTokens: number, count: TokenCounter): boolean {
  return (count === estimateTokens && mostTokens(text) <= maxTokens) || count(text) <= maxTokens;
}

/**
 * Estimates for an image (a photograph at the provider's maximum size) and a file (three pages). The true number depends
 * on provider, size and pages; only the provider can count it.
 */
const MEDIA_TOKENS = { text: 0, image: 1_600, file: 4_000 } as const;

/** Counts the tokens of a message. Metadata is not sent and does not count. */
export function messageTokens(message: ContextMessage, count: TokenCounter = estimateTokens): number {
  const { content, name, toolCallId, toolCalls = [], parts = [], native } = message;
  const calls = toolCalls.reduce(
    (sum, call) =>
      sum + CALL_TOKENS + count(call.id) + count(call.name) + count(JSON.stringify(call.arguments)),
    0,
  );
  const media = parts.reduce((sum, { type }) => sum + MEDIA_TOKENS[type], 0);
  const own = native === undefined ? 0 : nativeTokens(native, count);
  return MESSAGE_TOKENS + count(content) + count(name ?? "") + count(toolCallId ?? "") + calls + media + own;
}

/** Counts native parts other than text and calls. */
function nativeTokens({ parts }: NativeReply, count: TokenCounter): number {
  return parts.reduce((sum, part) => {
    const own = part.type === "block" ? part.value : part.extra;
    return own === undefined ? sum : sum + count(JSON.stringify(own));
  }, 0);
}

export function frameTokens(
  { systemInstructions = [], tools = [] }: FrameOfContext,
  count: TokenCounter = estimateTokens,
): number {
  const instructions = systemInstructions.reduce((sum, text) => sum + MESSAGE_TOKENS + count(text), 0);
  return tools.reduce(
    (sum, { name, description, inputSchema }) =>
      sum + TOOL_TOKENS + count(name) + count(description) + count(JSON.stringify(inputSchema)),
    instructions,
  );
}

export interface FrameOfContext {
  systemInstructions?: readonly string[];
  /** Tools to send. They count against a budget. */
  tools?: readonly CountedTool[];
}

/** Throws `INVALID_INPUT` for an invalid budget. */
export function checkTokenBudget(tokenBudget: number): void {
  if (!(tokenBudget > 0)) throw invalidLimit("tokenBudget", "a number above 0");
}

export function invalidLimit(name: string, expected: string): DramatisError {
  const message = `must be ${expected}`;
  return invalid(`\`${name}\` ${message}.`, {
    errors: [{ path: `/${name}`, message }],
  });
}
