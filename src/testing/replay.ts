/** The replay of recorded turns in tests. */
import { replayRecording as replay } from "../agents/conversation/core/replay/replay.ts";
import { recordingSchema, type TurnReplay } from "../protocol/recording.ts";
import { DramatisError, invalid } from "../shared/errors.ts";
import { validate } from "../shared/validation.ts";

/**
 * Plans a recorded turn again without a call. Throws `INVALID_INPUT` for a value that is no recording.
 *
 * @example
 * expect(replayRecording(JSON.parse(file)).divergence).toBeNull();
 */
export function replayRecording(recording: unknown): TurnReplay {
  const checked = validate(recordingSchema, recording);
  try {
    return replay(checked);
  } catch (cause) {
    if (cause instanceof DramatisError) throw cause;
    const message = "The recording is malformed: planning cannot read it. Record the turn again.";
    throw invalid(message, { cause });
  }
}

/**
 * Replays a recorded turn, and throws an error with the first difference. Takes a recording, or its JSON text.
 *
 * @example
 * expectReplay(readFileSync("test/fixtures/turn.json", "utf8"));
 */
export function expectReplay(recording: unknown): void {
  const { divergence } = replayRecording(parsed(recording));
  if (divergence === null) return;
  const { seq, expected, actual } = divergence;
  throw new ReplayDivergence(
    `The turn diverges from its recording at entry ${seq}.\n  recorded: ${shown(expected)}\n  today:    ${shown(actual)}\nIf the change is intended, record the turn again.`,
    divergence,
  );
}

/** The error of `expectReplay`: today's code plans another entry than the recording has. */
export class ReplayDivergence extends Error {
  override readonly name = "ReplayDivergence";

  constructor(
    message: string,
    readonly divergence: NonNullable<TurnReplay["divergence"]>,
  ) {
    super(message);
  }
}

function parsed(recording: unknown): unknown {
  if (typeof recording !== "string") return recording;
  try {
    return JSON.parse(recording);
  } catch (cause) {
    const message = "The recording is not JSON. Export it with `GET …/turns/:turnId/recording`.";
    throw invalid(message, { cause });
  }
}

function shown(entry: object | null): string {
  return entry === null ? "no entry" : JSON.stringify(entry);
}
