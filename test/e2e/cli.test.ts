/** The command line as a child process: against a Worker with tools that wait for people, and against a deployment with tokens. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildConsole, CONSOLE } from "../../scripts/console.ts";
import { type Server, startServer } from "../../scripts/server.ts";
import { createClient, type DramatisClient } from "../../src/client/index.ts";
import { VERSION } from "../../src/shared/version.ts";
import { Desk } from "../support/desk.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");
const SECRET = "an e2e secret of more than thirty-two bytes";
const folder = mkdtempSync(join(tmpdir(), "dramatis-cli-"));

interface Settings {
  url?: string;
  token?: string;
  input?: string;
}

interface Ended {
  code: number | null;
  out: string;
  err: string;
}

let server: Server;
let desk: Desk;
let client: DramatisClient;

/** Starts a command. Its standard input stays open, unless there is input. */
function begin(args: readonly string[], { url = server.url, token, input }: Settings = {}) {
  const { DRAMATIS_TOKEN: _token, DRAMATIS_URL: _url, FORCE_COLOR: _color, ...env } = process.env;
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...env, DRAMATIS_URL: url, ...(token !== undefined && { DRAMATIS_TOKEN: token }) },
  });
  if (input !== undefined) child.stdin.end(input);
  return child;
}

async function ended(child: ChildProcessWithoutNullStreams): Promise<Ended> {
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { code, out, err };
}

/** Runs a command to its end. */
function cli(args: readonly string[], settings?: Settings): Promise<Ended> {
  return ended(begin(args, settings));
}

/** Runs a command that must succeed. Returns its document. */
async function document(...args: string[]) {
  const { code, out, err } = await cli([...args, "--json"]);
  expect({ code, err }, args.join(" ")).toMatchObject({ code: 0 });
  return JSON.parse(out);
}

/** Starts a conversation with a completed turn. */
async function conversed(content = "!say Good morning."): Promise<{ id: string; turnId: string }> {
  const { id } = await client.conversations.create({ agentId: "clerk" });
  const { turnId } = await client.turns.start(id, { content });
  await expect.poll(async () => (await client.turns.get(id, turnId)).status).not.toBe("active");
  return { id, turnId };
}

beforeAll(async () => {
  buildConsole();
  desk = await Desk.open();
  server = await startServer({
    port: 0,
    persist: join(folder, "state"),
    config: join(import.meta.dirname, "work/wrangler.jsonc"),
    assets: CONSOLE,
    onLine: () => undefined,
  });
  await server.ready;
  client = createClient({ baseUrl: server.url });
});

afterAll(async () => {
  await server?.stop();
  await desk?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("the command line", () => {
  it("G23 prints its version and its help, and refuses commands that it does not know", async () => {
    expect(await cli(["--version"])).toEqual({ code: 0, out: `${VERSION}\n`, err: "" });
    const help = await cli(["--help"]);
    expect(help).toMatchObject({ code: 0, err: "" });
    for (const name of [
      "list",
      "search",
      "inspect",
      "tail",
      "send",
      "approve",
      "deny",
      "cancel",
      "replay",
      "fork",
    ])
      expect(help.out).toContain(name);
    expect(await cli(["lst"])).toMatchObject({ code: 2, out: "", err: expect.stringContaining("list") });
    expect(await cli(["inspect"])).toMatchObject({ code: 2, out: "" });
  });

  it("G23 lists and inspects conversations, turns and their work, without escape codes in a pipe", async () => {
    const { id, turnId } = await conversed(`!tool flaky {"url": "${desk.url("/now/flaky")}"}`);
    expect((await document("list", "conversations")).conversations[0]).toMatchObject({ id });
    expect((await document("list", "agents")).agents.map((agent: { id: string }) => agent.id)).toContain(
      "clerk",
    );
    await expect
      .poll(async () => (await document("list", "turns", id)).turns)
      .toMatchObject([{ id: turnId, status: "completed" }]);
    const title = "A title that is too long for a terminal, and whole in a pipe. ".repeat(2).trim();
    await client.conversations.update(id, { title });
    await expect.poll(async () => (await cli(["list", "conversations"])).out).toContain(title);
    const listed = await cli(["list", "turns", id]);
    expect(listed.out).toContain(turnId);
    const conversation = await cli(["inspect", id]);
    expect(conversation).toMatchObject({ code: 0, err: "" });
    expect(conversation.out).toContain(turnId);
    const { code, out } = await cli(["inspect", id, turnId]);
    expect(code).toBe(0);
    expect(out).toMatch(/^ *START +TOOK$/m);
    expect(out).toMatch(/█ +agent clerk$/m);
    expect(out).toMatch(/█ +model offline-1, .*token/m);
    expect(out).toMatch(/█ +tool flaky$/m);
    expect(listed.out + conversation.out + out).not.toContain("\u001b");
    expect(await document("inspect", id, turnId)).toMatchObject({ id: turnId, trace: { partial: false } });
  });

  it("G23 sends a message, streams the answer, and begins a conversation with an agent", async () => {
    const first = await cli(["send", "clerk", "!say", "Good morning."]);
    expect(first).toMatchObject({ code: 0, out: "Good morning.\n" });
    const [, id = ""] = /^Conversation (conv_\w+)$/m.exec(first.err) ?? [];
    expect(await cli(["send", id], { input: "!say From a pipe.\n" })).toMatchObject({
      code: 0,
      out: "From a pipe.\n",
    });
    const { out } = await cli(["send", id, "!say", "As frames.", "--json"]);
    const frames = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(frames.at(0).type).toBe("turn.started");
    expect(frames.at(-1).type).toBe("turn.completed");
    expect(await cli(["send", id], { input: " \n" })).toMatchObject({ code: 2, out: "" });
  });

  it.each([
    ["approve", ["--reason", "Agreed."]],
    ["deny", ["--reason", "Too expensive."]],
  ])("G23 %s answers a call that waits, and the turn completes", async (command, reason) => {
    const { id } = await client.conversations.create({ agentId: "clerk" });
    const content = `!tool transfer {"url": "${desk.url("/now/transfer")}", "item": "${command}"}`;
    const { turnId } = await client.turns.start(id, { content });
    const find = async () => {
      const { approvals } = await document("list", "approvals");
      return approvals.find((item: { conversationId?: string }) => item.conversationId === id);
    };
    await expect.poll(find).toBeDefined();
    const { operationId } = await find();
    expect((await cli(["inspect", id, turnId])).out).toContain(`dramatis approve ${id} ${operationId}`);
    expect(await cli([command, id, operationId, ...reason])).toMatchObject({ code: 0, err: "" });
    await expect.poll(async () => (await client.turns.get(id, turnId)).status).toBe("completed");
    expect(desk.bodiesOf("/now/transfer").includes(command)).toBe(command === "approve");
    const other = command === "approve" ? "deny" : "approve";
    expect(await cli([other, id, operationId])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^CONFLICT: .*\n$/),
    });
    expect(await cli([command, "clerk", operationId])).toMatchObject({ code: 2 });
  });

  it("G23 answers the question of a run, inspects the run, and cancels another", async () => {
    const start = () =>
      client.runs.start({ workflow: "work/refunds", name: "Refund of May", input: { orders: ["A1"] } });
    const { id } = await start();
    await expect.poll(async () => (await client.runs.get(id)).gates.length).toBe(1);
    const shown = await cli(["inspect", id]);
    const [, operationId = ""] = new RegExp(`dramatis approve ${id} (\\S+)`).exec(shown.out) ?? [];
    expect(await cli(["approve", id, operationId])).toMatchObject({ code: 0, err: "" });
    await expect.poll(async () => (await document("inspect", id)).status).toBe("completed");
    const { id: second } = await start();
    expect(await cli(["cancel", second, "--reason", "Enough."])).toMatchObject({ code: 0 });
    expect(await document("inspect", second)).toMatchObject({ status: "cancelled" });
    expect(await cli(["cancel", id])).toMatchObject({ code: 1, err: expect.stringContaining("CONFLICT") });
    await expect
      .poll(async () => (await document("list", "runs", "--status", "cancelled")).runs)
      .toMatchObject([{ id: second, name: "Refund of May" }]);
    const found = await cli(["list", "runs", "--text", "of may"]);
    expect(found.out.match(/ Refund of May work\/refunds@1\n/g)).toHaveLength(2);
    expect((await cli(["list", "runs", "--text", "of june"])).out).toBe("The list is empty.\n");
    expect(shown.out).toMatch(/name +Refund of May/);
  });

  it("G23 cancels a turn and a conversation", async () => {
    const { id } = await client.conversations.create({ agentId: "clerk" });
    const { turnId } = await client.turns.start(id, { content: "!slow 500 100" });
    expect(await cli(["cancel", id, turnId])).toMatchObject({ code: 0, out: `Cancelled ${turnId}.\n` });
    expect(await client.turns.get(id, turnId)).toMatchObject({ error: { code: "CANCELLED" } });
    expect(await cli(["cancel", id])).toMatchObject({ code: 0 });
    expect(await cli(["send", id, "Hello"])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^CANCELLED: .*dramatis inspect conv_\w+ turn_\w+\n$/),
    });
  });

  it("G23 replays a turn, forks a conversation, and moves it by a file", async () => {
    const { id, turnId } = await conversed();
    expect(await cli(["replay", id, turnId])).toMatchObject({
      code: 0,
      out: expect.stringContaining("0 calls"),
    });
    const fork = (await cli(["fork", id, turnId])).out.trim();
    expect(await client.conversations.get(fork)).toMatchObject({
      forkedFrom: { conversationId: id, turnId },
    });
    const exports = join(folder, "exports");
    mkdirSync(exports);
    const [file, other] = [join(exports, "export.jsonl"), join(folder, "other")];
    writeFileSync(other, "mine");
    for (const link of [file, `${file}.partial`]) symlinkSync(other, link);
    await expect.poll(async () => (await cli(["export", id, "--output", file])).code).toBe(0);
    const lines = readFileSync(file, "utf8");
    expect(readFileSync(other, "utf8")).toBe("mine");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(exports).sort()).toEqual(["export.jsonl", "export.jsonl.partial"]);
    const piped = await cli(["export", id]);
    expect(piped.out.split("\n").length).toBe(lines.split("\n").length);
    for (const result of [await cli(["import", file]), await cli(["import", "-"], { input: lines })]) {
      expect(result).toMatchObject({ code: 0, err: "" });
      const { messages } = await client.messages.list(result.out.trim());
      expect(messages.map(({ content }) => content)).toEqual(["!say Good morning.", "Good morning."]);
    }
    writeFileSync(file, "{}\n");
    expect(await cli(["import", file])).toMatchObject({ code: 1, err: expect.stringContaining("no header") });
    expect(await cli(["export", id, "--output", join(folder, "none/x")])).toMatchObject({
      code: 1,
      err: expect.stringMatching(/cannot be written .*\n$/),
    });
    expect(await cli(["import", join(folder, "none")])).toMatchObject({ code: 1 });
  });

  it("G23 CLICALL-1 calls any operation of the server's document, and names wrong parameters before a request", async () => {
    const operations = await document("call");
    expect(operations.map(({ id }: { id: string }) => id)).toContain("listJournal");
    const body = JSON.stringify({ agentId: "clerk", title: "Called" });
    const { id } = await document("call", "createConversation", "--body", body);
    expect(await document("call", "getConversation", `id=${id}`)).toMatchObject({ title: "Called" });
    expect((await document("call", "listJournal", `id=${id}`, "limit=1")).entries).toHaveLength(1);
    expect(await cli(["call", "deleteConversation", `id=${id}`])).toEqual({ code: 0, out: "", err: "" });
    expect(await cli(["call", "getConversation"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("id=VALUE"),
    });
    expect(await cli(["call", "getConversation", "it=1"])).toMatchObject({ code: 2 });
    expect(await cli(["call", "getNothing"])).toMatchObject({ code: 2 });
    expect(await cli(["call", "createConversation", "--body", "{}"])).toMatchObject({ code: 1 });
  });

  it("G23 finds messages by their words", async () => {
    const { id, turnId } = await conversed("!say The zeppelin lands at noon.");
    const search = (...filters: string[]) => cli(["search", "noon", "zeppelin", ...filters]);
    await expect.poll(async () => (await search("--role", "agent")).out).toContain(`${id} ${turnId}`);
    expect((await search()).out).toMatch(/ clerk +agent +The zeppelin lands at noon\./);
    expect(await search("--user", "nobody")).toMatchObject({ code: 0, out: "The list is empty.\n" });
    expect(await search("--role", "boss")).toMatchObject({ code: 1, err: expect.stringContaining("role") });
  });

  it("G23 lists dead letters, and names a letter that does not exist", async () => {
    expect(await document("dead-letters", "list")).toEqual({ deadLetters: [] });
    const redelivered = await cli(["dead-letters", "redeliver", "op_01JD0000000000000000000000"]);
    expect(redelivered).toMatchObject({ code: 1, err: expect.stringMatching(/^NOT_FOUND: .*\n$/) });
  });

  it("G23 CLIEXIT-1 follows a conversation until Ctrl-C, and ends with the reader of its output", async () => {
    const { id } = await conversed();
    const follower = begin(["tail", id, "--json", "--from", "0"]);
    const read = ended(follower);
    await once(follower.stdout, "data");
    follower.kill("SIGINT");
    const { code, out } = await read;
    expect(code).toBe(130);
    expect(JSON.parse(out.split("\n")[0] ?? "")).toMatchObject({ v: 1, seq: expect.any(Number) });

    const left = begin(["tail", id]);
    await once(left.stdout, "data");
    left.stdout.destroy();
    const exit = once(left, "exit");
    await client.turns.start(id, { content: "!say More." });
    expect((await exit)[0]).toBe(0);
    expect(await cli(["tail", id, "--from", "x"])).toMatchObject({ code: 2 });
  });

  it("G23 CLITAIL-1 reconnects after a lost connection, and continues after the last durable frame", async () => {
    const asked: string[] = [];
    const stub = createServer((request, response) => {
      asked.push(request.url ?? "");
      const frame = {
        v: 1,
        seq: 4 + asked.length,
        type: "turn.queued",
        time: "2026-03-01T10:00:00.000Z",
        data: { position: 1 },
      };
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`data: ${JSON.stringify(frame)}\n\n`);
      // The second response stays open.
      if (asked.length === 1) response.end();
    });
    await once(stub.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(stub.address() as AddressInfo).port}`;
    const follower = begin(["tail", "conv_x"], { url });
    let shown = "";
    follower.stdout.on("data", (chunk) => {
      shown += chunk;
    });
    await expect.poll(() => shown.match(/turn queued/g)?.length).toBe(2);
    follower.kill("SIGINT");
    await once(follower, "exit");
    expect(asked).toEqual(["/api/conversations/conv_x/events", "/api/conversations/conv_x/events?from=5"]);
    stub.closeAllConnections();
    stub.close();
  });

  it("G23 says how to follow a turn whose stream ends early", async () => {
    const stub = createServer((_, response) => {
      const frame = {
        ...{ v: 1, seq: 5, type: "turn.started", time: "2026-03-01T10:00:00.000Z", turnId: "turn_x" },
        data: { agentId: "clerk" },
      };
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`data: ${JSON.stringify(frame)}\n\n`);
    });
    await once(stub.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(stub.address() as AddressInfo).port}`;
    const { code, err } = await cli(["send", "conv_x", "Hello"], { url });
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringContaining(
        "The turn continues. Follow it with: dramatis tail conv_x --from 5. Stop it with: dramatis cancel conv_x turn_x",
      ),
    });
    stub.close();
  });

  it("G23 CLIEXIT-1 a failure is one line that says what to change, and the exit code", async () => {
    const cases: [args: string[], settings: Settings, code: number, line: RegExp][] = [
      [["list", "agents"], { url: "http://127.0.0.1:1" }, 1, /^No server answers at .* set --url/],
      [["list", "agents", "--url", "localhost:1"], {}, 2, /^--url must begin with http/],
      [["list", "agents", "--url", desk.url("/now/")], {}, 1, /not as a Dramatis server/],
      [["doctor"], { url: desk.url("/now/") }, 1, /^$/],
      [["inspect", "conv_01JD0000000000000000000000"], {}, 1, /^NOT_FOUND: /],
      [["inspect", "turn_01JD0000000000000000000000"], {}, 2, /needs its conversation/],
      [["list", "turns", "--since", "2026-13"], {}, 1, /a month such as `2026-01`/],
      [["list", "agents", "--limit", "0"], {}, 2, /--limit must be/],
      [["list", "agents"], { token: "two words" }, 2, /^DRAMATIS_TOKEN contains/],
    ];
    for (const [args, settings, code, line] of cases) {
      const result = await cli(args, settings);
      expect({ ...result, args }).toMatchObject({ code, args });
      expect(result.err).toMatch(line);
      expect(result.err.split("\n").length, result.err).toBeLessThanOrEqual(2);
    }
  });
});

describe("the command line with a secured deployment", () => {
  let start: RunningStart;

  const sign = (seconds: number, roles: string[] = ["admin"]) =>
    new SignJWT({ sub: "ada", tenant: "local", roles, exp: Math.floor(Date.now() / 1000) + seconds })
      .setProtectedHeader({ alg: "HS256" })
      .sign(new TextEncoder().encode(SECRET));

  beforeAll(async () => {
    start = await npmStart(join(folder, "secured"), { AUTH_SECRET: SECRET });
  });
  afterAll(() => start?.stop());

  it("G23 CLITOKEN-1 takes the token from the environment, and never prints it", async () => {
    const { url } = start;
    const token = await sign(3600);
    const agents = await cli(["list", "agents", "--json"], { url, token });
    expect(agents.code).toBe(0);
    const doctor = await cli(["doctor"], { url, token });
    expect(doctor).toMatchObject({
      code: 0,
      out: expect.stringMatching(/You are ada of tenant local.*admin/),
    });
    const sent = await cli(["send", "assistant", "!say", token], { url, token });
    expect(sent).toMatchObject({ code: 0, out: "[DRAMATIS_TOKEN]\n" });
    expect(agents.out + doctor.out + sent.err).not.toContain(token);
    expect(await cli(["list", "agents", "--token", token], { url })).toMatchObject({ code: 2 });
  });

  it("G20 G23 names a missing, an expired and a weak token, with the fix", async () => {
    const { url } = start;
    const missing = await cli(["list", "agents"], { url });
    expect(missing).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^UNAUTHENTICATED: .*DRAMATIS_TOKEN/),
    });
    const expired = await cli(["doctor"], { url, token: await sign(-3600) });
    expect(expired).toMatchObject({
      code: 1,
      out: expect.stringMatching(/failed +token +The token expired/),
    });
    const weak = await cli(["dead-letters", "list"], { url, token: await sign(3600, []) });
    expect(weak).toMatchObject({ code: 1, err: expect.stringMatching(/^FORBIDDEN: .*dramatis doctor/) });
  });
});
