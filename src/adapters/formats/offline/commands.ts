/** Rules 1 to 4 of `docs/offline-model.md`: messages that begin with an exclamation mark. */
import { labelled, type OfflineAnswer } from "./answer.ts";
import type { View } from "./view.ts";

const MAX_WORDS = 1_000;
const MAX_PAUSE_MS = 1_000;
const DEFAULT_PAUSE_MS = 40;

/** Rules 1 and 2: makes the next tool calls that the message commands. */
export function toolCommands({ text, rounds, mayCallTools, results }: View): OfflineAnswer | undefined {
  const { steps, isLoop } = parseToolLines(text);
  const calls = steps[isLoop ? Math.min(rounds, steps.length - 1) : rounds];
  if (calls === undefined) return undefined;
  if (mayCallTools) return { kind: "calls", calls };
  if (results.length > 0) return undefined;
  const names = [...new Set(calls.map(({ tool }) => tool))].join(", ");
  return labelled(`tools are switched off for this reply, so I did not call ${names}.`);
}

/** Reports whether the message commands tool calls. */
export function isCommanded({ text }: Pick<View, "text">): boolean {
  return parseToolLines(text).steps.length > 0;
}

interface ToolLines {
  steps: { tool: string; input: string }[][];
  /** Set if the last step is repeated without end. */
  isLoop: boolean;
}

function parseToolLines(text: string): ToolLines {
  const steps: ToolLines["steps"] = [[]];
  let isLoop = false;
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === "!then") steps.push([]);
    const [, command, tool, input = ""] = /^\s*!(tool|loop)\s+(\S+)\s*(.*)$/u.exec(line) ?? [];
    if (tool === undefined) continue;
    if (command === "loop") isLoop = true;
    steps.at(-1)?.push({ tool, input: input.trim() });
  }
  return { steps: steps.filter((calls) => calls.length > 0), isLoop };
}

/** Rule 3. */
export function say({ text }: View): OfflineAnswer | undefined {
  const [, answer] = /^!say ([\s\S]+)$/.exec(text) ?? [];
  return answer === undefined ? undefined : { kind: "text", text: answer };
}

/** Rule 4. */
export function slow({ text }: View): OfflineAnswer | undefined {
  const [, count, pause = DEFAULT_PAUSE_MS] = /^!slow (\d{1,9})(?: (\d{1,9}))?\s*$/.exec(text) ?? [];
  if (count === undefined) return undefined;
  const words = Array.from({ length: Math.min(Number(count), MAX_WORDS) }, (_, index) => `word-${index + 1}`);
  const pauseMs = Math.min(Number(pause), MAX_PAUSE_MS);
  return { kind: "text", text: words.join(" "), words: 1, pauseMs };
}
