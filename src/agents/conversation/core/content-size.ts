/** Measures the content that turns hold in memory, in UTF-16 units. */
import type { ConversationState } from "./state.ts";
import type { Turn } from "./turn.ts";

const measured = new WeakMap<object, number>();

/** Returns the length of a text, or of a value as JSON. Values never change, so each is measured once. */
export function lengthOf(content: string | object | undefined): number {
  if (content === undefined) return 0;
  if (typeof content === "string") return content.length;
  const length = measured.get(content) ?? JSON.stringify(content).length;
  measured.set(content, length);
  return length;
}

export function resultsLength({ operations }: Turn): number {
  return operations.reduce((sum, { result, task }) => sum + lengthOf(result) + lengthOf(task), 0);
}

/** Returns the length of the inputs, tools, notes, assembled requests and results of all active turns. */
export function activeLength({ active }: ConversationState): number {
  return [...active.values()].reduce(
    (sum, turn) =>
      sum +
      lengthOf(turn.input) +
      lengthOf(turn.tools) +
      notesLength(turn) +
      lengthOf(turn.request) +
      resultsLength(turn),
    0,
  );
}

/** Returns the length of the notes about other messages that a turn's model gets. */
function notesLength({ concurrentNote, replied, additions, recalled }: Turn): number {
  return (
    lengthOf(recalled?.note) +
    lengthOf(recalled?.knowledge) +
    lengthOf(concurrentNote) +
    lengthOf(replied) +
    lengthOf(additions)
  );
}

export function turnLength({ input, replies, operations, output, tools }: Turn): number {
  return replies.reduce(
    (sum, { text, reasoning, native }) => sum + text.length + lengthOf(reasoning) + lengthOf(native),
    lengthOf(input) + lengthOf(output) + lengthOf(tools) + lengthOf(operations),
  );
}
