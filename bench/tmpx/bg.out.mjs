// ../../../tmp/bg.ts
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join as join6 } from "node:path";

// bench/kills/case.ts
import { join as join5 } from "node:path";

// src/agents/conversation/core/limits.ts
var MAX_QUEUED_BYTES = 32 * 1024 * 1024;
var MAX_WITHDRAWN_LENGTH = 64 * 1024;
var MAX_OUTPUT_SCHEMA = 64 * 1024;
var MAX_NATIVE_LENGTH = 256 * 1024;
var MAX_RECOVERIES = 10;
var MAX_TURN_RESULTS = 8 * 1024 * 1024;
var MAX_ACTIVE_CONTENT = 16 * 1024 * 1024;
var MAX_MEMORY_OPERATIONS_LENGTH = 64 * 1024;
var MAX_SHOWN_LENGTH = 256 * 1024;

// bench/harness/bundle.ts
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join as join2 } from "node:path";
import { z } from "zod";

// bench/harness/command.ts
import { spawn } from "node:child_process";
async function runCommand(file, args, options) {
  const env = { ...process.env, ...options.env };
  const child = spawn(file, args, { cwd: options.cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  const output = [];
  child.stdout.on("data", (chunk2) => output.push(chunk2));
  child.stderr.on("data", (chunk2) => output.push(chunk2));
  const code = await new Promise((resolve, reject2) => {
    child.once("error", reject2);
    child.once("close", resolve);
  });
  if (code === 0) return;
  const command = [file, ...args].join(" ");
  throw new Error(`${command} exited with ${code}:
${Buffer.concat(output).toString()}`);
}

// bench/harness/paths.ts
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
var require2 = createRequire(import.meta.url);
var BENCH_DIR = dirname(dirname(fileURLToPath(import.meta.url)));
var RESULTS_FILE = join(BENCH_DIR, "results.json");
var wranglerManifest = require2.resolve("wrangler/package.json");
var WRANGLER_SCRIPT = join(dirname(wranglerManifest), "bin", "wrangler.js");
function workerdBinary() {
  const workerd = createRequire(wranglerManifest)("workerd");
  const path = typeof workerd === "object" && workerd !== null && "default" in workerd && workerd.default;
  if (typeof path !== "string")
    throw new Error("workerd is not installed for this platform. Run `npm ci` again.");
  return path;
}

// bench/harness/bundle.ts
var configSchema = z.object({
  compatibility_date: z.string(),
  compatibility_flags: z.array(z.string()).default([]),
  migrations: z.array(z.object({ new_sqlite_classes: z.array(z.string()) })),
  durable_objects: z.object({ bindings: z.array(z.object({ name: z.string(), class_name: z.string() })) }).default({ bindings: [] }),
  services: z.array(z.object({ binding: z.string(), entrypoint: z.string() })).default([])
});
var EMAIL_IMPORT = /^import \{ EmailMessage(?: as (\w+))? \} from "cloudflare:email";$/gm;
async function buildBundle(directory, wranglerConfig) {
  const args = [WRANGLER_SCRIPT, "deploy", "--dry-run", "--outdir", directory, "--config", wranglerConfig];
  await runCommand(process.execPath, args, { cwd: BENCH_DIR, env: { WRANGLER_SEND_METRICS: "false" } });
  const modules = (await readdir(directory)).filter((file) => !/\.(map|md)$/.test(file));
  const [main, ...others] = modules;
  if (main === void 0 || others.length > 0) {
    throw new Error(`Expected one module in the bundle, found ${modules.join(", ")}.`);
  }
  const entry = join2(directory, main);
  const code = await readFile(entry, "utf8");
  await writeFile(
    entry,
    code.replace(EMAIL_IMPORT, (_, alias) => `class ${alias ?? "EmailMessage"} {}`)
  );
  return { config: configSchema.parse(JSON.parse(await readFile(wranglerConfig, "utf8"))), entry };
}

// bench/harness/results.ts
import { z as z2 } from "zod";
var rowSchema = z2.strictObject({
  case: z2.string(),
  system: z2.string(),
  metric: z2.string(),
  unit: z2.enum(["ms", "MB/s", "MB", "kB", "count", "ratio"]),
  median: z2.number(),
  min: z2.number(),
  max: z2.number(),
  /** Number of samples. */
  runs: z2.number()
});
function summarise(of, samples) {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (index) => round(sorted[index] ?? Number.NaN);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? at(middle) : round((at(middle - 1) + at(middle)) / 2);
  return { ...of, median, min: at(0), max: at(sorted.length - 1), runs: sorted.length };
}
function round(value) {
  return Math.round(value * 1e3) / 1e3;
}

// bench/kills/background/script.ts
import { z as z3 } from "zod";
var BACKGROUND_AGENT = "worker";
var BACKGROUND_TOOLS = ["research", "charge", "pay"];
var scriptSchema = z3.strictObject({
  /** Id of the signal. */
  key: z3.string(),
  calls: z3.array(z3.enum(BACKGROUND_TOOLS)),
  /** Duration of a tool, or delay of a result that comes later, in milliseconds. */
  ms: z3.int()
});
function textOf(script) {
  return JSON.stringify(script);
}
function scriptIn(content) {
  if (typeof content !== "string" || !content.startsWith("{")) return null;
  return scriptSchema.parse(JSON.parse(content));
}
function callName(key, index) {
  return `${key}/${index}`;
}
var LARGE = 80;
function randomBatch(random, name, isLarge) {
  const within2 = (from, to) => from + Math.floor(random() * (to - from + 1));
  const tool = () => BACKGROUND_TOOLS[within2(0, BACKGROUND_TOOLS.length - 1)] ?? "pay";
  return Array.from({ length: isLarge ? LARGE : within2(3, 10) }, (_, index) => ({
    key: `${name}m${index}`,
    calls: isLarge ? [] : Array.from({ length: within2(0, 3) }, tool),
    ms: within2(100, 4e3)
  }));
}

// bench/kills/background/check.ts
function checkBackground(history) {
  return history.finals.flatMap((final) => {
    const name = (rule, whats) => whats.map((what) => ({ rule, conversation: final.conversation, what }));
    return [
      ...name("KILL-12", messagesAmiss(final, history)),
      ...name("KILL-13", operationsAmiss(final, history)),
      ...name("KILL-14", callsAmiss(final, history))
    ];
  });
}
function messagesAmiss(final, { batches }) {
  const keys = final.messages.map(({ content }) => scriptIn(content)?.key ?? "");
  const own = batches.filter(({ conversation }) => conversation === final.conversation);
  const known = new Set(own.flatMap(({ scripts }) => scripts.map(({ key }) => key)));
  return [
    ...own.flatMap((batch) => batchAmiss(batch, keys)),
    ...keys.filter((key) => !known.has(key)).map((key) => `nobody sent ${key}`),
    ...endsAmiss(final)
  ];
}
function batchAmiss({ scripts, accepted }, keys) {
  const faults = accepted.flatMap((key) => {
    const turns = keys.filter((one) => one === key).length;
    return turns === 1 ? [] : [`${key} was accepted and has ${turns} turns`];
  });
  const places = scripts.map(({ key }) => keys.indexOf(key)).filter((place) => place >= 0);
  const isOrdered = places.every((place, index) => index === 0 || place > (places[index - 1] ?? 0));
  return isOrdered ? faults : [...faults, `the batch of ${scripts[0]?.key} began in the order ${places.join(" ")}`];
}
function endsAmiss({ journal }) {
  const ofTurns = Map.groupBy(journal, ({ turnId = "" }) => turnId);
  ofTurns.delete("");
  return [...ofTurns].flatMap(([turnId, entries]) => {
    const count = (type) => entries.filter((entry) => entry.type === type).length;
    const [completed, failed] = [count("turn.completed"), count("turn.failed")];
    if (completed + failed !== 1) return [`${turnId} ended ${completed + failed} times`];
    const isGivenUp = count("turn.resumed") >= MAX_RECOVERIES;
    return failed === 0 || isGivenUp ? [] : [`${turnId} failed after ${count("turn.resumed")} crashes`];
  });
}
function missingIn({ batches, given, finals }) {
  const journal = finals.flatMap((final) => final.journal);
  const has = (type) => journal.some((entry) => entry.type === type);
  return [
    ...batches.some(({ tries }) => tries > 1) ? [] : ["No batch was sent again."],
    ...has("conversation.queue.received") ? [] : ["No message waited in the queue."],
    ...given.some(({ status }) => status === 200) ? [] : ["No result came later."],
    ...has("turn.resumed") ? [] : ["No kill interrupted a turn."]
  ];
}
function operationsOf({ journal, messages }) {
  const requested = journal.filter(({ type }) => type === "tool.requested");
  const scripts = new Map(messages.map(({ turnId, content }) => [turnId, scriptIn(content)]));
  return requested.map(({ operationId: id = "", turnId = "" }) => {
    const index = requested.filter((entry) => entry.turnId === turnId).findIndex((entry) => entry.operationId === id);
    const ends = journal.filter(
      (entry) => entry.operationId === id && /^tool\.(?:completed|failed|cancelled)$/.test(entry.type)
    );
    const isInterrupted = journal.some(
      (entry) => entry.operationId === id && entry.type === "tool.interrupted"
    );
    return { id, turnId, tool: scripts.get(turnId)?.calls[index] ?? "unknown", ends, isInterrupted };
  });
}
function operationsAmiss(final, { answers }) {
  const operations = operationsOf(final);
  const completed = new Set(
    final.journal.flatMap(({ type, turnId }) => type === "turn.completed" ? [turnId] : [])
  );
  const outcomes = operations.flatMap(({ id, tool, ends, isInterrupted }) => {
    if (ends.length !== 1) return [`${tool} ${id} has ${ends.length} outcomes`];
    const [end] = ends;
    if (end?.type === "tool.completed") return [];
    const isUnknown = tool !== "research" && isInterrupted;
    return isUnknown ? [] : [`${tool} ${id} ends with ${end?.type}`];
  });
  const answered = final.messages.flatMap(({ content, turnId }) => {
    const script = scriptIn(content);
    if (script === null || !completed.has(turnId)) return [];
    const own = operations.filter((one) => one.turnId === turnId).map(({ id }) => id);
    const knows = answers.findLast(({ key }) => key === script.key)?.knows ?? [];
    const unknown = own.filter((id) => !knows.includes(id));
    return [
      ...own.length === script.calls.length ? [] : [`${script.key} has ${own.length} operations`],
      ...unknown.length === 0 ? [] : [`${script.key} was answered without ${unknown.join(", ")}`]
    ];
  });
  return [...outcomes, ...answered];
}
function callsAmiss(final, { hits, given }) {
  return operationsOf(final).flatMap(({ id, tool, ends: [end] }) => {
    const calls = hits.filter(({ operationId }) => operationId === id).length;
    const isTaken = given.some(({ operationId, status }) => operationId === id && status === 200);
    const hasSucceeded = end?.type === "tool.completed";
    return [
      ...tool !== "research" && calls > 1 ? [`${tool} ${id} was called ${calls} times`] : [],
      ...hasSucceeded && calls === 0 ? [`${tool} ${id} succeeded without a call`] : [],
      ...tool === "pay" && isTaken !== hasSucceeded ? [`the result of ${id} was ${isTaken ? "" : "not "}taken, and its outcome is ${end?.type}`] : []
    ];
  });
}

// bench/kills/background/measure.ts
function backgroundRows({ kills: kills2, batches, finals, given }) {
  const journal = finals.flatMap((final) => final.journal);
  const row = (metric, count) => summarise({ case: "kills", system: "dramatis", metric, unit: "count" }, [count]);
  const entries = (type) => journal.filter((entry) => entry.type === type).length;
  return [
    row("background: kills", kills2.length),
    row("background: turns", entries("turn.started")),
    row("background: batches sent again", batches.filter(({ tries }) => tries > 1).length),
    row("background: operations", entries("tool.requested")),
    row("background: results by handle", given.filter(({ status }) => status === 200).length),
    row("background: outcomes unknown", entries("tool.failed"))
  ];
}

// bench/kills/background/scenario.ts
import { setTimeout as pause2 } from "node:timers/promises";

// src/protocol/frames.ts
var PROTOCOL_VERSION = 1;
function endsTurn({ type }) {
  return type === "turn.completed" || type === "turn.failed";
}
function parseFrame(message) {
  const value = parseObject(message);
  const { v, type, time, data, seq } = value;
  const isFrame = v === PROTOCOL_VERSION && typeof type === "string" && typeof time === "string" && typeof data === "object" && data !== null && (seq === void 0 || typeof seq === "number");
  return isFrame ? value : null;
}
function isOfOtherVersion(message) {
  const { v, type } = parseObject(message);
  return typeof v === "number" && v !== PROTOCOL_VERSION && typeof type === "string";
}
function parseObject(text) {
  try {
    const value = typeof text === "string" ? JSON.parse(text) : null;
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

// src/client/errors.ts
var DramatisClientError = class extends Error {
  name = "DramatisClientError";
  code;
  /** HTTP status; 0 without a response. */
  status;
  /** Description of the problem and its remedy. */
  detail;
  /** Invalid parts of the input. */
  errors;
  /** Wait that the server requests before a retry, in milliseconds; `null` if it requests none. */
  retryAfter;
  constructor(problem) {
    super(problem.detail, problem.cause === void 0 ? void 0 : { cause: problem.cause });
    this.code = problem.code;
    this.status = problem.status;
    this.detail = problem.detail;
    this.errors = problem.errors ?? [];
    this.retryAfter = problem.retryAfter ?? null;
  }
  /** Reports whether the same request may succeed later. With the same idempotency key it takes effect once. */
  get retriable() {
    const isLost2 = this.code === "NETWORK" || this.code === "STREAM_INTERRUPTED";
    return isLost2 || this.status === 429 || this.status >= 500;
  }
};
function wrongInput(code, detail) {
  return new DramatisClientError({ code, status: 0, detail });
}
var OTHER_VERSION = `The server uses another protocol version than this client (${PROTOCOL_VERSION}). Update the client.`;
async function errorFromResponse(response) {
  const { status, statusText } = response;
  const { code, detail, title, errors } = asObject(await response.json().catch(() => void 0));
  const retryAfter = retryAfterOf(response);
  if (typeof code !== "string") {
    const detail2 = `HTTP ${status} ${statusText}`.trim();
    return new DramatisClientError({ code: "HTTP", status, detail: detail2, retryAfter });
  }
  return new DramatisClientError({
    code,
    status,
    detail: [detail, title, code].find((text) => typeof text === "string") ?? code,
    errors: Array.isArray(errors) ? errors.flatMap(inputIssue) : [],
    retryAfter
  });
}
function retryAfterOf({ headers }) {
  const seconds = headers.get("retry-after") ?? "";
  return /^[0-9]{1,9}$/.test(seconds) ? Number(seconds) * 1e3 : null;
}
function noAnswer(cause, signal) {
  if (signal?.aborted === true) return cause;
  const detail = "The server could not be reached. Check the address and the network, then try again.";
  return new DramatisClientError({ code: "NETWORK", status: 0, detail, cause });
}
function notJson({ url, status }, cause) {
  const detail = `The response of ${url} is not JSON. Check that the address is that of a Dramatis server.`;
  return new DramatisClientError({ code: "HTTP", status, detail, cause });
}
function otherVersion() {
  return new DramatisClientError({ code: "UNSUPPORTED", status: 0, detail: OTHER_VERSION });
}
function streamInterrupted(cause) {
  const detail = "The stream ended before the turn did. The turn continues: read it by its id.";
  return new DramatisClientError({ code: "STREAM_INTERRUPTED", status: 0, detail, cause });
}
function inputIssue(issue) {
  const { path, message } = asObject(issue);
  return typeof path === "string" && typeof message === "string" ? [{ path, message }] : [];
}
function asObject(value) {
  return typeof value === "object" && value !== null ? value : {};
}

// src/shared/defined.ts
function defined(members) {
  const kept = {};
  for (const key in members) {
    if (members[key] !== void 0) kept[key] = members[key];
  }
  return kept;
}

// src/client/connection.ts
import { PartySocket } from "partysocket";

// src/client/event-stream.ts
import { createParser } from "eventsource-parser";
async function* framesOfTurn(response, signal) {
  for await (const frame of framesIn(response, signal)) {
    yield frame;
    if (endsTurn(frame)) return;
  }
  throw streamInterrupted();
}
async function* framesIn(response, signal) {
  if (response.body === null) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const ready = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      const frame = parseFrame(data);
      if (frame !== null) ready.push(frame);
      else if (isOfOtherVersion(data)) throw otherVersion();
    }
  });
  try {
    for (; ; ) {
      const { done, value } = await reader.read();
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      yield* ready.splice(0);
    }
  } catch (cause) {
    if (cause instanceof DramatisClientError || signal?.aborted === true) throw cause;
    throw streamInterrupted(cause);
  } finally {
    await reader.cancel().catch(() => void 0);
  }
}

// src/client/requests.ts
async function currentToken(token) {
  return typeof token === "function" ? token() : token;
}
async function authorization(token) {
  const bearer = await currentToken(token);
  return bearer === void 0 ? {} : { authorization: `Bearer ${bearer}` };
}
function checkBaseUrl(baseUrl) {
  if (baseUrl === void 0 || /^(?:$|\/|https?:\/\/.)/i.test(baseUrl)) return;
  const [, rest = baseUrl] = /^(?:\w+:)?\/*(.*)$/.exec(baseUrl.includes("://") ? baseUrl : `//${baseUrl}`) ?? [];
  throw wrongInput(
    "INVALID_INPUT",
    `\`baseUrl\` must begin with http:// or https://, and is "${baseUrl}". Write "http://${rest}".`
  );
}
function apiUrl(baseUrl, path) {
  return `${(baseUrl ?? "").replace(/\/$/, "")}/api/${path}`;
}
function pathOf(...segments) {
  return segments.map(encodeURIComponent).join("/");
}

// src/client/http.ts
function createClient(options = {}) {
  checkBaseUrl(options.baseUrl);
  const { baseUrl, token, fetch: send = (url, init) => fetch(url, init) } = options;
  async function request(path, init, accept = "application/json") {
    const type = init.body === void 0 ? {} : { "content-type": contentType(init.body) };
    const headers = { accept, ...await authorization(token), ...type };
    const response = await send(apiUrl(baseUrl, path), { ...init, headers }).catch((cause) => {
      throw noAnswer(cause, init.signal ?? void 0);
    });
    if (!response.ok) throw await errorFromResponse(response);
    return response;
  }
  async function json(path, init) {
    const response = await request(path, init);
    const body = await response.json().catch((cause) => {
      throw init.signal?.aborted === true ? cause : notJson(response, cause);
    });
    return body;
  }
  const get = (path, { signal } = {}) => json(path, defined({ signal }));
  const list = (path, { limit, cursor, order, signal } = {}) => get(path + query({ limit, cursor, order }), defined({ signal }));
  const write = (method, path, body, { signal } = {}) => json(path, { method, body: JSON.stringify(body), ...defined({ signal }) });
  const post = (path, body, init) => write("POST", path, body, init);
  const stop = (path, { reason, ...init } = {}) => post(path, defined({ reason }), init);
  return {
    agents: {
      list: (page) => list("agents", page),
      get: (id, init) => get(pathOf("agents", id), init),
      usage: (id, init) => get(pathOf("agents", id, "usage"), init)
    },
    conversations: {
      list: (page) => list("conversations", page),
      create: (input, init) => post("conversations", input, init),
      get: (id, init) => get(pathOf("conversations", id), init),
      update: (id, changes, init) => write("PATCH", pathOf("conversations", id), changes, init),
      cancel: (id, options2) => stop(pathOf("conversations", id, "cancel"), options2),
      resume: (id, options2) => stop(pathOf("conversations", id, "resume"), options2),
      complete: (id, options2) => stop(pathOf("conversations", id, "complete"), options2),
      async signal(id, signals, init) {
        const path = pathOf("conversations", id, "signals");
        const { results } = await post(path, signals, init);
        return results;
      },
      addParticipant: (id, participant, init) => post(pathOf("conversations", id, "participants"), participant, init),
      removeParticipant: async (id, { type, id: participant }, { signal } = {}) => {
        const path = pathOf("conversations", id, "participants", type, participant);
        await request(path, { method: "DELETE", ...defined({ signal }) });
      }
    },
    turns: {
      start: (id, input, init) => post(pathOf("conversations", id, "turns"), input, init),
      get: (id, turnId, init) => get(pathOf("conversations", id, "turns", turnId), init),
      cancel: (id, turnId, options2) => stop(pathOf("conversations", id, "turns", turnId, "cancel"), options2)
    },
    attachments: {
      upload(id, file, { name = nameOf(file), signal } = {}) {
        const path = pathOf("conversations", id, "attachments") + query({ name });
        return json(path, { method: "POST", body: file, ...defined({ signal }) });
      }
    },
    messages: {
      list: (id, page) => list(pathOf("conversations", id, "messages"), page)
    },
    operations: {
      submit: (id, operationId, outcome, init) => post(pathOf("conversations", id, "operations", operationId, "result"), outcome, init),
      complete: (handle, outcome, init) => post(pathOf("operations", handle, "result"), outcome, init)
    },
    async *streamTurn(id, input, { signal } = {}) {
      const init = { method: "POST", body: JSON.stringify(input), ...defined({ signal }) };
      const response = await request(pathOf("conversations", id, "turns"), init, "text/event-stream");
      yield* framesOfTurn(response, signal);
    }
  };
}
function query(parameters) {
  const present = Object.entries(defined(parameters)).map(([name, value]) => [name, String(value)]);
  return present.length === 0 ? "" : `?${new URLSearchParams(present)}`;
}
function contentType(body) {
  return body instanceof Blob ? body.type || "application/octet-stream" : "application/json";
}
function nameOf(file) {
  return file instanceof File && file.name || void 0;
}

// src/ports/node/seeded-ids.ts
import { monotonicFactory } from "ulid";
function mulberry32(seed2) {
  let state = seed2 >>> 0;
  return () => {
    state = state + 1831565813 >>> 0;
    let mixed = Math.imul(state ^ state >>> 15, state | 1);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61);
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32;
  };
}

// bench/kills/restarted-server.ts
import { closeSync, openSync, readFileSync } from "node:fs";
import { mkdir as mkdir2 } from "node:fs/promises";
import { join as join4 } from "node:path";

// bench/harness/workerd.ts
import { spawn as spawn2 } from "node:child_process";
import { mkdir, writeFile as writeFile2 } from "node:fs/promises";
import { basename, join as join3, relative } from "node:path";
var READY_MS = 3e4;
var CONTROL_FD = 3;
var DATA = "data";
async function serve(bundle2, directory, options = {}) {
  const { output = "inherit" } = options;
  const configFile = join3(directory, "config.capnp");
  await mkdir(join3(directory, DATA), { recursive: true });
  await writeFile2(configFile, capnp(bundle2, directory, options));
  const args = ["serve", configFile, `--control-fd=${CONTROL_FD}`];
  const child = spawn2(workerdBinary(), args, { stdio: ["ignore", output, output, "pipe"] });
  const kill = () => child.kill("SIGKILL");
  process.prependOnceListener("exit", kill);
  const ended = new Promise((resolve) => child.once("close", () => resolve()));
  const stop = async () => {
    kill();
    await ended;
    process.off("exit", kill);
  };
  try {
    const control = child.stdio[CONTROL_FD];
    const gone = ended.then(() => {
      throw new Error("workerd exited before it was ready. See its output above.");
    });
    const port = await Promise.race([listeningPort(control), gone]);
    if (child.pid === void 0) throw new Error("A process that listens has an id.");
    return { port, pid: child.pid, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
async function listeningPort(control) {
  const timeout = AbortSignal.timeout(READY_MS);
  let text = "";
  for await (const chunk2 of control.iterator({ destroyOnReturn: false })) {
    timeout.throwIfAborted();
    text += String(chunk2);
    const match = /"port":\s*(\d+)/.exec(text);
    if (match !== null) return Number(match[1]);
  }
  throw new Error("workerd did not report its port.");
}
var LOOPBACK = `
    (name = "internet", network = (allow = ["local"])),`;
function capnp({ config, entry }, directory, { port = 0, variables }) {
  const { durable_objects, services } = config;
  const bindings = [
    ...durable_objects.bindings.map(
      ({ name, class_name }) => `(name = ${quote(name)}, durableObjectNamespace = ${quote(class_name)})`
    ),
    ...services.map(
      ({ binding, entrypoint }) => `(name = ${quote(binding)}, service = (name = "main", entrypoint = ${quote(entrypoint)}))`
    ),
    ...Object.entries(variables ?? {}).map(
      ([name, value]) => `(name = ${quote(name)}, text = ${quote(value)})`
    )
  ];
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "data", disk = (path = ${quote(join3(directory, DATA))}, writable = true)),${variables === void 0 ? "" : LOOPBACK}
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [(name = ${quote(basename(entry))}, esModule = embed ${quote(relative(directory, entry))})],
  compatibilityDate = ${quote(config.compatibility_date)},
  compatibilityFlags = [${config.compatibility_flags.map(quote).join(", ")}],
  bindings = [${bindings.join(",\n    ")}],
  durableObjectNamespaces = [${namespaces(config)}],
  durableObjectStorage = (localDisk = "data"),
);
`;
}
function namespaces({ migrations }) {
  return migrations.flatMap(({ new_sqlite_classes }) => new_sqlite_classes).map((name) => `(className = ${quote(name)}, uniqueKey = ${quote(name)}, enableSql = true)`).join(",\n    ");
}
function quote(text) {
  return JSON.stringify(text);
}

// bench/kills/restarted-server.ts
var RestartedServer = class _RestartedServer {
  constructor(bundle2, directory, models) {
    this.bundle = bundle2;
    this.directory = directory;
    this.models = models;
    this.#log = openSync(this.#logFile, "a");
  }
  bundle;
  directory;
  models;
  #log;
  #server = null;
  #port = 0;
  /** Serves the bundle from its own directory. `models` is the address of the model server. */
  static async open(bundle2, directory, models) {
    await mkdir2(directory, { recursive: true });
    const server = new _RestartedServer(bundle2, directory, models);
    await server.#serve();
    return server;
  }
  get baseUrl() {
    return `http://127.0.0.1:${this.#port}`;
  }
  /**
   * Kills the process with SIGKILL and starts the next one on the same port and directory. Resolves when it accepts
   * connections.
   */
  async kill() {
    const at = Date.now();
    await this.#server?.stop();
    await this.#serve();
    return { at, readyAt: Date.now() };
  }
  async close() {
    await this.#server?.stop();
    closeSync(this.#log);
  }
  /** Returns the output of workerd and the Worker. */
  output() {
    return readFileSync(this.#logFile, "utf8");
  }
  get #logFile() {
    return join4(this.directory, "workerd.log");
  }
  async #serve() {
    const variables = { DRAMATIS_LOCAL: "1", OPENAI_BASE_URL: `${this.models}/v1` };
    const options = { port: this.#port, variables, output: this.#log };
    this.#server = await serve(this.bundle, this.directory, options);
    this.#port = this.#server.port;
  }
};

// bench/kills/background/history.ts
function newBackgroundHistory() {
  return { batches: [], hits: [], given: [], answers: [], kills: [], finals: [] };
}

// bench/kills/background/outside.ts
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { z as z4 } from "zod";
var messageSchema = z4.object({ role: z4.string(), content: z4.unknown() });
var chatSchema = z4.object({ messages: z4.array(messageSchema) });
var PIECE_MS = 20;
var PIECES = 4;
var RETRY_MS = 300;
var Outside = class {
  constructor(history) {
    this.history = history;
  }
  history;
  /** Address of the server under test. */
  target = "";
  #ended = new AbortController();
  #server = createServer((request, response) => {
    this.#handle(request, response).catch((error) => {
      if (!response.destroyed) console.error(error);
      response.destroy();
    });
  });
  async start() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }
  get baseUrl() {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("The outside is not started.");
    return `http://127.0.0.1:${address.port}`;
  }
  async close() {
    this.#ended.abort();
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }
  async #handle(request, response) {
    const url = new URL(request.url ?? "", this.baseUrl);
    const chunks = [];
    for await (const chunk2 of request) chunks.push(chunk2);
    if (url.pathname === "/v1/chat/completions") {
      const { messages } = chatSchema.parse(JSON.parse(Buffer.concat(chunks).toString()));
      await this.#answer(messages, response);
    } else await this.#act(url, String(request.headers["idempotency-key"]), response);
  }
  /** Calls the tools of the script at first; later it says which results it knows. */
  async #answer(messages, response) {
    const asked = messages.findLastIndex(
      ({ role, content }) => role === "user" && scriptIn(content) !== null
    );
    const script = scriptIn(messages[asked]?.content);
    if (script === null) throw new Error("A request has no script.");
    const own = messages.slice(asked + 1);
    const isFirst = !own.some(({ role }) => role === "assistant");
    const knows = own.flatMap(({ role, content }) => {
      if (role === "assistant" || role === "tool") return [];
      return [...JSON.stringify(content).matchAll(/The operation (op_\w+) /g)].flatMap(([, id]) => id ?? []);
    });
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let piece = 0; piece < PIECES; piece++) {
      await pause(PIECE_MS);
      if (response.destroyed) return;
      response.write(chunk({ content: `${script.key} ` }, null));
    }
    const calls = isFirst ? script.calls : [];
    if (calls.length > 0) response.write(chunk({ tool_calls: this.#callsOf(script) }, null));
    else this.history.answers.push({ key: script.key, knows });
    response.write(chunk({}, calls.length > 0 ? "tool_calls" : "stop"));
    response.end("data: [DONE]\n\n");
  }
  #callsOf({ key, calls, ms }) {
    return calls.map((name, index) => {
      const call = callName(key, index);
      const url = `${this.baseUrl}/${name}?${new URLSearchParams({ call, ms: String(ms) })}`;
      return { index, id: call, type: "function", function: { name, arguments: JSON.stringify({ url }) } };
    });
  }
  async #act({ pathname, searchParams }, operationId, response) {
    const tool = z4.enum(BACKGROUND_TOOLS).parse(pathname.slice(1));
    const [call, ms] = [searchParams.get("call") ?? "", Number(searchParams.get("ms"))];
    this.history.hits.push({ tool, call, operationId });
    const handle = searchParams.get("handle");
    if (handle === null) await pause(ms);
    else void this.#pay({ handle, call, operationId, ms });
    if (response.destroyed) return;
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ done: call }));
  }
  /** Gives the result later, until there is an answer; every third one twice. */
  async #pay(payment) {
    const { signal } = this.#ended;
    const { call, operationId, ms } = payment;
    for (let left = ms % 3 === 0 ? 2 : 1; left > 0 && !signal.aborted; ) {
      await pause(ms, void 0, { signal }).catch(() => void 0);
      const status = await this.#give(payment).catch(() => 500);
      this.history.given.push({ call, operationId, status });
      if (status < 500 && status !== 429) left -= 1;
      else await pause(RETRY_MS, void 0, { signal }).catch(() => void 0);
    }
  }
  async #give({ handle, call }) {
    const response = await fetch(`${this.target}/api/operations/${encodeURIComponent(handle)}/result`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ result: { paid: call } }),
      signal: AbortSignal.any([this.#ended.signal, AbortSignal.timeout(1e4)])
    });
    await response.text();
    return response.status;
  }
};
function chunk(delta, reason) {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  return `data: ${JSON.stringify({ id: "chatcmpl", object: "chat.completion.chunk", choices })}

`;
}

// bench/kills/background/scenario.ts
var CALM_MS = { from: 700, to: 4e3 };
var PAUSE_MS = { from: 200, to: 3e3 };
var ON_THE_WAY_MS = { from: 0, to: 12 };
var RETRY_MS2 = 200;
var POLL_MS = 300;
var PAGE = 200;
async function background(bundle2, directory, { kills: kills2, conversations: conversations2, seed: seed2, patienceMs }, progress = () => {
}) {
  const random = mulberry32(seed2);
  const history = newBackgroundHistory();
  const outside = new Outside(history);
  await outside.start();
  const server = await RestartedServer.open(bundle2, directory, outside.baseUrl);
  outside.target = server.baseUrl;
  const signal = AbortSignal.timeout(patienceMs);
  let isRaging = true;
  let onSend = () => void 0;
  async function converse(conversation, index) {
    const own = mulberry32(seed2 + index + 1);
    const calls = new Calls(`${server.baseUrl}/api/conversations/${conversation}`, signal);
    for (let n = 0; isRaging; n++) {
      const isLarge = n === 0 && index % 3 === 0;
      const batch = {
        conversation,
        scripts: randomBatch(own, `c${index}b${n}`, isLarge),
        tries: 0,
        accepted: []
      };
      history.batches.push(batch);
      onSend();
      await calls.send(batch);
      await pause2(within(own, PAUSE_MS), void 0, { signal });
    }
    history.finals.push({ conversation, ...await calls.atRest() });
  }
  async function rage() {
    for (let done = 0; done < kills2; done++) {
      await pause2(within(random, CALM_MS), void 0, { signal });
      if (done % 2 === 1) {
        await new Promise((resolve) => onSend = resolve);
        await pause2(within(random, ON_THE_WAY_MS), void 0, { signal });
      }
      history.kills.push(await server.kill());
      progress(done + 1);
    }
    isRaging = false;
  }
  try {
    const client = createClient({ baseUrl: server.baseUrl });
    const ids = [];
    for (let n = 0; n < conversations2; n++) {
      const turns = n % 2 === 1 ? "queued" : "parallel";
      ids.push((await client.conversations.create({ agentId: BACKGROUND_AGENT, turns })).id);
    }
    await Promise.all([rage(), ...ids.map(converse)]);
    return history;
  } catch (cause) {
    const last = server.output().slice(-5e3);
    throw new Error(`The scenario did not end. Last output of the server:
${last}`, { cause });
  } finally {
    await server.close();
    await outside.close();
  }
}
function within(random, { from, to }) {
  return from + Math.floor(random() * (to - from + 1));
}
var Calls = class {
  constructor(address, signal) {
    this.address = address;
    this.signal = signal;
  }
  address;
  signal;
  /** Sends a batch until each of its messages is accepted. */
  async send(batch) {
    for (let left = batch.scripts; left.length > 0; ) {
      const body = left.map((script) => ({
        id: script.key,
        type: "conversation.user.message",
        data: { content: textOf(script) }
      }));
      batch.tries += 1;
      const answer = await this.#once("/signals", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body)
      });
      const results = answer?.results ?? [];
      const refused = results.find((result) => !result.ok && !result.error.retriable);
      if (refused !== void 0) throw new Error(`A message was refused: ${JSON.stringify(refused)}`);
      batch.accepted.push(...left.flatMap(({ key }, index) => results[index]?.ok === true ? [key] : []));
      left = left.filter(({ key }) => !batch.accepted.includes(key));
      if (left.length > 0) await pause2(RETRY_MS2, void 0, { signal: this.signal });
    }
  }
  /** Returns the users' messages and the journal once nothing is active and nothing waits. */
  async atRest() {
    for (; ; ) {
      const journal = await this.#pages("/journal", "entries");
      const count = (type) => journal.filter((entry) => entry.type === type).length;
      const waits = sumOf(journal, "conversation.queue.received") - sumOf(journal, "conversation.queue.drained");
      const isOver = count("turn.started") === count("turn.completed") + count("turn.failed");
      if (isOver && waits === 0) {
        const messages = await this.#pages("/messages", "messages");
        return { journal, messages: messages.filter(({ role }) => role === "user") };
      }
      await pause2(POLL_MS, void 0, { signal: this.signal });
    }
  }
  async #pages(path, member) {
    const items = [];
    for (let cursor = ""; cursor !== void 0; ) {
      const query2 = new URLSearchParams({ limit: String(PAGE), ...cursor === "" ? {} : { cursor } });
      const page = await this.#once(
        `${path}?${query2}`
      );
      if (page === null) {
        await pause2(RETRY_MS2, void 0, { signal: this.signal });
        continue;
      }
      items.push(...page[member]);
      cursor = page.nextCursor;
    }
    return items;
  }
  /** Returns `null` where the server does not answer, or fails. */
  async #once(path, init = {}) {
    this.signal.throwIfAborted();
    try {
      const response = await fetch(`${this.address}${path}`, {
        ...init,
        signal: AbortSignal.any([this.signal, AbortSignal.timeout(15e3)])
      });
      const answer = await response.json();
      return response.ok ? answer : null;
    } catch {
      return null;
    }
  }
};
function sumOf(journal, type) {
  return journal.filter((entry) => entry.type === type).reduce((sum, { data }) => sum + Number(data?.count ?? 0), 0);
}

// bench/kills/script.ts
import { z as z5 } from "zod";
var TOOL_EFFECTS = ["pure", "idempotent", "once"];
var scriptSchema2 = z5.strictObject({
  /** Idempotency key of the message. */
  key: z5.string(),
  /** Effects of the tools that each reply but the last calls. */
  rounds: z5.array(z5.array(z5.enum(TOOL_EFFECTS))),
  /** Number of deltas of the last reply. */
  pieces: z5.int(),
  /** Milliseconds between two deltas. */
  pieceMs: z5.int(),
  /** Duration of a tool, in milliseconds. */
  toolMs: z5.int(),
  /** Milliseconds after the acknowledgement at which the user stops the turn; it is not stopped if absent. */
  stopMs: z5.int().optional()
});

// bench/kills/one-turn.ts
var SURVIVOR = {
  key: "survivor",
  rounds: [
    ...repeated(["idempotent"], ["idempotent", "pure"], ["pure"]),
    ["once", "idempotent"],
    ...repeated(["idempotent"], ["idempotent", "pure"], ["pure"])
  ],
  pieces: 30,
  pieceMs: 100,
  toolMs: 1500
};
function repeated(...rounds) {
  return rounds.flatMap((round2) => [round2, round2]);
}

// bench/kills/hit-server.ts
import { z as z6 } from "zod";
var messageSchema2 = z6.object({ role: z6.string(), content: z6.unknown() });
var chatSchema2 = z6.object({ messages: z6.array(messageSchema2) });

// bench/kills/case.ts
function buildKillsBundle(directory) {
  return buildBundle(join5(directory, "bundle"), join5(BENCH_DIR, "kills", "wrangler.jsonc"));
}

// ../../../tmp/bg.ts
var [kills, conversations, seed, patience] = process.argv.slice(2).map(Number);
var dir = mkdtempSync(join6(tmpdir(), "bg-"));
var bundle = await buildKillsBundle(dir);
try {
  const h = await background(bundle, join6(dir, "s"), { kills, conversations, seed, patienceMs: patience * 1e3 }, (n) => process.stdout.write(n + " "));
  console.log("\n", checkBackground(h).slice(0, 20), missingIn(h));
  console.log(backgroundRows(h).map((r) => `${r.metric} ${r.median}`).join("; "));
} catch (e) {
  console.log(String(e).slice(0, 3e3));
}
process.exit(0);
