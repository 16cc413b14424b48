/**
 * A summary without a model: an extract of what was said, cut to length. It costs nothing, needs no network, and the
 * same messages give the same text; it keeps beginnings, and understands nothing.
 *
 * EXTRACT-1  The text keeps within the target by the same counter; where lines must go, the oldest go first.
 * EXTRACT-2  What was said stands in quotes, as JSON: no line of it can pass for a line of ours.
 */

import type { ContextMessage } from "../../model/messages.ts";
import type { Summariser } from "./compaction.ts";
import { estimateTokens, type TokenCounter } from "./tokens.ts";

/** Characters of one message that are quoted. */
const MAX_QUOTE_LENGTH = 240;

const TITLE = "Extract made without a model";

/** The summariser; `countTokens` as in the compaction it is for. */
export function extractiveSummariser(countTokens: TokenCounter = estimateTokens): Summariser {
  return async ({ previousSummary, messages, targetTokens }) => {
    const lines = [...linesOf(previousSummary), ...messages.flatMap(lineOf)];
    const text = (from: number) =>
      [`${TITLE}${from === 0 ? "" : "; older lines are left out"}:`, ...lines.slice(from)].join("\n");
    // Fewer lines are fewer tokens, so the first that fits is found by halving.
    let [low, high] = [0, lines.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (countTokens(text(middle)) <= targetTokens) high = middle;
      else low = middle + 1;
    }
    return text(low);
  };
}

/** The lines of an extract; a summary that someone else wrote is one line. */
function linesOf(summary: string | undefined): string[] {
  if (summary === undefined) return [];
  if (summary.startsWith(TITLE)) return summary.split("\n").slice(1);
  return [`- earlier: ${quoted(summary)}`];
}

function lineOf({ role, content, name, toolCalls = [] }: ContextMessage): string[] {
  const calls = toolCalls.map((call) => `- agent called: ${quoted(call.name)}`);
  if (role === "tool" || content.trim() === "") return calls;
  const speaker = role === "assistant" ? "agent" : role;
  return [`- ${speaker}${name === undefined ? "" : ` ${quoted(name)}`}: ${quoted(content)}`, ...calls];
}

function quoted(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  if (line.length <= MAX_QUOTE_LENGTH) return JSON.stringify(line);
  return JSON.stringify(`${line.slice(0, MAX_QUOTE_LENGTH).toWellFormed()}…`);
}
