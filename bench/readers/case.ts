/**
 * The case `readers`: idle clients open WebSockets and event streams and do not read them, over a long history and during a
 * long answer. Measures the memory of the workerd process. A run fails if a reading client is harmed, or if the server does not
 * close an idle client.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { connectConversation, createClient } from "../../src/client/index.ts";
import { buildBundle } from "../harness/bundle.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { rssOf } from "../harness/process-figures.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { type Server, serve } from "../harness/workerd.ts";
import { runCycles } from "./cycles.ts";
import { type IdleClient, openIdle } from "./idle-client.ts";
import { startModel } from "./model.ts";

const MB = 1_000_000;
/** Length of each message of the history. */
const MESSAGE = 250_000;
const HISTORY = 4 * MB;
const ANSWER = 4 * MB;
/** Time limit for the server to close idle clients, in milliseconds. */
const CUT_MS = 15_000;
/** Time for the server to free the memory of closed connections, in milliseconds. */
const CLOSED_MS = 15_000;
const AIM_MB = 150;

interface Growth {
  opened: number;
  turn: number;
  after: number;
  closed: number;
}

/**
 * Options: `--sockets`, `--streams`, `--acks` (the sockets promise acknowledgements, but do not send them), `--cycles N` (only opens and closes
 * the clients N times, on Dramatis and on a bare Durable Object).
 */
export async function runReaders(directory: string, args: readonly string[]): Promise<ResultRow[]> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      sockets: { type: "string", default: "40" },
      streams: { type: "string", default: "170" },
      acks: { type: "boolean", default: false },
      cycles: { type: "string", default: "0" },
    },
  });
  const counts = { sockets: Number(values.sockets), streams: Number(values.streams), acks: values.acks };
  const cycles = Number(values.cycles);
  if (cycles > 0) return runCycles(directory, { ...counts, cycles });
  const bundle = await buildBundle(join(directory, "bundle"), join(BENCH_DIR, "readers", "wrangler.jsonc"));
  const model = await startModel();
  const site = join(directory, "site");
  await mkdir(site, { recursive: true });
  const variables = { DRAMATIS_LOCAL: "1", OPENAI_BASE_URL: model.baseUrl };
  const server = await serve(bundle, site, { variables });
  try {
    const { opened, turn, after, closed } = await measure(server, counts);
    const row = (metric: string, value: number) =>
      summarise({ case: "readers", system: "dramatis", metric, unit: "MB" }, [value]);
    return [
      row("growth after opening", opened),
      row("growth during the turn", turn),
      row("growth after the cut", after),
      row("growth after all connections were closed", closed),
    ];
  } finally {
    await server.stop();
    await model.close();
  }
}

export function readersVerdict(rows: readonly ResultRow[]): string[] {
  const worst = Math.max(...rows.map(({ max }) => max));
  return worst <= AIM_MB ? [] : [`The process grew by ${worst} MB, more than ${AIM_MB} MB.`];
}

async function measure(
  { port, pid }: Server,
  { sockets, streams, acks }: { sockets: number; streams: number; acks: boolean },
): Promise<Growth> {
  const baseUrl = `http://127.0.0.1:${port}`;
  const client = createClient({ baseUrl });
  const { id } = await client.conversations.create({ agentId: "reader" });
  for (let sent = 0; sent < HISTORY; sent += MESSAGE) {
    const text = "A word of the history. ".repeat(MESSAGE / 23);
    for await (const _ of client.streamTurn(id, { content: text }));
  }
  const reader = connectConversation({ id, host: baseUrl });
  const seen: string[] = [];
  reader.subscribe(() => {
    const { connection } = reader.getSnapshot();
    if (seen.at(-1) !== connection) seen.push(connection);
  });
  await pause(500);
  const before = rssOf(pid);
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, rssOf(pid));
  }, 100);
  const grown = () => Math.round((peak - before) / MB);
  const mark = acks ? "acks=1" : "";
  const idle: IdleClient[] = [];
  for (let n = 0; n < sockets; n++) {
    idle.push(await openIdle(port, `/conversations/${id}?${n % 2 === 0 ? "from=0&" : ""}${mark}`, "socket"));
  }
  for (let n = 0; n < streams; n++) {
    const from = n % 2 === 0 ? "?from=0" : "";
    idle.push(await openIdle(port, `/api/conversations/${id}/events${from}`, "stream"));
  }
  await pause(1_000);
  const opened = grown();
  const startedAt = Date.now();
  let streamed = 0;
  let turnId = "";
  for await (const frame of client.streamTurn(id, { content: `answer ${ANSWER}` })) {
    turnId = frame.turnId ?? turnId;
    if (frame.type === "message.delta") streamed += frame.data.text.length;
  }
  const took = Date.now() - startedAt;
  const turn = grown();
  await pause(CUT_MS);
  const after = grown();
  clearInterval(watch);
  const rss = Math.round((rssOf(pid) - before) / MB);
  const last = reader.getSnapshot().messages.at(-1);
  const isWhole = last?.content.length === ANSWER;
  reader.close();
  const waited = Date.now() - startedAt;
  const drained = await Promise.all(idle.map((connection) => connection.drain(10_000, turnId)));
  for (const connection of idle) connection.close();
  await pause(CLOSED_MS);
  const closed = Math.round((rssOf(pid) - before) / MB);
  const bySocket = drained.slice(0, sockets);
  const byStream = drained.slice(sockets);
  const codes = Object.groupBy(bySocket, ({ closeCode }) => String(closeCode));
  console.log(
    [
      `the turn took ${took} ms, a stream got ${streamed} characters, the process ends at +${rss} MB, and at +${closed} MB after all connections were closed`,
      `close codes ${JSON.stringify(Object.fromEntries(Object.entries(codes).map(([code, all]) => [code, all?.length])))}`,
      `sockets without frames ${bySocket.filter(({ empty }) => empty).length} of ${sockets}`,
      `streams ended ${byStream.filter(({ ended }) => ended).length} of ${streams}`,
      `bytes per socket ≤ ${Math.max(0, ...bySocket.map(({ bytes }) => bytes))}, per stream ≤ ${Math.max(0, ...byStream.map(({ bytes }) => bytes))}`,
      `the reading client: ${seen.join(", ")}; whole answer: ${isWhole}`,
    ].join("\n"),
  );
  if (!isWhole || seen.includes("reconnecting"))
    throw new Error("The reading client reconnected or lacks a part of the answer.");
  // A socket without frames waits while other sockets use the isolate's limit. A socket with many bytes has more time.
  const uncut =
    bySocket.filter(
      ({ bytes, empty, closeCode, whole }) => closeCode !== 1013 && !whole && !empty && waited > cutMs(bytes),
    ).length + byStream.filter(({ ended, whole }) => !ended && !whole).length;
  if (uncut > 0)
    throw new Error(
      `The server did not close ${uncut} idle clients. Opened ${opened}, turn ${turn}, after ${after} MB.`,
    );
  return { opened, turn, after, closed };
}

/** Time limit for the server to close a socket with this many waiting bytes, with one second more than docs/http.md has. */
function cutMs(bytes: number): number {
  return 6_000 + bytes / 64;
}
