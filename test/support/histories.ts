/** Random valid histories of a session. */
import fc from "fast-check";
import type { SessionEvent } from "../../src/memory/session/session-event.ts";
import type { ToolSpec } from "../../src/model/context.ts";
import type { ContextMessage, ToolCall } from "../../src/model/messages.ts";
import type { Json } from "../../src/shared/json.ts";
import { agent, numbered, request, result, user } from "./events.ts";
import { jsonTexts, memberNames } from "./json-values.ts";

/** Normalizes a value as JSON does: -0 becomes 0. */
const json = jsonTexts({ maxDepth: 2 }).map((value): Json => JSON.parse(JSON.stringify(JSON.parse(value))));

const text = fc.string({ unit: "grapheme", maxLength: 40 });

const call = fc.record({
  id: fc.string({ minLength: 1, maxLength: 60 }),
  name: fc.oneof(fc.constantFrom("calculator", "notes", "memory.write"), fc.string({ maxLength: 80 })),
  arguments: fc.dictionary(memberNames({ maxLength: 8 }), json, { maxKeys: 4 }),
});

const speaker = fc.option(fc.string({ minLength: 1, maxLength: 20 }), { nil: undefined });

const said = fc
  .tuple(fc.constantFrom<"user" | "assistant" | "system">("user", "assistant", "system"), text, speaker)
  .map(([role, content, name]): ContextMessage[] => [
    { role, content, ...(name === undefined ? {} : { name }) },
  ]);

/** An assistant message with calls, followed by one result for each, in any order. */
const round = fc
  .uniqueArray(call, { minLength: 1, maxLength: 5, selector: ({ id }) => id })
  .chain((calls) =>
    fc.tuple(text, fc.constant(calls), fc.shuffledSubarray(calls, { minLength: calls.length }), text),
  )
  .map(([content, toolCalls, order, result]): ContextMessage[] => [
    { role: "assistant", content, toolCalls },
    ...order.map(({ id, name }: ToolCall): ContextMessage => {
      return { role: "tool", content: `${result} of ${id}`, toolCallId: id, name };
    }),
  ]);

/** A history with a user message first. */
export const history: fc.Arbitrary<ContextMessage[]> = fc
  .tuple(text, fc.array(fc.oneof(said, round), { maxLength: 12 }))
  .map(([first, rest]) => [{ role: "user", content: first }, ...rest.flat()]);

export const tools: fc.Arbitrary<ToolSpec[]> = fc.subarray(
  ["calculator", "notes", "search_docs"].map((name) => ({
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: "object", properties: { text: { type: "string" } } },
  })),
);

/** Events of a turn: the user's message, rounds of calls with one result each, the answer. `n` makes ids unique. */
export function turnOfEvents(
  n: number,
  said: string,
  rounds: readonly string[][],
  answer: string,
): SessionEvent[] {
  const moves = rounds.flatMap((results, round) => {
    const ids = results.map((_, call) => `c${n}-${round}-${call}`);
    return [
      request(`r${n}-${round}`, ...ids),
      ...results.map((content, call) => result(`t${n}-${round}-${call}`, ids[call] ?? "", content)),
    ];
  });
  return [user(`u${n}`, said), ...moves, agent(`a${n}`, answer)];
}

/** Sessions of whole turns, with numbered events grouped by turn. Texts have at most `maxLength` characters. */
export const sessionTurns = (maxTurns: number, maxLength: number): fc.Arbitrary<SessionEvent[][]> => {
  const words = fc.nat(maxLength).map((length) => "word ".repeat(Math.ceil(length / 5)).slice(0, length));
  const turn = fc.tuple(
    words,
    fc.array(fc.array(words, { minLength: 1, maxLength: 3 }), { maxLength: 2 }),
    words,
  );
  return fc.array(turn, { minLength: 1, maxLength: maxTurns }).map((turns) => {
    let seq = 0;
    return turns.map(([said, rounds, answer], n) => {
      const events = numbered(turnOfEvents(n, said, rounds, answer), seq);
      seq += events.length;
      return events;
    });
  });
};
