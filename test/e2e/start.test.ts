/** `npm start`: what it says, what it passes on, and that it leaves nothing behind however it ends. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { failedStart, npmStart, type RunningStart } from "../support/npm-start.ts";
import { type OpenAIServer, startOpenAIServer, textReply } from "../support/openai-server.ts";
import { killAll, processTree, type RunningProcess, waitUntilGone } from "../support/processes.ts";

const folder = mkdtempSync(join(tmpdir(), "dramatis-start-"));
const persist = join(folder, "state");

const temporary = join(folder, "tmp");

beforeAll(() => mkdirSync(temporary));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Folders with settings that were passed on to a Worker. */
function passedOn(): string[] {
  return readdirSync(temporary).filter((name) => name.startsWith("dramatis-"));
}

async function createConversation(url: string): Promise<string> {
  const response = await fetch(`${url}/api/conversations`, {
    method: "POST",
    body: JSON.stringify({ agentId: "assistant" }),
  });
  expect(response.status).toBe(201);
  const { id } = (await response.json()) as { id: string };
  return id;
}

async function say(url: string, id: string, content: string): Promise<string> {
  const response = await fetch(`${url}/api/conversations/${id}/turns`, {
    method: "POST",
    headers: { accept: "text/event-stream" },
    body: JSON.stringify({ content }),
  });
  return response.text();
}

async function transcript(url: string, id: string): Promise<unknown[]> {
  const response = await fetch(`${url}/api/conversations/${id}/messages`);
  const { messages } = (await response.json()) as { messages: { content: unknown }[] };
  return messages.map(({ content }) => content);
}

/** The status of a GET with any headers, `Host` included. */
function rawStatus(url: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = get(url, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.once("error", reject);
  });
}

describe("a running start", () => {
  const key = "sk-$HOME$(x)'#\\n\"=";
  let start: RunningStart;
  let model: OpenAIServer;

  beforeAll(async () => {
    model = await startOpenAIServer({ script: () => textReply("Hello ", "there.") });
    start = await npmStart(persist, {
      OPENAI_API_KEY: key,
      OPENAI_BASE_URL: model.baseUrl,
      TMPDIR: temporary,
    });
  });

  it("START-2 prints its address on one line, and none of wrangler's small talk", async () => {
    expect(start.output().match(/ready/gi)).toHaveLength(1);
    expect(start.output()).not.toMatch(/wrangler:|⛅|⎔/);
    const health = await fetch(`${start.url}/health`);
    expect(health.status).toBe(200);
    expect(await health.json()).toMatchObject({ status: "ok" });
  });

  it("passes model settings of the shell on, exactly, and shows them to nobody", async () => {
    const conversation = await createConversation(start.url);
    expect(await say(start.url, conversation, "Hi")).toContain("Hello there.");
    expect(model.requests[0]?.headers.authorization).toBe(`Bearer ${key}`);
    for (const { command } of processTree(start.npm.pid ?? 0)) expect(command).not.toContain("sk-");
  });

  it("KEEP-2 refuses a port that is taken and a state folder that is open, and says what to do", async () => {
    const { port } = new URL(start.url);
    const samePort = await failedStart(["--port", port, "--persist", join(folder, "other")]);
    expect(samePort).toMatchObject({ code: 1, output: expect.stringContaining(`Port ${port} is taken`) });
    const sameState = await failedStart(["--port", "0", "--persist", persist]);
    expect(sameState).toMatchObject({ code: 1, output: expect.stringContaining("is in use by another") });
    const badPort = await failedStart(["--port", "eighty"]);
    expect(badPort).toMatchObject({ code: 1, output: expect.stringContaining("Usage: npm start") });
    expect((await fetch(`${start.url}/health`)).status).toBe(200);
  });

  it("lets neither a rebound name nor a foreign page in", async () => {
    const { port } = new URL(start.url);
    const ask = (headers: Record<string, string>) => rawStatus(`${start.url}/api/agents`, headers);
    expect(await ask({})).toBe(200);
    expect(await ask({ host: `evil.example:${port}` })).toBe(401);
    expect(await ask({ origin: "http://evil.example" })).toBe(401);
    expect(await ask({ origin: start.url })).toBe(200);
  });

  it("goes on when the process that runs the Worker is killed", async () => {
    const conversation = await createConversation(start.url);
    await say(start.url, conversation, "Hi");
    const [worker] = processTree(start.npm.pid ?? 0).filter(({ command }) =>
      /workerd serve.*entry=127\.0\.0\.1:0/.test(command),
    );
    if (worker === undefined) throw new Error("No process runs the Worker.");
    process.kill(worker.pid, "SIGKILL");
    await waitUntilGone([worker.pid]);
    await expect
      .poll(() => transcript(start.url, conversation).catch(String), { timeout: 20_000 })
      .toEqual(["Hi", "Hello there."]);
  });

  it("START-1 ends completely when it is interrupted, and removes what it passed on", async () => {
    expect(passedOn()).toHaveLength(1);
    await start.stop();
    await model.close();
    expect(passedOn()).toEqual([]);
  });
});

describe("START-1 KEEP-1 KEEP-3 whichever process is killed, the others end, and the next start has the state", () => {
  const victims: [string, (process: RunningProcess) => boolean, NodeJS.Signals?][] = [
    ["npm", ({ command }) => command.startsWith("npm start")],
    ["npm, politely", ({ command }) => command.startsWith("npm start"), "SIGTERM"],
    ["the start script", ({ command }) => command.includes("scripts/start.ts") && !command.startsWith("sh ")],
    ["the keeper", ({ command }) => command.includes("scripts/keeper.ts")],
    ["wrangler", ({ command }) => command.includes("wrangler-dist")],
  ];
  const settings = { DRAMATIS_MODEL: "offline/offline-1", TMPDIR: temporary };
  let conversation: string | undefined;
  const messages: string[] = [];

  it.each(victims)("%s", async (_name, isVictim, signal = "SIGKILL") => {
    const start = await npmStart(persist, settings);
    conversation ??= await createConversation(start.url);
    await say(start.url, conversation, `Message ${messages.length / 2}`);
    const before = await transcript(start.url, conversation);
    expect(before.slice(0, messages.length)).toEqual(messages);
    expect(before).toHaveLength(messages.length + 2);
    messages.splice(0, messages.length, ...before.map(String));

    const tree = processTree(start.npm.pid ?? 0);
    const victim = tree.findLast(isVictim);
    if (victim === undefined) throw new Error(`Not found among ${JSON.stringify(tree)}`);
    process.kill(victim.pid, signal);
    await waitUntilGone(tree.map(({ pid }) => pid));
    expect(passedOn()).toEqual([]);
  });

  it("wrangler's proxy: it comes back, or everything ends", async () => {
    const start = await npmStart(persist, settings);
    const tree = processTree(start.npm.pid ?? 0);
    const proxy = tree.find(({ command }) => /workerd serve(?!.*--inspector-addr)/.test(command));
    if (proxy === undefined) throw new Error(`Not found among ${JSON.stringify(tree)}`);
    process.kill(proxy.pid, "SIGKILL");
    await waitUntilGone([proxy.pid]);
    const isBack = () =>
      fetch(`${start.url}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    const isOver = () => start.npm.exitCode !== null;
    await expect.poll(async () => isOver() || (await isBack()), { timeout: 30_000 }).toBe(true);
    if (!isOver()) {
      expect(await transcript(start.url, conversation ?? "")).toEqual(messages);
      await start.stop();
    }
    await waitUntilGone(tree.map(({ pid }) => pid));
    expect(passedOn()).toEqual([]);
  });

  it("all of them at once: then the next start cleans up", async () => {
    const lost = await npmStart(persist, settings);
    const pids = processTree(lost.npm.pid ?? 0).map(({ pid }) => pid);
    await killAll(pids);
    const left = passedOn();
    expect(left).toHaveLength(1);

    const next = await npmStart(persist, settings);
    expect(passedOn()).toHaveLength(1);
    expect(passedOn()).not.toEqual(left);
    expect(await transcript(next.url, conversation ?? "")).toEqual(messages);
    await next.stop();
    expect(passedOn()).toEqual([]);
  });
});
