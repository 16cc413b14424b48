/**
 * What a message makes the model do. The message's own text is the script, so the model server knows what to say, and the
 * checker what must have been said, without either telling the other.
 */
import { z } from "zod";

export const AGENT = "actor";

export const TOOL_EFFECTS = ["pure", "idempotent", "once"] as const;

const scriptSchema = z.strictObject({
  /** The message's idempotency key. */
  key: z.string(),
  /** The effects of the tools that each reply but the last calls. */
  rounds: z.array(z.array(z.enum(TOOL_EFFECTS))),
  /** Deltas of the last reply. */
  pieces: z.int(),
  /** Milliseconds between two deltas. */
  pieceMs: z.int(),
  /** Milliseconds that a tool takes. */
  toolMs: z.int(),
});

export type Script = z.infer<typeof scriptSchema>;

const INTERIM_PIECES = 3;

export function contentOf(script: Script): string {
  return JSON.stringify(script);
}

/** Throws for a text that is no script. */
export function scriptOf(content: unknown): Script {
  return scriptSchema.parse(JSON.parse(String(content)));
}

/** The deltas of a turn's model call, from 0: beside the tool calls of a round, or of the answer. No two are alike. */
export function piecesOf({ key, rounds, pieces }: Script, call: number): string[] {
  const length = call < rounds.length ? INTERIM_PIECES : pieces;
  return Array.from({ length }, (_, index) => `${index === 0 ? "" : " "}${key}/${call}.${index}`);
}

export function textOf(script: Script, call: number): string {
  return piecesOf(script, call).join("");
}

/** Names a tool call of a script: where the hit server is asked to act. */
export function callName({ key }: Script, round: number, index: number): string {
  return `${key}/${round}/${index}`;
}

/** Every tool call that a script makes. */
export function toolCallsOf(script: Script): { name: string; effect: Script["rounds"][number][number] }[] {
  return script.rounds.flatMap((effects, round) =>
    effects.map((effect, index) => ({ name: callName(script, round, index), effect })),
  );
}

/** A script of up to three rounds of tools and a text of 5 to 30 deltas. */
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
  };
}
