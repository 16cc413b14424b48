/** LoCoMo in several shapes: unchanged, and with less of its structure. */
import type { MemoryInput } from "../../src/protocol/memory-requests.ts";
import { toIso } from "../../src/shared/time.ts";
import type { Conversation, Question } from "./locomo.ts";

/** A memory to write, and the turns that it contains. */
export interface Item {
  input: MemoryInput;
  turns: string[];
}

/** The memories of one agent, and the questions. */
export interface Shape {
  items: Item[];
  questions: Question[];
  now: string;
}

export const SHAPES: Record<string, (conversation: Conversation) => Shape> = {
  /** One memory per turn. */
  locomo: (conversation) => shapeOf(conversation, turnItems(conversation)),
  /** Single facts without speaker, session and time. */
  "locomo-facts": (conversation) =>
    shapeOf(
      conversation,
      conversation.facts.map(({ text, evidence }) => ({ input: { content: text }, turns: evidence })),
    ),
  /** One long text per session, without speaker and sequence. */
  "locomo-sessions": (conversation) => shapeOf(conversation, joined(conversation, Number.POSITIVE_INFINITY)),
  /** Long messages with a sequence: eight turns each. */
  "locomo-long": (conversation) => shapeOf(conversation, joined(conversation, 8)),
};

function shapeOf({ questions, end }: Conversation, items: Item[]): Shape {
  const known = new Set(items.flatMap(({ turns }) => turns));
  const answerable = questions.filter(({ evidence }) => evidence.some((id) => known.has(id)));
  return { items, questions: answerable, now: toIso(end) };
}

function turnItems({ turns }: Conversation): Item[] {
  return turns.map(({ id, content, speaker, session, sequence, time, date }) => ({
    input: { content, speaker, session, sequence, time: toIso(time), metadata: { date } },
    turns: [id],
  }));
}

function joined({ turns }: Conversation, count: number): Item[] {
  const groups = new Map<string, typeof turns>();
  for (const turn of turns) {
    const key = `${turn.session}/${Math.floor(turn.sequence / count)}`;
    groups.set(key, [...(groups.get(key) ?? []), turn]);
  }
  return [...groups.values()].flatMap((group, sequence) => {
    const [first] = group;
    if (first === undefined) return [];
    const content = group.map(({ speaker, content }) => `${speaker}: ${content}`).join("\n");
    const place = Number.isFinite(count) ? { session: first.session, sequence } : {};
    return [{ input: { content, time: toIso(first.time), ...place }, turns: group.map(({ id }) => id) }];
  });
}
