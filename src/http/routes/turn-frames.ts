/**
 * The frames of one turn, for routes that translate them to another protocol.
 *
 * FOLLOW-1  If the stream breaks before the turn's end, because the actor was evicted, it resumes after the last received
 *           `seq`. Its reader does not notice.
 */
import type { ConversationActor } from "../../protocol/actor-lookup.ts";
import { endsTurn, type Frame, parseFrame } from "../../protocol/frames.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, unavailable, unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";

type Bytes = ReadableStream<Uint8Array>;

/** Attempts to resume a stream without a durable frame in between. */
const MAX_ATTEMPTS = 5;

/** A turn. `conversation` finds its actor for each attempt: a stub is useless after its actor was evicted. */
interface TurnSource {
  conversation(): Promise<ConversationActor>;
  principal: Principal;
  turnId: string;
}

export interface ReadOptions {
  /** Number of the entry before the first frame. Default: the whole turn. */
  from?: number;
  /** A stream that is open already. */
  opened?: Bytes;
  /** Also ends as soon as the turn waits for background work. */
  untilWaiting?: true;
  signal?: AbortSignal | undefined;
}

/**
 * Yields the turn's frames to its last. Leaving the loop or aborting the signal ends the stream, not the turn. Throws the
 * error of a refused subscription, and `UNAVAILABLE` if the actor does not return.
 */
export async function* turnFrames(
  { conversation, principal, turnId }: TurnSource,
  { from, opened, signal, untilWaiting }: ReadOptions = {},
): AsyncGenerator<Frame, void> {
  let position = from;
  let stream = opened;
  let mayEnd = false;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    try {
      const options = { turnId, encoding: "ndjson", ...defined({ from: position, untilWaiting }) } as const;
      stream ??= unwrap(await (await conversation()).subscribe(principal, options));
      for await (const frame of framesIn(stream, signal)) {
        if (frame.type === "error" && frame.data.code === "UNAUTHENTICATED")
          throw new DramatisError("UNAUTHENTICATED", frame.data.message);
        if (frame.seq !== undefined) {
          attempt = 0;
          position = frame.seq;
        }
        mayEnd = untilWaiting === true && waitsInBackground(frame);
        yield frame;
        if (endsTurn(frame)) return;
      }
    } catch (error) {
      if (error instanceof DramatisError) throw error;
      console.warn("The stream of a turn broke.", error);
    }
    if (signal?.aborted || mayEnd) return;
    stream = undefined;
  }
  throw unavailable("The conversation is not available. Try again in a moment.", {
    retriable: true,
  });
}

function waitsInBackground(frame: Frame): boolean {
  return frame.type === "turn.waiting" && frame.data.reason !== "client-tools";
}

/** Yields the frames of a stream of lines until it ends or the signal aborts. */
async function* framesIn(stream: Bytes, signal: AbortSignal | undefined): AsyncGenerator<Frame, void> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  // A pending read of another actor does not end when the reader leaves.
  const left = new Promise<{ done: true; value?: undefined }>((resolve) => {
    const leave = () => resolve({ done: true });
    if (signal?.aborted) leave();
    signal?.addEventListener("abort", leave, { once: true });
  });
  const next = () => Promise.race([reader.read(), left]);
  let rest = "";
  try {
    for (let { done, value } = await next(); !done; { done, value } = await next()) {
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const frame = parseFrame(line);
        if (frame !== null) yield frame;
      }
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}
