/**
 * The case `load`: many live conversations, each with several clients that read, for one minute. A run fails if a turn
 * fails, a client loses its connection, or a client does not see every turn.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type ConversationConnection, connectConversation, createClient } from "../../src/client/index.ts";
import { buildBundle } from "../harness/bundle.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { cpuOf, rssOf } from "../harness/process-figures.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { type Server, serve } from "../harness/workerd.ts";
import { startModel } from "../readers/model.ts";

const KB = 1_000;
/** Length of an answer in characters. */
const ANSWER = 500;
/** Pause of a user between an answer and the next message, in milliseconds. */
const THINKING_MS = 4_000;
/** Time limit for the last answers to reach all clients, in milliseconds. */
const CALM_MS = 30_000;

interface Load {
  conversations: number;
  sockets: number;
  seconds: number;
}

/** One conversation and its clients. The first client talks. */
interface Room {
  clients: ConversationConnection[];
  turns: number;
}

/** Options: `--conversations`, `--sockets` (of all conversations together), `--seconds`. */
export async function runLoad(directory: string, args: readonly string[]): Promise<ResultRow[]> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      conversations: { type: "string", default: "200" },
      sockets: { type: "string", default: "1000" },
      seconds: { type: "string", default: "60" },
    },
  });
  const load = {
    conversations: Number(values.conversations),
    sockets: Number(values.sockets),
    seconds: Number(values.seconds),
  };
  const bundle = await buildBundle(join(directory, "bundle"), join(BENCH_DIR, "readers", "wrangler.jsonc"));
  const model = await startModel();
  const site = join(directory, "site");
  await mkdir(site, { recursive: true });
  const server = await serve(bundle, site, {
    variables: { DRAMATIS_LOCAL: "1", OPENAI_BASE_URL: model.baseUrl },
  });
  try {
    return await measure(server, load);
  } finally {
    await server.stop();
    await model.close();
  }
}

async function measure({ port, pid }: Server, load: Load): Promise<ResultRow[]> {
  const baseUrl = `http://127.0.0.1:${port}`;
  const client = createClient({ baseUrl });
  await client.conversations.create({ agentId: "reader" });
  const idle = rssOf(pid);
  const rooms: Room[] = [];
  try {
    for (let n = 0; n < load.conversations; n += 1) {
      const { id } = await client.conversations.create({ agentId: "reader" });
      const sockets = Math.round(load.sockets / load.conversations);
      const clients = Array.from({ length: sockets }, () => connectConversation({ id, host: baseUrl }));
      rooms.push({ clients, turns: 0 });
      await Promise.all(clients.map((connection) => until(connection, isOpen)));
    }
    const losses = watchLosses(rooms);
    const [cpu, startedAt] = [cpuOf(pid), Date.now()];
    const times = (
      await Promise.all(rooms.map((room) => talk(room, startedAt + load.seconds * 1_000)))
    ).flat();
    const used = cpuOf(pid) - cpu;
    const grown = (rssOf(pid) - idle) / KB;
    await Promise.all(rooms.map(checkAll));
    if (losses.size > 0) throw new Error(`Clients lost their connection: ${[...losses].join(", ")}.`);
    const of = { case: "load", system: "dramatis" };
    return [
      summarise({ ...of, metric: "answer", unit: "ms" }, times),
      summarise({ ...of, metric: "turns", unit: "count" }, [times.length]),
      summarise({ ...of, metric: "processor time per turn", unit: "ms" }, [used / times.length]),
      summarise({ ...of, metric: "processor time per conversation", unit: "ms" }, [
        used / load.conversations,
      ]),
      summarise({ ...of, metric: "memory per conversation", unit: "kB" }, [grown / load.conversations]),
    ];
  } finally {
    for (const { clients } of rooms) for (const connection of clients) connection.close();
  }
}

/** Sends one message after another until `endAt`. Returns the milliseconds until each answer. */
async function talk(room: Room, endAt: number): Promise<number[]> {
  const [speaker] = room.clients;
  const times: number[] = [];
  if (speaker === undefined) return times;
  await pause(Math.random() * THINKING_MS);
  while (Date.now() < endAt) {
    const sentAt = performance.now();
    room.turns += 1;
    speaker.send(`answer ${ANSWER}`);
    await until(speaker, sawAll(room));
    times.push(performance.now() - sentAt);
    await pause(THINKING_MS);
  }
  return times;
}

/** Waits until every client of a conversation has all of its answers. */
async function checkAll(room: Room): Promise<void> {
  await Promise.all(room.clients.map((connection) => until(connection, sawAll(room))));
}

function sawAll({ turns }: Room): (connection: ConversationConnection) => boolean {
  return (connection) => {
    const { messages, turns: states, error } = connection.getSnapshot();
    const failed = error ?? states.find(({ error: failure }) => failure)?.error;
    if (failed) throw new Error(`A client got ${failed.code}: ${failed.message}`);
    const answers = messages.filter(({ role, content }) => role === "agent" && content.length === ANSWER);
    return answers.length >= turns;
  };
}

function isOpen(connection: ConversationConnection): boolean {
  return connection.getSnapshot().connection === "open";
}

/** Collects later connection states of clients, other than `open`. */
function watchLosses(rooms: readonly Room[]): ReadonlySet<string> {
  const seen = new Set<string>();
  for (const connection of rooms.flatMap(({ clients }) => clients)) {
    connection.subscribe(() => {
      if (!isOpen(connection)) seen.add(connection.getSnapshot().connection);
    });
  }
  return seen;
}

/** Waits until a client's state meets the condition. */
function until(
  connection: ConversationConnection,
  condition: (connection: ConversationConnection) => boolean,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      clearTimeout(timer);
      unsubscribe();
      settle();
    };
    const check = () => {
      try {
        if (condition(connection)) end(resolve);
      } catch (error) {
        end(() => reject(error));
      }
    };
    const timer = setTimeout(
      () => end(() => reject(new Error(`A client did not reach its state within ${CALM_MS} ms.`))),
      CALM_MS,
    );
    const unsubscribe = connection.subscribe(check);
    check();
  });
}
