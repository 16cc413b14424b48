/** Whole and streamed answers, for the OpenAI protocols and MCP. */
import {
  type AnswerEncoder,
  AnswerReader,
  answerOf,
  REPLY_RESTARTED,
  type TurnAnswer,
} from "../../compat/answer.ts";
import { DramatisError, toErrorData } from "../../shared/errors.ts";
import type { PendingAnswer } from "./turns.ts";

/** Returns the answer once it has completed or failed. Throws the error of the subscription. */
export async function wholeAnswer(pending: PendingAnswer): Promise<TurnAnswer> {
  // Send only the complete answer, so that no text must be withdrawn.
  const reader = new AnswerReader({ ...pending.address, finalOnly: true });
  for await (const frame of pending.frames()) {
    reader.push(frame);
    if (reader.isOver) break;
  }
  return finishedAnswer(pending);
}

/** Yields the answer as payloads of its protocol while the turn runs. */
export async function* streamedAnswer<Payload>(
  pending: PendingAnswer,
  encoder: AnswerEncoder<Payload>,
  signal: AbortSignal,
): AsyncGenerator<Payload, void> {
  const reader = new AnswerReader(pending.address);
  try {
    yield* encoder.start();
    for await (const frame of pending.frames(signal)) {
      for (const event of reader.push(frame)) {
        if (event.type === "failed" && event.error === REPLY_RESTARTED) {
          yield* encoder.fail(event.error);
          return;
        }
        yield* encoder.push(event);
      }
      if (reader.isOver) break;
    }
    if (signal.aborted) return;
    yield* encoder.end(await finishedAnswer(pending));
  } catch (error) {
    if (!(error instanceof DramatisError)) console.error(error);
    yield* encoder.fail(toErrorData(error));
  }
}

/** Returns the answer of a turn that has ended, or that waits for the client. */
export async function finishedAnswer({ address, view }: PendingAnswer): Promise<TurnAnswer> {
  const answer = answerOf(await view(), address);
  if (answer === null) throw new Error("The turn must contain an answer that has ended.");
  return answer;
}
