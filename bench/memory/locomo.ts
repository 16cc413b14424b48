/** LoCoMo as memories and questions: one memory per turn, and the questions of categories 1 to 4 with the turns that answer them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The file stays outside of the repository. */
const FILE = join(
  process.env.DRAMATIS_DATA ?? join(import.meta.dirname, "../../../shared/data"),
  "locomo10.json",
);

export interface Turn {
  id: string;
  content: string;
  speaker: string;
  session: string;
  sequence: number;
  /** Milliseconds since the epoch. */
  time: number;
  date: string;
}

export interface Question {
  text: string;
  /** Ids of the turns that answer it. */
  evidence: string[];
  category: number;
}

export interface Conversation {
  id: string;
  turns: Turn[];
  questions: Question[];
  /** The end of the last session, in milliseconds since the epoch. */
  end: number;
  /** Single facts of LoCoMo's observations, with their source turns. */
  facts: { text: string; evidence: string[] }[];
}

interface RawTurn {
  speaker: string;
  dia_id: string;
  text: string;
  blip_caption?: string;
}

interface RawConversation {
  sample_id: string;
  conversation: Record<string, RawTurn[] | string>;
  observation: Record<string, Record<string, [string, string | string[]][]>>;
  qa: { question: string; evidence?: string[]; category: number }[];
}

/** Reads the conversations. */
export function readLocomo(): Conversation[] {
  // SAFETY: the published file has this shape. A file with another shape fails the count of questions.
  const raw = JSON.parse(readFileSync(FILE, "utf8")) as RawConversation[];
  return raw.map(conversationOf);
}

function conversationOf(raw: RawConversation): Conversation {
  const turns: Turn[] = [];
  let end = 0;
  for (let number = 1; ; number++) {
    const session = raw.conversation[`session_${number}`];
    const date = raw.conversation[`session_${number}_date_time`];
    if (date === undefined) break;
    if (!Array.isArray(session) || typeof date !== "string") continue;
    const time = timeOf(date);
    end = Math.max(end, time);
    for (const [sequence, turn] of session.entries()) {
      turns.push({
        id: turn.dia_id,
        content: turn.blip_caption === undefined ? turn.text : `${turn.text} [${turn.blip_caption}]`,
        speaker: turn.speaker,
        session: `session ${number}`,
        sequence,
        time,
        date,
      });
    }
  }
  const ids = new Set(turns.map(({ id }) => id));
  const questions = raw.qa.flatMap(({ question, evidence = [], category }) => {
    const known = normalizedIds(evidence).filter((id) => ids.has(id));
    return category >= 1 && category <= 4 && known.length > 0
      ? [{ text: question, evidence: known, category }]
      : [];
  });
  return { id: raw.sample_id, turns, questions, end, facts: factsOf(raw) };
}

function factsOf({ observation }: RawConversation): Conversation["facts"] {
  return Object.values(observation).flatMap((bySpeaker) =>
    Object.values(bySpeaker).flatMap((facts) =>
      facts.map(([text, ids]) => ({ text, evidence: normalizedIds([ids].flat()) })),
    ),
  );
}

/** Repairs "D8:6; D9:17", "D:11:26" and leading zeros. Drops names of missing turns. */
function normalizedIds(evidence: readonly string[]): string[] {
  const ids = evidence.flatMap((text) =>
    [...text.matchAll(/D:?(\d+):(\d+)/gu)].map(([, session, turn]) => `D${Number(session)}:${Number(turn)}`),
  );
  return [...new Set(ids)];
}

/** Reads "1:56 pm on 8 May, 2023" as UTC. */
function timeOf(text: string): number {
  const [, hour, minute, half, day] = /^(\d+):(\d+) (am|pm) on (.+)$/u.exec(text) ?? [];
  const midnight = Date.parse(`${day?.replace(",", "")} UTC`);
  const time = midnight + (((Number(hour) % 12) + (half === "pm" ? 12 : 0)) * 60 + Number(minute)) * 60_000;
  if (Number.isNaN(time)) throw new Error(`"${text}" is not a time of a session.`);
  return time;
}
