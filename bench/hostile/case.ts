/**
 * The case `hostile`: plain requests of another tenant while 100 hostile requests of one kind run. Fails if a plain request
 * waits longer than `MAX_WAIT_MS`. With `/proc`, it also measures processor time.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parseArgs } from "node:util";
import { SignJWT } from "jose";
import { HOSTILE_SHAPES } from "../../test/support/hostile-json.ts";
import {
  HOSTILE_CALLS,
  HOSTILE_PATTERNS,
  HOSTILE_SCHEMAS,
  HOSTILE_TOOLS,
  type HostileCase,
} from "../../test/support/hostile-schemas.ts";
import { HOSTILE_TASKS, type HostileTask } from "../../test/support/hostile-tasks.ts";
import { type Reply, startOpenAIServer, textReply, toolReply } from "../../test/support/openai-server.ts";
import { buildBundle } from "../harness/bundle.ts";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";
import { serve } from "../harness/workerd.ts";
import { AGENT, OTHER, TENANTS } from "./agent.ts";

const SECRET = createHash("sha512").update("bench").digest("base64");
/** Hostile requests of each kind. */
const COUNT = 100;
/** Default of the option `--at-once`: hostile requests at the same time. */
const AT_ONCE = 4;
/** The kind of requests for comparison. */
const ORDINARY = "ordinary turns";
/** Limit of the other tenant's wait. */
const MAX_WAIT_MS = 200;
/** Pause between the other tenant's requests. */
const PAUSE_MS = 5;

/** Milliseconds of a tick of processor time in `/proc`. */
const TICK_MS = 10;

/** Sends a request of a tenant. Resolves with its status when the response has ended. */
type Send = (
  method: string,
  path: string,
  body?: string,
  accept?: string,
) => Promise<{ status: number; text: string }>;

export async function runHostile(directory: string, args: readonly string[]): Promise<ResultRow[]> {
  const { values } = parseArgs({
    args: [...args],
    options: { "at-once": { type: "string", default: String(AT_ONCE) } },
  });
  const atOnce = Number(values["at-once"]);
  if (!(atOnce >= 1)) throw new Error("--at-once must be a number of requests.");
  const bundle = await buildBundle(join(directory, "bundle"), join(BENCH_DIR, "hostile", "wrangler.jsonc"));
  const replies = new Map<string, Reply>();
  const model = await startOpenAIServer({
    script: ({ body }) => {
      const { messages = [] } = body;
      const asked = messages.findLast(({ role }) => role === "user")?.content ?? "";
      const isAnswer = messages.at(-1)?.role === "tool";
      return (isAnswer ? undefined : replies.get(asked)) ?? textReply("{}");
    },
  });
  const variables = { AUTH_SECRET: SECRET, OPENAI_BASE_URL: model.baseUrl };
  const server = await serve(bundle, join(directory, "site"), { variables });
  try {
    const baseUrl = `http://127.0.0.1:${server.port}`;
    const target = await conversation(await sender(baseUrl, OTHER, "first"));
    const requests = {
      [ORDINARY]: Array.from({ length: COUNT }, () =>
        turn({ schema: { type: "object" }, reply: {} }, replies),
      ),
      schemas: cycle(HOSTILE_SCHEMAS).map((one) => turn(one, replies)),
      patterns: cycle(HOSTILE_PATTERNS).map((one) => turn(one, replies)),
      "calls of tools": cycle(HOSTILE_CALLS).map((one) => calls(one, replies)),
      "runs of tasks": cycle(Object.fromEntries(HOSTILE_TASKS.map((one) => [one.id, one]))).map((one) =>
        runs(one, replies),
      ),
      shapes: cycle(HOSTILE_SHAPES),
    };
    const rows: ResultRow[] = [];
    for (const [kind, bodies] of Object.entries(requests)) {
      // Each principal has a limit of requests, so each kind has its own principals.
      const [attacker, other] = await Promise.all(TENANTS.map((tenant) => sender(baseUrl, tenant, kind)));
      if (attacker === undefined || other === undefined) throw new Error("There are two tenants.");
      const before = processorTime(server.pid);
      const waits = await waitsDuring(other, target, () => attack(attacker, bodies, atOnce));
      const of = { case: "hostile", system: "dramatis", unit: "ms" } as const;
      rows.push(summarise({ ...of, metric: `wait during ${kind}` }, waits));
      const spent = processorTime(server.pid) - before;
      if (spent > 0)
        rows.push(summarise({ ...of, metric: `processor per request of ${kind}` }, [spent / bodies.length]));
    }
    return rows;
  } finally {
    await server.stop();
    await model.close();
  }
}

/** Returns a finding for each kind during which the other tenant waited too long. */
export function hostileVerdict(rows: readonly ResultRow[]): string[] {
  const slow = rows.filter(
    ({ metric, max }) =>
      max > MAX_WAIT_MS && metric.startsWith("wait during ") && metric !== `wait during ${ORDINARY}`,
  );
  if (slow.length === 0)
    return [`Beside hostile requests, each request of another tenant waited at most ${MAX_WAIT_MS} ms.`];
  process.exitCode = 1;
  return slow.map(({ metric, max }) => `FAILED  ${metric}: ${max} ms; the limit is ${MAX_WAIT_MS} ms.`);
}

function cycle<Item>(items: Readonly<Record<string, Item>>): Item[] {
  const all = Object.values(items);
  return Array.from({ length: COUNT }, (_, n) => all[n % all.length]).filter((item) => item !== undefined);
}

let turns = 0;

/** Returns the body of a turn, and scripts the model to answer with the reply. */
function turn({ schema, reply }: HostileCase, replies: Map<string, Reply>): string {
  const content = nextContent();
  replies.set(content, textReply(JSON.stringify(reply)));
  return JSON.stringify({ content, output: { schema } });
}

/** Returns the body of a turn with tools, and scripts the model to call each tool with the reply as its arguments. */
function calls({ schema, reply }: HostileCase, replies: Map<string, Reply>): string {
  const content = nextContent();
  const names = Array.from({ length: HOSTILE_TOOLS }, (_, n) => `t${n}`);
  replies.set(content, toolReply(...names.map((name) => ({ name, arguments: reply }))));
  const tools = names.map((name) => ({ name, description: "A hostile tool.", inputSchema: schema }));
  return JSON.stringify({ content, tools });
}

/** Returns the body of a turn, and scripts the model to run the task several times at once. */
function runs({ id, input }: HostileTask, replies: Map<string, Reply>): string {
  const content = nextContent();
  const call = { name: `run_${id}`, arguments: input };
  replies.set(content, toolReply(...Array.from({ length: HOSTILE_TOOLS }, () => call)));
  return JSON.stringify({ content });
}

function nextContent(): string {
  turns += 1;
  return `Turn ${turns}`;
}

async function sender(baseUrl: string, tenant: string, subject: string): Promise<Send> {
  const token = await new SignJWT({ tenant, roles: ["admin"] })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(subject)
    .setExpirationTime("1h")
    .sign(new TextEncoder().encode(SECRET));
  return async (method, path, body, accept = "application/json") => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", accept };
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, text: await response.text() };
  };
}

async function conversation(send: Send): Promise<string> {
  const { status, text } = await send("POST", "/api/conversations", JSON.stringify({ agentId: AGENT }));
  if (status !== 201) throw new Error(`No conversation: ${status} ${text}`);
  return `/api/conversations/${JSON.parse(text).id}`;
}

/** Sends the bodies from several conversations at the same time. Each request is refused, or its turn ends. */
async function attack(send: Send, bodies: readonly string[], atOnce: number): Promise<void> {
  const targets = await Promise.all(Array.from({ length: atOnce }, () => conversation(send)));
  const left = [...bodies];
  await Promise.all(
    targets.map(async (target) => {
      for (let body = left.pop(); body !== undefined; body = left.pop()) {
        const { status, text } = await send("POST", `${target}/turns`, body, "text/event-stream");
        const isOver = [400, 413, 422].includes(status) || /"type":"turn\.(?:completed|failed)"/.test(text);
        if (!isOver) throw new Error(`The turn has not ended: ${status} ${text.slice(0, 500)}`);
      }
    }),
  );
}

/** Sends plain requests, one after another, until `work` ends. Returns their waits. */
async function waitsDuring(send: Send, target: string, work: () => Promise<void>): Promise<number[]> {
  const waits: number[] = [];
  let isOver = false;
  const working = work().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const before = performance.now();
    const { status } = await send("GET", target);
    if (status !== 200) throw new Error(`The other tenant got ${status}.`);
    waits.push(performance.now() - before);
    await pause(PAUSE_MS);
  }
  await working;
  return waits;
}

/** Returns the processor time of a process and its threads in milliseconds; 0 without `/proc`. */
function processorTime(pid: number): number {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return 0;
  const [, rest = ""] = readFileSync(file, "utf8").split(") ");
  const fields = rest.split(" ");
  const [user, system] = [fields[11], fields[12]];
  return (Number(user) + Number(system)) * TICK_MS;
}
