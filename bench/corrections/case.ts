/**
 * The case `corrections`: a user sends "Book Monday", and a moment later "No, Tuesday", in conversations of each message order.
 * Counts the bookings. Wrong and second bookings are reported.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createClient, type DramatisClient, type Frame, type TurnOrder } from "../../src/client/index.ts";
import { buildBundle } from "../harness/bundle.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { serve } from "../harness/workerd.ts";
import { type Booking, CORRECTION, FIRST, Office } from "./office.ts";

const ORDERS: readonly TurnOrder[] = ["parallel", "queued", "interrupt"];
const AT_ONCE = 20;
/** Latest time of the correction, in milliseconds. The first turn has ended by then. */
const LATEST_MS = 500;

const OUTCOMES = ["one booking", "booked and moved", "booked twice", "wrong in the end"] as const;
type Outcome = (typeof OUTCOMES)[number];

/** Options: `--corrections`, their number for each order. */
export async function runCorrections(directory: string, args: readonly string[]): Promise<ResultRow[]> {
  const { values } = parseArgs({
    args: [...args],
    options: { corrections: { type: "string", default: "200" } },
  });
  const count = Number(values.corrections);
  const bundle = await buildBundle(
    join(directory, "bundle"),
    join(BENCH_DIR, "corrections", "wrangler.jsonc"),
  );
  const office = new Office();
  await office.start();
  const site = join(directory, "site");
  await mkdir(site, { recursive: true });
  const variables = { DRAMATIS_LOCAL: "1", OPENAI_BASE_URL: `${office.baseUrl}/v1` };
  const server = await serve(bundle, site, { variables });
  try {
    const client = createClient({ baseUrl: `http://127.0.0.1:${server.port}` });
    const rows: ResultRow[] = [];
    for (const order of ORDERS) {
      const outcomes: Outcome[] = [];
      for (let n = 0; n < count; n += AT_ONCE) {
        const group = Array.from({ length: Math.min(AT_ONCE, count - n) }, (_, index) => {
          const delayMs = ((n + index) / count) * LATEST_MS;
          return correct(client, { order, customer: `${order}${n + index}`, delayMs });
        });
        await Promise.all(group);
        outcomes.push(...group.map((_, index) => outcomeOf(office.bookingsOf(`${order}${n + index}`))));
      }
      for (const outcome of OUTCOMES) {
        const times = outcomes.filter((found) => found === outcome).length;
        rows.push(summarise({ case: "corrections", system: order, metric: outcome, unit: "count" }, [times]));
      }
    }
    return rows;
  } finally {
    await server.stop();
    await office.close();
  }
}

/** Returns a line for each order with a wrong or a second booking after a correction. */
export function correctionsVerdict(rows: readonly ResultRow[]): string[] {
  return rows
    .filter(
      ({ metric, median }) => median > 0 && (metric === "booked twice" || metric === "wrong in the end"),
    )
    .map(({ system, metric, median }) => `${system}: ${median} ${metric}`);
}

async function correct(
  client: DramatisClient,
  { order, customer, delayMs }: { order: TurnOrder; customer: string; delayMs: number },
): Promise<void> {
  const { id } = await client.conversations.create({ agentId: "clerk", turns: order });
  const first = client.streamTurn(id, { content: `${FIRST} for ${customer}.` });
  // Requests may overtake each other, so the correction follows an accepted message.
  const accepted = await first.next();
  if (!accepted.done) check(accepted.value);
  const rest = readAll(first);
  await pause(delayMs);
  await Promise.all([rest, readAll(client.streamTurn(id, { content: `${CORRECTION} for ${customer}.` }))]);
}

/** Reads a turn to its end. */
async function readAll(frames: AsyncGenerator<Frame>): Promise<void> {
  for await (const frame of frames) check(frame);
}

function check(frame: Frame): void {
  if (frame.type === "turn.failed" && frame.data.error.code !== "CANCELLED") {
    throw new Error(`A turn failed with ${frame.data.error.code}: ${frame.data.error.message}`);
  }
}

function outcomeOf(bookings: readonly Booking[]): Outcome {
  const last = bookings.at(-1);
  if (last?.day !== "Tuesday") return "wrong in the end";
  if (bookings.length === 1) return "one booking";
  return bookings.length === 2 && last.instead === "Monday" ? "booked and moved" : "booked twice";
}
