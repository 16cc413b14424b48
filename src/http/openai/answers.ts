/** Answers of turns, whole and streamed, for the routes of both OpenAI protocols. */

import {
  type AnswerEvent,
  type AnswerPart,
  AnswerReader,
  partOf,
  REPLY_RESTARTED,
} from "../../compat/answer.ts";
import type { TurnView } from "../../protocol/views.ts";
import { DramatisError, type ErrorData, toErrorData } from "../../shared/errors.ts";
import type { Asked } from "./turns.ts";

/** What a protocol says at each point of a streamed answer: payloads of server-sent events. */
export interface StreamEncoder<Payload> {
  start(): readonly Payload[];
  push(event: AnswerEvent): readonly Payload[];
  /** The answer is complete, or its turn has failed. */
  end(part: AnswerPart): readonly Payload[];
  /** The stream breaks off. */
  fail(error: Pick<ErrorData, "code" | "message">): readonly Payload[];
}

/** The answer, once it is complete or has failed. Throws what following it is refused with. */
export async function wholeAnswer({ address, frames, view }: Asked): Promise<AnswerPart> {
  // Nothing is sent before the answer is complete, so nothing has to be taken back.
  const reader = new AnswerReader({ part: address.part, finalOnly: true });
  for await (const frame of frames()) {
    reader.push(frame);
    if (reader.isOver) break;
  }
  return partIn(await view(), address);
}

/** The answer as it comes, as payloads of server-sent events. */
export async function* streamedAnswer<Payload>(
  { address, frames, view }: Asked,
  encoder: StreamEncoder<Payload>,
  signal: AbortSignal,
): AsyncGenerator<Payload, void> {
  const reader = new AnswerReader(address);
  try {
    yield* encoder.start();
    for await (const frame of frames(signal)) {
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
    yield* encoder.end(partIn(await view(), address));
  } catch (error) {
    if (!(error instanceof DramatisError)) console.error(error);
    yield* encoder.fail(toErrorData(error));
  }
}

function partIn(turn: TurnView, address: Asked["address"]): AnswerPart {
  const part = partOf(turn, address);
  if (part === null) throw new Error("An answer that has ended is in its turn.");
  return part;
}
