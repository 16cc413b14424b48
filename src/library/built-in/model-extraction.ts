/**
 * The texts of an extraction by a model, and the check of its answer. Pure.
 *
 * LEARN-3  The transcript is sent as JSON lines, with the speaker as a member. A text can therefore not end its line or start another line.
 * LEARN-4  A memory needs a verbatim quote of the user as evidence. A decision may quote the agent instead. Memories without evidence are
 *          dropped, so the agent's claims never become facts about the user.
 * LEARN-5  An answer can change only offered memories. If it changes another memory, it is invalid and the attempt fails. A change of a read-only
 *          memory adds a new memory.
 * LEARN-6  Times in an answer are local times of the user. An invalid or implausible time is replaced by the time of the turn.
 * LEARN-7  Memories that seem to contain a secret are dropped.
 */
import { z } from "zod";
import type { MemoryOperation } from "../../protocol/memory.ts";
import type { JsonObject } from "../../shared/json.ts";
import { cut } from "../../shared/text.ts";
import { toIso } from "../../shared/time.ts";
import { dataSchemaOf } from "../definitions/json-schema-of.ts";
import { localText, readLocalTime } from "../memory/local-time.ts";
import { foldedText, type LearnedTurn, namesSecret } from "../memory/turn.ts";
import { ToolError } from "../tools/tool-error.ts";

/** Maximum number of memories of one turn. */
const MAX_MEMORIES = 20;
const MAX_CONTENT = 1_000;
/** The plausible times of a memory: at most this number of milliseconds after the turn, and not before `EARLIEST`. */
const MAX_AHEAD_MS = 100 * 365 * 86_400_000;
const EARLIEST = Date.UTC(1800, 0, 1);

const learned = z.object({
  action: z.enum(["add", "change"]),
  id: z.string().nullable().describe("The id of the known memory that changes; null to add one."),
  content: z.string().describe("One sentence that is understood alone."),
  type: z.enum(["fact", "preference", "decision", "event", "note"]),
  significance: z.number().describe("From 0 for small talk to 1 for what must never be forgotten."),
  speaker: z.enum(["user", "agent"]),
  quote: z.string().describe("The exact words of the transcript that say it."),
  when: z
    .string()
    .nullable()
    .describe("The local time of the event, YYYY-MM-DD or YYYY-MM-DDTHH:MM; null if the text names no time."),
});

export const answerSchema = z.object({ memories: z.array(learned) });

export type ExtractionAnswer = z.output<typeof answerSchema>;

export const ANSWER_SCHEMA: JsonObject = dataSchemaOf("The answer of an extraction", answerSchema);

export interface ExtractionTexts {
  /** `true` if the user wrote text. */
  any: boolean;
  now: string;
  transcript: string;
  known: string;
}

export function extractionTexts({ message, answer, time, zone, memories }: LearnedTurn): ExtractionTexts {
  const line = (value: object) => JSON.stringify(value);
  const moves = [
    { speaker: "user", text: message },
    { speaker: "agent", text: answer },
  ].filter(({ text }) => text.trim() !== "");
  return {
    any: message.trim() !== "",
    now: localText(time, zone),
    transcript: moves.map(line).join("\n"),
    known: memories.map(line).join("\n"),
  };
}

/** Returns the operations of a model's answer. Throws a retriable `ToolError` if it changes a memory that was not offered (LEARN-5). */
export function checkedAnswer(turn: LearnedTurn, { memories }: ExtractionAnswer): MemoryOperation[] {
  const known = new Set(turn.memories.map(({ id }) => id));
  const readOnly = new Set(turn.memories.filter((memory) => memory.readOnly === true).map(({ id }) => id));
  const sources = { user: foldedText(turn.message), agent: foldedText(turn.answer) };
  const changed = new Set<string>();
  const operations: MemoryOperation[] = [];
  for (const { action, id, content, type, significance, speaker, quote, when } of memories) {
    if (action === "change" && (id === null || !known.has(id)))
      throw new ToolError(`The answer changes the memory "${id ?? ""}", which was not offered.`, {
        retriable: true,
      });
    const text = cut(content.trim(), MAX_CONTENT);
    const evidence = foldedText(quote);
    const isEvident = evidence !== "" && ` ${sources[speaker]} `.includes(` ${evidence} `);
    if (text === "" || !isEvident || namesSecret(text)) continue;
    if (speaker === "agent" && type !== "decision") continue;
    const at = toIso(timeOf(when, turn));
    const isAdded = action === "add" || id === null || readOnly.has(id);
    const fields = {
      ...{ content: text, type, significance: Math.min(1, Math.max(0, significance)) },
      ...{ time: at, validFrom: at },
    };
    if (isAdded) operations.push({ op: "write", ...fields });
    else if (!changed.has(id)) {
      changed.add(id);
      operations.push({ op: "update", memoryId: id, ...fields });
    }
  }
  return operations.slice(0, MAX_MEMORIES);
}

/** Returns the time of a memory. Without a plausible time in the answer, this is the time of the turn (LEARN-6). */
function timeOf(when: string | null, { time, zone }: LearnedTurn): number {
  const read = when === null ? undefined : readLocalTime(when, zone);
  return read === undefined || read < EARLIEST || read > time + MAX_AHEAD_MS ? time : read;
}
