/** Writes a provider's stream as bytes, in every form that the wire format allows, and decodes it. */
import fc from "fast-check";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { eventData } from "../../src/adapters/gateway/events.ts";
import type { ProviderId } from "../../src/model/profile.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import { payloadText } from "./decoding.ts";

export interface WireStyle {
  newline: "\n" | "\r\n" | "\r";
  comments: boolean;
  bom: boolean;
}

export const wireStyles: fc.Arbitrary<WireStyle> = fc.record({
  newline: fc.constantFrom("\n", "\r\n", "\r"),
  comments: fc.boolean(),
  bom: fc.boolean(),
});

const PLAIN_STYLE: WireStyle = { newline: "\n", comments: false, bom: false };

/** Writes payloads as server-sent events; the `type` of a payload names its event. */
export function toBytes(payloads: readonly unknown[], style: WireStyle = PLAIN_STYLE): Uint8Array {
  const { newline, comments, bom } = style;
  const events = payloads.map(payloadText).map((data) => {
    const name = /^\{"type":"([\w.]+)"/.exec(data)?.[1];
    const comment = comments ? `: keep-alive${newline}${newline}` : "";
    const event = name === undefined ? "" : `event: ${name}${newline}`;
    return `${comment}${event}data:${comments ? "" : " "}${data}${newline}${newline}`;
  });
  return new TextEncoder().encode((bom ? "\uFEFF" : "") + events.join(""));
}

/** Cuts bytes into pieces that end at these places. A repeated place makes an empty piece. */
export function cutAt<Bytes extends Uint8Array>(bytes: Bytes, places: readonly number[]): Uint8Array[] {
  const ends = places.map((place) => place % (bytes.length + 1)).sort((one, other) => one - other);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(index === 0 ? 0 : ends[index - 1], end));
}

function streamOf(chunks: readonly Uint8Array[]): ReadableStream<Uint8Array> {
  const rest = [...chunks];
  return new ReadableStream({
    pull(controller) {
      const chunk = rest.shift();
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    },
  });
}

const ATTEMPT = { signal: new AbortController().signal, reading() {}, received() {}, waiting() {} };

/** Decodes a body with the gateway's parser and the provider's decoder. */
export async function decodeBytes(
  provider: ProviderId,
  chunks: readonly Uint8Array[],
): Promise<ModelDelta[]> {
  const decoder = adapterFor(provider).decoder();
  const deltas: ModelDelta[] = [];
  for await (const batch of eventData(streamOf(chunks), ATTEMPT)) {
    for (const data of batch) deltas.push(...decoder.push(data));
  }
  return [...deltas, ...decoder.end()];
}
