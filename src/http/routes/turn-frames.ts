/**
 * The frames of one turn, read from its conversation by whoever speaks another protocol in front of it.
 *
 * FOLLOW-1  A stream that breaks off before the turn's end, because the actor went away, is taken up after the last number
 *           that was seen: its reader notices nothing but what the frames say.
 */

import type { ConversationActor } from "../../protocol/actor-lookup.ts";
import { type Frame, parseFrame } from "../../protocol/frames.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";

type Bytes = ReadableStream<Uint8Array>;

/** Attempts to take up a stream without a durable frame in between. */
const MAX_ATTEMPTS = 5;

/** Whose turn it is, and how its actor is found; a stub is of no use after its actor went away. */
export interface TurnSource {
  conversation(): Promise<ConversationActor>;
  principal: Principal;
  turnId: string;
}

/** Where the reading begins, and when it ends early. */
export interface ReadOptions {
  /** After this entry; the turn's first when absent. */
  from?: number;
  /** A stream that has been opened already. */
  opened?: Bytes;
  signal?: AbortSignal | undefined;
}

/**
 * The turn's frames up to its last. Leaving the loop, or aborting the signal, ends the stream, not the turn. Throws what a
 * subscriber is refused with, `UNAVAILABLE` where the actor does not come back.
 */
export async function* turnFrames(
  { conversation, principal, turnId }: TurnSource,
  { from, opened, signal }: ReadOptions = {},
): AsyncGenerator<Frame, void> {
  let position = from;
  let stream = opened;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    try {
      const options = {
        turnId,
        encoding: "ndjson",
        ...defined({ from: position }),
      } as const;
      stream ??= unwrap(await (await conversation()).subscribe(principal, options));
      for await (const frame of framesIn(stream, signal)) {
        if (frame.type === "error" && frame.data.code === "UNAUTHENTICATED") {
          throw new DramatisError("UNAUTHENTICATED", frame.data.message);
        }
        if (frame.seq !== undefined) {
          attempt = 0;
          position = frame.seq;
        }
        yield frame;
        if (frame.type === "turn.completed" || frame.type === "turn.failed") return;
      }
    } catch (error) {
      if (error instanceof DramatisError) throw error;
      console.warn("A turn's stream broke off.", error);
    }
    if (signal?.aborted) return;
    stream = undefined;
  }
  throw new DramatisError("UNAVAILABLE", "The conversation cannot be followed now. Ask again in a moment.", {
    retriable: true,
  });
}

/** Frames of a stream of lines, until it ends or the signal aborts. */
async function* framesIn(stream: Bytes, signal: AbortSignal | undefined): AsyncGenerator<Frame, void> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  // A read that waits for another actor does not end by itself when the reader leaves.
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
