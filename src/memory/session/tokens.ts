/**
 * How many tokens a model is charged for messages, tools and instructions: an estimate, made by a library for text and
 * by fixed surcharges for what frames it. Pure.
 *
 * TOKEN-1  All that is sent of a message counts: content, name, the ids, names and arguments of tool calls, what its
 *          provider wants back in its own words, and each image and file at a flat estimate.
 * TOKEN-2  Estimating takes bounded time: of a long text, evenly spread samples are counted.
 *
 * The library is calibrated on OpenAI's `o200k_base`: within 10 % for English prose, code and CJK text, within 15 % for
 * other European languages. Models of other families differ by up to a third. Leave that margin in a budget, or give
 * the tokenizer of your model as a `TokenCounter`.
 */
import { estimateTokenCount, type TokenEstimationOptions } from "tokenx";
import type { ContextMessage, NativeReply } from "../../model/messages.ts";
import { DramatisError } from "../../shared/errors.ts";

/** Counts the tokens of a text. An exact tokenizer fits here as well as an estimate. */
export type TokenCounter = (text: string) => number;

/** A tool as it is sent beside the messages. */
export interface CountedTool {
  name: string;
  description: string;
  /** JSON Schema of the arguments. */
  inputSchema: object;
}

/** What the chat formats add around one message, one tool call and one tool. */
const MESSAGE_TOKENS = 4;
const CALL_TOKENS = 8;
const TOOL_TOKENS = 8;

/** What the library prices too low by its own account: keys, ids and encoded bytes, and scripts it has no rule for. */
const OPTIONS: TokenEstimationOptions = {
  languageConfigs: [
    { pattern: /^(?=.*\d)(?=.*[A-Za-z])[A-Za-z\d]{16,}$/, averageCharsPerToken: 2 },
    { pattern: /[\u0590-\u08ff\u0900-\u0dff]/, averageCharsPerToken: 4 },
    { pattern: /[\u0e00-\u0fff]/, averageCharsPerToken: 2.8 },
  ],
};

/** Characters beyond which a text is sampled, and the samples: together as long as the longest text counted whole. */
const MAX_COUNTED_LENGTH = 32 * 1024;
const SAMPLES = 8;
const SAMPLE_LENGTH = MAX_COUNTED_LENGTH / SAMPLES;

/** The counter where none is given. */
export const estimateTokens: TokenCounter = (text) => {
  if (text.length <= MAX_COUNTED_LENGTH) return estimateTokenCount(text, OPTIONS);
  const distance = (text.length - SAMPLE_LENGTH) / (SAMPLES - 1);
  let counted = 0;
  for (let sample = 0; sample < SAMPLES; sample++) {
    const start = Math.floor(sample * distance);
    counted += estimateTokenCount(text.slice(start, start + SAMPLE_LENGTH), OPTIONS);
  }
  return Math.ceil((counted * text.length) / MAX_COUNTED_LENGTH);
};

/**
 * What an image and a file cost: about a photograph that a provider has scaled to its largest size, and about three pages.
 * The true figure depends on provider, size and pages, and is not known before the provider counts.
 */
const MEDIA_TOKENS = { text: 0, image: 1_600, file: 4_000 } as const;

/** Tokens of a message. Its metadata is sent to no model, and does not count. */
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

/** Text and calls are counted where they stand; this is what comes on top of them. */
function nativeTokens({ parts }: NativeReply, count: TokenCounter): number {
  return parts.reduce((sum, part) => {
    const own = part.type === "block" ? part.value : part.extra;
    return own === undefined ? sum : sum + count(JSON.stringify(own));
  }, 0);
}

/** Tokens of what is sent beside the messages: each system instruction, and each tool with its schema. */
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

/** What is sent beside the messages. */
export interface FrameOfContext {
  systemInstructions?: readonly string[];
  tools?: readonly CountedTool[];
}

/** Throws `INVALID_INPUT` for what is no budget. */
export function checkTokenBudget(tokenBudget: number): void {
  if (tokenBudget > 0) return;
  throw new DramatisError("INVALID_INPUT", "`tokenBudget` must be a number above 0.", {
    errors: [{ path: "/tokenBudget", message: "must be above 0" }],
  });
}
