/**
 * What every system is asked to do, and the model that all of them call: the same texts, the same tool, the same
 * replies without any wait. Nothing here belongs to one system.
 */
import { z } from "zod";

/** About 200 characters, so that a plain turn stores two messages of about that size. */
export const PLAIN_TEXT =
  "Please remind me which of the harbour lights are lit before dusk, which ones wait for the keeper, and what " +
  "the log of last week says about the lamp on the northern pier that went out in the middle of a storm.";

/** Asks the scripted model for `TOOL_ROUNDS` tool calls, one after another, before it answers. */
export const TOOLS_TEXT = `Look up: ${PLAIN_TEXT.slice(9)}`;

export const TOOL_ROUNDS = 3;

export const TOOL_NAME = "lookup";

export const TOOL_DESCRIPTION = "Looks up one entry of the harbour log.";

export const toolInput = z.object({ entry: z.number().describe("Number of the entry") });

/** The tool of every system: answers at once and touches nothing. */
export async function lookup({ entry }: z.infer<typeof toolInput>): Promise<{ entry: number; text: string }> {
  return { entry, text: `Entry ${entry}: the lamp was lit at dusk and burned until the morning watch.` };
}

/** What the scripted model looks at. */
export interface Prompt {
  /** Text of the newest user message. */
  text: string;
  /** How many messages the model was given, system messages aside. */
  messages: number;
  /** How many tool results follow the newest user message. */
  toolResults: number;
}

/** A whole reply: one tool call, or a text in the pieces in which it is streamed. */
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

/** The scripted model. Its answer tells what it was given, so that a run can be verified. */
export function replyTo({ text, messages, toolResults }: Prompt): Reply {
  if (text.startsWith("Look up:") && toolResults < TOOL_ROUNDS) {
    return { kind: "tool", id: `call-${messages}-${toolResults}`, input: { entry: toolResults + 1 } };
  }
  return { kind: "text", pieces: [...PIECES, `(${messages} messages, ${toolResults} results).`] };
}

/** Reads back what `replyTo` told in its answer; `null` if this is not such an answer. */
export function evidence(answer: string): { messages: number; toolResults: number } | null {
  const match = /\((\d+) messages, (\d+) results\)\.$/.exec(answer);
  return match === null ? null : { messages: Number(match[1]), toolResults: Number(match[2]) };
}

/** A seeded message: users and answers take turns, the first is a user's. */
export function seededMessage(index: number): { id: string; role: "user" | "assistant"; text: string } {
  const role = index % 2 === 0 ? "user" : "assistant";
  const text = role === "user" ? PLAIN_TEXT : `${PIECES.join("")}(seeded).`;
  return { id: `seed-${index.toString().padStart(6, "0")}`, role, text };
}
