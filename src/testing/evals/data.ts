/** The data of evals: JSON Lines files and recordings. */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { recordingSchema, type TurnRecording } from "../../protocol/recording.ts";
import { invalid } from "../../shared/errors.ts";
import type { JsonValue } from "../../shared/json.ts";
import { validate } from "../../shared/validation.ts";
import type { EvalCase } from "./eval.ts";
import { answerIn } from "./recorded-turn.ts";

const json = z.json() as z.ZodType<JsonValue>;
const replySchema = z.union([
  z.string(),
  z.strictObject({
    text: z.string().exactOptional(),
    calls: z
      .array(z.strictObject({ name: z.string(), input: z.record(z.string(), z.json()) }))
      .exactOptional(),
    error: z.string().exactOptional(),
    unchecked: z.literal(true).exactOptional(),
  }),
]);
const caseSchema = z.looseObject({
  id: z.string().exactOptional(),
  input: json,
  expected: json.exactOptional(),
  replies: z.array(replySchema).exactOptional(),
  recording: recordingSchema.exactOptional(),
});

/**
 * Returns the cases of a JSON Lines file: one `{id?, input, expected?, replies?}` a line. Throws `INVALID_INPUT` with the number of the line.
 * @example fromJsonl("evals/support.jsonl")
 */
export function fromJsonl(path: string): EvalCase[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .flatMap((line, index) =>
      line.trim() === ""
        ? []
        : [validate(caseSchema, parsed(line, path, index + 1), "", `${path}:${index + 1}`)],
    );
}

/**
 * Returns a case for each recorded turn. Its input is the message, and `expected` is the recorded answer.
 * @example fromRecordings("test/fixtures/turn-1.json", "test/fixtures/turn-2.json")
 */
export function fromRecordings(...recordings: readonly (string | TurnRecording)[]): EvalCase[] {
  return recordings.map((given): EvalCase => {
    const value = typeof given === "string" ? parsed(readFileSync(given, "utf8"), given, 1) : given;
    const recording = validate(
      recordingSchema,
      value,
      "",
      typeof given === "string" ? given : "The recording",
    );
    // SAFETY: the recording has passed its schema, and an input is JSON.
    return {
      id: recording.turnId,
      input: recording.turn.input as JsonValue,
      expected: answerIn(recording),
      recording,
    };
  });
}

function parsed(text: string, path: string, line: number): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw invalid(`${path}:${line} is not JSON.`, { cause });
  }
}
