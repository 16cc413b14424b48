/**
 * The workload of every system, with their common model: the same texts, tool and replies, without delays.
 */
import { z } from "zod";

/** The message of a plain turn, about 200 characters. The turn stores two messages of that size. */
export const PLAIN_TEXT =
  "Please remind me which of the harbour lights are lit before dusk, which ones wait for the keeper, and what " +
  "the log of last week says about the lamp on the northern pier that went out in the middle of a storm.";

/** A prompt for `TOOL_ROUNDS` consecutive tool calls before the answer. */
export const TOOLS_TEXT = `Look up: ${PLAIN_TEXT.slice(9)}`;

export const TOOL_ROUNDS = 3;

/** A prompt for one call of the tool that takes `SLOW_MS`. */
export const SLOW_TEXT = `Search: ${PLAIN_TEXT.slice(8)}`;

const SLOW_ENTRY = 0;
const SLOW_MS = 5_000;

export const TOOL_NAME = "lookup";

export const TOOL_DESCRIPTION = "Looks up one entry of the harbour log.";

export const toolInput = z.object({ entry: z.number().describe("Number of the entry") });

/** The tool of every system. It has no effect. It returns at once, except for `SLOW_TEXT`. */
export async function lookup({ entry }: z.infer<typeof toolInput>): Promise<{ entry: number; text: string }> {
  if (entry === SLOW_ENTRY) await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
  return { entry, text: `Entry ${entry}: the lamp was lit at dusk and burned until the morning watch.` };
}

/** The input of the scripted model. */
export interface Prompt {
  /** Text of the newest user message. */
  text: string;
  /** Number of messages that the model received, without system messages. */
  messages: number;
  /** Number of tool results after the newest user message. */
  toolResults: number;
}

/** A reply: one tool call, or a text in deltas. */
export type Reply =
  | { kind: "tool"; id: string; input: z.infer<typeof toolInput> }
  | { kind: "text"; pieces: string[] };

const PIECES = [
  "The eastern and the ",
  "southern lights are lit ",
  "before dusk, the others ",
  "wait for the keeper; and ",
  "the log says the lamp on ",
  "the northern pier was ",
  "relit within the hour ",
];

/** The scripted model. Its answer describes its input, so that the runner can verify it. */
export function replyTo({ text, messages, toolResults }: Prompt): Reply {
  if (text.startsWith("Look up:") && toolResults < TOOL_ROUNDS) {
    return { kind: "tool", id: `call-${messages}-${toolResults}`, input: { entry: toolResults + 1 } };
  }
  if (text.startsWith("Search:") && toolResults === 0) {
    return { kind: "tool", id: `call-${messages}-slow`, input: { entry: SLOW_ENTRY } };
  }
  return { kind: "text", pieces: [...PIECES, `(${messages} messages, ${toolResults} results).`] };
}

/** Parses an answer of `replyTo`. Returns `null` for any other text. */
export function evidence(answer: string): { messages: number; toolResults: number } | null {
  const match = /\((\d+) messages, (\d+) results\)\.$/.exec(answer);
  return match === null ? null : { messages: Number(match[1]), toolResults: Number(match[2]) };
}

/** Creates a seeded message. User messages and answers alternate, starting with a user message. */
export function seededMessage(index: number): { id: string; role: "user" | "assistant"; text: string } {
  const role = index % 2 === 0 ? "user" : "assistant";
  const text = role === "user" ? PLAIN_TEXT : `${PIECES.join("")}(seeded).`;
  return { id: `seed-${index.toString().padStart(6, "0")}`, role, text };
}
