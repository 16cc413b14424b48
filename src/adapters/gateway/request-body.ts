/**
 * Writes the body of a request: a text, or a stream that reads its media in pieces, so media are never held whole.
 *
 * SENDBODY-1  The bytes equal `JSON.stringify` of the body, with each placeholder replaced by its media in base64. Their number is known
 *             before the first read.
 * SENDBODY-2  Media are read again for every request, one piece ahead of the connection. Reading ends with `stop`.
 */
import type { DeferredMedia, ModelRequest } from "../../model/gateway.ts";
import { toBase64Bytes } from "../../shared/base64.ts";

/** Bytes of media that are read at a time: a multiple of 3, so that the base64 of the pieces can be joined. */
export const PIECE_BYTES = 3 * 128 * 1024;

export interface RequestBody {
  /** The options of `fetch`. A stream has its `content-length`. */
  init: { body: string } | { body: ReadableStream<Uint8Array>; duplex: "half" };
  headers: Record<string, string>;
  stop(): void;
}

export interface RequestBodyOptions {
  /** A multiple of 3. Default: `PIECE_BYTES`. */
  pieceBytes?: number;
  /** Called with `true` before a read, and with `false` when the piece is ready or missing. */
  onReading?: (isReading: boolean) => void;
}

export function requestBody(
  { body, media }: Pick<ModelRequest, "body" | "media">,
  { pieceBytes = PIECE_BYTES, onReading = () => undefined }: RequestBodyOptions = {},
): RequestBody {
  const text = JSON.stringify(body);
  if (media === undefined || media.size === 0) return { init: { body: text }, headers: {}, stop() {} };
  const encoder = new TextEncoder();
  const cuts = new RegExp(`(${[...media.keys()].join("|")})`);
  const segments = text.split(cuts).map((part) => media.get(part) ?? encoder.encode(part));
  const length = segments.reduce((sum, segment) => sum + lengthOf(segment), 0);
  const pieces = piecesOf(segments, pieceBytes);
  const stream = new ReadableStream<Uint8Array>({
    // Without a length, the platform uses chunked encoding, which some providers refuse.
    expectedLength: length,
    async pull(controller) {
      onReading(true);
      const { done, value } = await pieces.next();
      onReading(false);
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: stop,
  });
  function stop() {
    void pieces.return(undefined);
  }
  return {
    init: { body: stream, duplex: "half" },
    headers: { "content-length": String(length) },
    stop,
  };
}

type Segment = Uint8Array | DeferredMedia;

function lengthOf(segment: Segment): number {
  return segment instanceof Uint8Array ? segment.byteLength : 4 * Math.ceil(segment.size / 3);
}

async function* piecesOf(
  segments: readonly Segment[],
  pieceBytes: number,
): AsyncGenerator<Uint8Array, undefined> {
  for (const segment of segments) {
    if (segment instanceof Uint8Array) {
      if (segment.byteLength > 0) yield segment;
      continue;
    }
    for (let offset = 0; offset < segment.size; offset += pieceBytes) {
      const bytes = await segment.read(offset, Math.min(pieceBytes, segment.size - offset));
      yield toBase64Bytes(bytes);
    }
    // The stream pulls again after the connection has sent the last piece.
    segment.sent?.();
  }
}
