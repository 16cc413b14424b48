/** The measurement. In every round each system reads each stream once, in rotating order. */
import { type ReplyStream, replyStream } from "./streams.ts";
import { READINGS, type Reading } from "./systems.ts";

const WARM_UP_ROUNDS = 5;
const ROUNDS = 31;
/** Size of a network-like chunk, in bytes. */
const CHUNK_BYTES = 16 * 1024;

/** Measures of one system with one provider's stream, one sample per round. */
export interface Measured extends Pick<Reading, "provider" | "system"> {
  /** Throughput of a body in large chunks, in MB/s. */
  rate: number[];
  /** Time for 1 000 events of a body with one event per chunk, in milliseconds. */
  latency: number[];
}

export async function measure(): Promise<Measured[]> {
  const measured = READINGS.map((reading) => ({
    reading,
    stream: replyStream(reading.provider),
    rate: [] as number[],
    latency: [] as number[],
  }));
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
    const start = (round + WARM_UP_ROUNDS) % measured.length;
    for (const { reading, stream, rate, latency } of [
      ...measured.slice(start),
      ...measured.slice(0, start),
    ]) {
      const figures = [await megabytesPerSecond(reading, stream), await latencyOfEvents(reading, stream)];
      if (round < 0) continue;
      rate.push(figures[0] ?? Number.NaN);
      latency.push(figures[1] ?? Number.NaN);
    }
  }
  return measured.map(({ reading: { provider, system }, rate, latency }) => ({
    provider,
    system,
    rate,
    latency,
  }));
}

async function megabytesPerSecond({ read }: Reading, { body }: ReplyStream): Promise<number> {
  let place = 0;
  const source = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (place >= body.length) return controller.close();
      controller.enqueue(body.subarray(place, place + CHUNK_BYTES));
      place += CHUNK_BYTES;
    },
  });
  const before = performance.now();
  expectReply(await lastOf(await read(source)));
  return body.length / 1_000 / (performance.now() - before);
}

/** Each event arrives after the previous one has been read. */
async function latencyOfEvents({ read }: Reading, { events }: ReplyStream): Promise<number> {
  let next = 0;
  const source = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const event = events[next++];
        if (event === undefined) controller.close();
        else controller.enqueue(event);
      },
    },
    { highWaterMark: 0 },
  );
  const before = performance.now();
  expectReply(await lastOf(await read(source)));
  return ((performance.now() - before) / events.length) * 1_000;
}

async function lastOf(stream: AsyncIterable<unknown>): Promise<unknown> {
  let last: unknown;
  for await (const piece of stream) last = piece;
  return last;
}

/** Fails for an incomplete reply, because a reader that stops early would be the fastest. */
function expectReply(last: unknown): void {
  const isWhole = /"finish"|message_stop|response\.completed|"usage":|"finishReason"/.test(
    JSON.stringify(last),
  );
  if (!isWhole) throw new Error(`A reply ended with ${JSON.stringify(last)}.`);
}
