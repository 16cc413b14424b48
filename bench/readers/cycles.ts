/**
 * Repeats a cycle: open idle clients, send to all of them, close them. The memory of workerd does not shrink when its heap
 * shrinks. If closed clients free their memory, later cycles do not add to it.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "../../src/client/index.ts";
import { buildBundle } from "../harness/bundle.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { rssOf } from "../harness/process-figures.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { type Server, serve } from "../harness/workerd.ts";
import { type IdleClient, openIdle } from "./idle-client.ts";
import { startModel } from "./model.ts";

const MB = 1_000_000;
const ANSWER = 4 * MB;
/** Milliseconds that the clients stay open, and milliseconds after their end until the memory is measured. */
const OPEN_MS = 8_000;
const CLOSED_MS = 15_000;

export interface Counts {
  sockets: number;
  streams: number;
  cycles: number;
}

/** The paths that the clients of a cycle open, and the function that sends to them. */
interface Door {
  socket: string;
  stream: string;
  send(): Promise<void>;
}

/** Runs cycles on Dramatis, and on a bare Durable Object that sends the same number of bytes to each socket. */
export async function runCycles(directory: string, counts: Counts): Promise<ResultRow[]> {
  const model = await startModel();
  try {
    const own = await onServer(join(directory, "own"), "wrangler.jsonc", model.baseUrl, async (server) =>
      cycles(server, counts, await conversationDoor(server)),
    );
    const bytes = own[0]?.perSocket ?? 0;
    const bare = await onServer(join(directory, "bare"), "bare.jsonc", model.baseUrl, (server) =>
      cycles(server, counts, {
        ...{ socket: "/socket", stream: "/stream" },
        send: async () => {
          await fetch(`http://127.0.0.1:${server.port}/send?bytes=${bytes}`);
        },
      }),
    );
    const rows = (system: string, found: readonly Cycle[]) =>
      found.map(({ closed }, at) =>
        summarise({ case: "readers", system, metric: `growth after cycle ${at + 1}`, unit: "MB" }, [closed]),
      );
    return [...rows("dramatis", own), ...rows("a bare Durable Object", bare)];
  } finally {
    await model.close();
  }
}

async function onServer<Result>(
  directory: string,
  config: string,
  baseUrl: string,
  run: (server: Server) => Promise<Result>,
): Promise<Result> {
  const bundle = await buildBundle(join(directory, "bundle"), join(BENCH_DIR, "readers", config));
  const site = join(directory, "site");
  await mkdir(site, { recursive: true });
  const server = await serve(bundle, site, { variables: { DRAMATIS_LOCAL: "1", OPENAI_BASE_URL: baseUrl } });
  try {
    return await run(server);
  } finally {
    await server.stop();
  }
}

async function conversationDoor({ port }: Server): Promise<Door> {
  const client = createClient({ baseUrl: `http://127.0.0.1:${port}` });
  const { id } = await client.conversations.create({ agentId: "reader" });
  return {
    ...{ socket: `/conversations/${id}`, stream: `/api/conversations/${id}/events` },
    send: async () => {
      for await (const _ of client.streamTurn(id, { content: `answer ${ANSWER}` }));
    },
  };
}

interface Cycle {
  /** Growth in MB while the clients wait, and after they have closed. */
  open: number;
  closed: number;
  /** Average number of received bytes of a socket. */
  perSocket: number;
}

async function cycles({ port, pid }: Server, counts: Counts, door: Door): Promise<Cycle[]> {
  const before = rssOf(pid);
  const grown = () => Math.round((rssOf(pid) - before) / MB);
  const found: Cycle[] = [];
  for (let cycle = 0; cycle < counts.cycles; cycle++) {
    const idle: IdleClient[] = [];
    for (let n = 0; n < counts.sockets; n++) idle.push(await openIdle(port, door.socket, "socket"));
    for (let n = 0; n < counts.streams; n++) idle.push(await openIdle(port, door.stream, "stream"));
    await door.send();
    await pause(OPEN_MS);
    const open = grown();
    const drained = await Promise.all(idle.map((client) => client.drain(2_000, "")));
    const sum = drained.slice(0, counts.sockets).reduce((total, { bytes }) => total + bytes, 0);
    const perSocket = Math.round(sum / Math.max(1, counts.sockets));
    await pause(CLOSED_MS);
    found.push({ open, closed: grown(), perSocket });
    console.log(`cycle ${cycle + 1}: ${JSON.stringify(found.at(-1))}`);
  }
  return found;
}
