/**
 * The script of a message. It is the text of the message, so the model server can execute it and the checker can
 * predict the result independently.
 */
import { z } from "zod";

export const AGENT = "actor";

export const TOOL_EFFECTS = ["pure", "idempotent", "once"] as const;

const scriptSchema = z.strictObject({
  /** Idempotency key of the message. */
  key: z.string(),
  /** Effects of the tools that each reply calls, except the last reply. */
  rounds: z.array(z.array(z.enum(TOOL_EFFECTS))),
  /** Number of deltas of the last reply. */
  pieces: z.int(),
  /** Milliseconds between two deltas. */
  pieceMs: z.int(),
  /** Duration of a tool, in milliseconds. */
  toolMs: z.int(),
  /** Milliseconds from the acknowledgement to the user's stop of the turn. Absent if the user does not stop it. */
  stopMs: z.int().optional(),
});

export type Script = z.infer<typeof scriptSchema>;

const INTERIM_PIECES = 3;

export function contentOf(script: Script): string {
  return JSON.stringify(script);
}

/** Parses a script. Throws for any other text. */
export function scriptOf(content: unknown): Script {
  return scriptSchema.parse(JSON.parse(String(content)));
}

/**
 * Returns the deltas of a model call, counted from 0: the text beside the tool calls of a round, or the answer. All are
 * distinct.
 */
export function piecesOf({ key, rounds, pieces }: Script, call: number): string[] {
  const length = call < rounds.length ? INTERIM_PIECES : pieces;
  return Array.from({ length }, (_, index) => `${index === 0 ? "" : " "}${key}/${call}.${index}`);
}

export function textOf(script: Script, call: number): string {
  return piecesOf(script, call).join("");
}

/** Returns the name of a tool call, which is part of the URL at the hit server. */
export function callName({ key }: Script, round: number, index: number): string {
  return `${key}/${round}/${index}`;
}

/** Returns all tool calls of a script. */
export function toolCallsOf(script: Script): { name: string; effect: Script["rounds"][number][number] }[] {
  return script.rounds.flatMap((effects, round) =>
    effects.map((effect, index) => ({ name: callName(script, round, index), effect })),
  );
}

/** Creates a random script of up to three rounds of tools and a text of 5 to 30 deltas. One script in eight has a stop. */
export function randomScript(random: () => number, key: string): Script {
  const within = (from: number, to: number) => from + Math.floor(random() * (to - from + 1));
  const effect = () => TOOL_EFFECTS[within(0, TOOL_EFFECTS.length - 1)] ?? "once";
  const round = () => Array.from({ length: within(1, 3) }, effect);
  return {
    key,
    rounds: Array.from({ length: within(0, 3) }, round),
    pieces: within(5, 30),
    pieceMs: within(8, 30),
    toolMs: within(20, 250),
    ...(within(1, 8) === 1 ? { stopMs: within(0, 600) } : {}),
  };
}
