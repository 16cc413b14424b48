/**
 * H1 on the real process: `kill -9` in the middle of text and of tools. A model server in this process decides the
 * events before the kill, and counts every call of a model or a tool.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it, onTestFailed, vi } from "vitest";
import { type Server, startServer } from "../../scripts/server.ts";
import { createClient, type DramatisClient } from "../../src/client/index.ts";
import { mulberry32 } from "../../src/shared/mulberry32.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";
import {
  jsonReply,
  nothingLearned,
  type OpenAIServer,
  type Reply,
  startOpenAIServer,
  textReply,
  toolReply,
} from "../support/openai-server.ts";
import { run } from "../support/packed-package.ts";
import { killAll, processTree, runsTheWorker } from "../support/processes.ts";
import { agentTexts, Watcher } from "../support/watcher.ts";

/** Time for a restart, in milliseconds: wrangler restarts the Worker, or START-3 restarts the whole server. */
const RESTART_MS = 90_000;

const folder = mkdtempSync(join(tmpdir(), "dramatis-kill-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Kills the process that runs the Worker, and with it every actor; wrangler starts it again. */
async function killWorker(root: number, url: string): Promise<void> {
  const workers = processTree(root).filter((process) => runsTheWorker(process, url));
  expect(workers).toHaveLength(1);
  await killAll(workers.map(({ pid }) => pid));
}

async function transcript(client: DramatisClient, id: string): Promise<unknown[]> {
  const { messages } = await client.messages.list(id);
  return messages.map(({ role, content }) => ({ role, content }));
}

describe("in the middle of writes, commits and merges", () => {
  it("A63 A67 WORKSPACE-2 WORKSPACE-4 GITMERGE-3 each commit is in the branch once, each merge ends, and git finds no damage", async () => {
    const start = await npmStart(join(folder, "workspace"));
    const client = createClient({ baseUrl: start.url });
    const random = mulberry32(33);
    const kill = async () => {
      await pause(random() * 300);
      await killWorker(start.npm.pid ?? 0, start.url);
    };
    /** Repeats a request until it has an answer. */
    const answered = async <Value>(request: () => Promise<Value>): Promise<Value> =>
      vi.waitFor(request, { timeout: RESTART_MS, interval: 200 });
    const { id } = await client.conversations.create({ agentId: "developer" });
    const merge = async () => {
      const headers = { "content-type": "application/json" };
      const url = `${start.url}/api/conversations/${id}/workspace/merge`;
      const response = await fetch(url, { method: "POST", headers, body: "{}" });
      expect(response.status).toBe(200);
    };
    for (const round of [1, 2, 3]) {
      const calls = [
        `repo_write {"path": "n.txt", "content": "${round}"}`,
        `repo_commit {"message": "Commit ${round}"}`,
      ];
      const content = calls.map((call) => `!tool ${call}`).join("\n!then\n");
      const send = () => client.turns.start(id, { content, idempotencyKey: `round-${round}` });
      const sent = send().catch(() => undefined);
      await kill();
      await sent;
      const { turnId } = await answered(send);
      await answered(async () => expect((await client.turns.get(id, turnId)).status).toBe("completed"));
      if (round === 3) continue;
      const merging = merge().catch(() => undefined);
      await kill();
      await merging;
      await answered(merge);
    }
    await answered(merge);
    const clone = join(folder, "clone");
    run(folder, "git", "clone", "--quiet", `${start.url}/git/default/sums`, clone);
    run(clone, "git", "fsck", "--strict");
    const commits = run(clone, "git", "log", "--format=%s", `origin/dramatis/conv-${id}`).trim().split("\n");
    expect(commits).toEqual(["Commit 3", "Commit 2", "Commit 1", "Begin"]);
    expect(run(clone, "git", "rev-parse", "origin/main", `origin/dramatis/conv-${id}`)).toMatch(
      /^(\w+)\n\1\n$/,
    );
    expect(run(clone, "git", "show", "origin/main:n.txt")).toBe("3");
    await start.stop();
  }, 180_000);
});

describe("in the middle of text", () => {
  const content = "How does it begin?";
  const chunks = ["It was ", "a dark ", "and stormy ", "night."];
  const beginning = "It was a dark ";
  const answer = "It was a dark and stormy night.";
  const stuck: Reply = {
    kind: "stream",
    steps: [...chunks.slice(0, 2).map((text) => ({ text })), { gate: new Promise(() => {}) }],
  };
  const persist = join(folder, "text");
  let model: OpenAIServer;
  let start: RunningStart;
  let client: DramatisClient;

  beforeAll(async () => {
    model = await startOpenAIServer({ script: () => textReply(...chunks), aside: nothingLearned });
    start = await npmStart(persist, { OPENAI_BASE_URL: model.baseUrl });
    client = createClient({ baseUrl: start.url });
  });

  afterAll(async () => {
    await start.stop();
    await model.close();
  });

  async function newConversation(): Promise<string> {
    return (await client.conversations.create({ agentId: "assistant" })).id;
  }

  /** The content of a conversation after a run without faults. */
  async function undisturbedTranscript(): Promise<unknown[]> {
    const id = await newConversation();
    for await (const _ of client.streamTurn(id, { content }));
    return transcript(client, id);
  }

  const resetsOf = (watcher: Watcher) => watcher.frames.filter(({ type }) => type === "message.reset");

  /** Resolves when the page shows the beginning, after so many losses. */
  async function sawBeginning(watcher: Watcher, losses: number): Promise<void> {
    await watcher.until(
      (state) => resetsOf(watcher).length === losses && agentTexts(state).join() === beginning,
    );
  }

  /** Expects that the watcher resumed with `from`, received each loss, and never saw a text twice. */
  async function expectSeamless(watcher: Watcher, losses: number): Promise<void> {
    await watcher.until(({ turns }) => turns.at(-1)?.status === "completed");
    const resumed = watcher.addresses.slice(1).map(({ searchParams }) => Number(searchParams.get("from")));
    expect(resumed.length).toBeGreaterThanOrEqual(losses);
    expect(resumed.every((from) => from > 0)).toBe(true);
    expect(watcher.frames.filter(({ type }) => type === "snapshot")).toHaveLength(1);
    expect(resetsOf(watcher).map(({ data }) => data)).toEqual(Array(losses).fill({ reason: "interrupted" }));
    const numbers = watcher.frames.flatMap(({ seq }) => seq ?? []);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    for (const texts of watcher.shown) {
      expect(texts.length).toBeLessThanOrEqual(1);
      expect(answer.startsWith(texts.join())).toBe(true);
    }
    expect(watcher.shown.at(-1)).toEqual([answer]);
  }

  it("twice in a stream: the turn is never CANCELLED, it ends as without a kill, and a watcher sees each text once", async () => {
    const golden = await undisturbedTranscript();
    const id = await newConversation();
    using watcher = new Watcher(start.url, id);
    await watcher.until(({ conversation }) => conversation !== null);
    onTestFailed(() => {
      const { addresses, frames } = watcher;
      console.error(start.output(), addresses.map(String), frames.slice(-20), model.requests.length);
    });

    const message = { content, idempotencyKey: "the-first" };
    const before = model.requests.length;
    model.reply(stuck, stuck);
    const started = await client.turns.start(id, message);
    await sawBeginning(watcher, 0);
    await killWorker(start.npm.pid ?? 0, start.url);
    const again = () => client.turns.start(id, message).catch(({ code }) => code);
    await expect.poll(again, { timeout: RESTART_MS }).toEqual(started);
    await sawBeginning(watcher, 1);
    await killWorker(start.npm.pid ?? 0, start.url);

    await expectSeamless(watcher, 2);
    expect(await again()).toEqual(started);
    expect(await transcript(client, id)).toEqual(golden);
    expect(model.requests).toHaveLength(before + 3);
  });

  it("G18 STOP-1 STOP-3 after the commit of a stop: the turn is always CANCELLED with its text, and no model is called again", async () => {
    const id = await newConversation();
    using watcher = new Watcher(start.url, id);
    await watcher.until(({ conversation }) => conversation !== null);
    const question = "Where does it begin?";
    const asked = () => model.requests.filter(({ body }) => JSON.stringify(body.messages).includes(question));
    model.reply(stuck);
    const { turnId } = await client.turns.start(id, { content: question });
    await sawBeginning(watcher, 0);
    const stopped = await client.turns.cancel(id, turnId);
    await killWorker(start.npm.pid ?? 0, start.url);

    expect(stopped).toMatchObject({ status: "failed", error: { code: "CANCELLED" } });
    await expect
      .poll(() => client.turns.get(id, turnId).catch(() => null), { timeout: RESTART_MS })
      .toEqual(stopped);
    await watcher.until(({ turns }) => turns.at(-1)?.error?.code === "CANCELLED");
    expect(await transcript(client, id)).toEqual([
      { role: "user", content: question },
      { role: "agent", content: beginning },
    ]);
    for await (const _ of client.streamTurn(id, { content: "Go on." }));
    expect(asked()).toHaveLength(2);
    expect(asked()[1]?.body.messages?.slice(1)).toMatchObject([
      { role: "user", content: question },
      { role: "assistant", content: beginning },
      { role: "user", content: expect.stringMatching(/^\[Note of the platform\] .*was stopped/) },
      { role: "user", content: "Go on." },
    ]);
  });

  it("every process at once: the next start ends the turns, even without a client", async () => {
    const golden = await undisturbedTranscript();
    const watched = await newConversation();
    const forgotten = await newConversation();
    using watcher = new Watcher(start.url, watched);
    await watcher.until(({ conversation }) => conversation !== null);

    const before = model.requests.length;
    model.reply(stuck, stuck);
    await client.turns.start(forgotten, { content });
    const started = await client.turns.start(watched, { content, idempotencyKey: "the-second" });
    await Promise.all([model.request(before), model.request(before + 1), sawBeginning(watcher, 0)]);
    await killAll(processTree(start.npm.pid ?? 0).map(({ pid }) => pid));
    start = await npmStart(persist, { OPENAI_BASE_URL: model.baseUrl }, Number(new URL(start.url).port));

    await expectSeamless(watcher, 1);
    expect(await client.turns.start(watched, { content, idempotencyKey: "the-second" })).toEqual(started);
    expect(await transcript(client, watched)).toEqual(golden);

    await (await model.request(before + 3)).closed;
    await expect.poll(() => transcript(client, forgotten)).toEqual(golden);
    expect(model.requests).toHaveLength(before + 4);
  });
});

/** Both conversations lose the Worker by one kill, and recover side by side for half a minute. */
describe("in the middle of tools and of tasks", () => {
  const answer = "You are expected at eight.";
  const order = { content: "A table, please.", idempotencyKey: "a-table" };
  const tools = ["careful", "again"] as const;
  /** The model of the shop's clerk and of the office's, each with the outside that its tools act on. */
  let shop: OpenAIServer;
  let office: OpenAIServer;
  let server: Server;
  let client: DramatisClient;
  let undisturbed: unknown[];
  let ordered: { id: string; started: { turnId: string } };
  let working: { id: string; turnId: string };

  beforeAll(async () => {
    shop = await startOpenAIServer({ script: ({ path, body }) => inShop(path, body.messages ?? []) });
    office = await startOpenAIServer({ script: ({ path, body }) => inOffice(path, body.messages ?? []) });
    vi.stubEnv("OPENAI_BASE_URL", shop.baseUrl);
    vi.stubEnv("DRAMATIS_HTTP_HOSTS", new URL(office.baseUrl).host);
    vi.stubEnv("DRAMATIS_MODEL_HOSTS", new URL(office.baseUrl).origin);
    server = await startServer({
      port: 0,
      persist: join(folder, "tools"),
      config: join(import.meta.dirname, "wrangler.jsonc"),
      onLine: () => {},
    });
    await server.ready;
    client = createClient({ baseUrl: server.url });
    await openOffice();

    const { id } = await client.conversations.create({ agentId: "clerk" });
    for await (const _ of client.streamTurn(id, { content: order.content }));
    undisturbed = await transcript(client, id);
    await Promise.all([beginOrder(), beginWork()]);
    const keeper = processTree(process.pid).find(({ command }) => command.includes(join(folder, "tools")));
    await killWorker(keeper?.pid ?? 0, server.url);
  });

  afterAll(async () => {
    vi.unstubAllEnvs();
    await server.stop();
    await Promise.all([shop.close(), office.close()]);
  });

  /** A model that calls both tools and then answers. */
  function inShop(path: string, messages: { role: string }[]): Reply {
    if (path === "/v1/chat/completions") {
      if (messages.some(({ role }) => role === "tool")) return textReply(answer);
      const call = (name: string) => ({ id: name, name, arguments: { url: `${shop.baseUrl}/${name}` } });
      return toolReply(call("charge"), call("reserve"));
    }
    return jsonReply({ done: path });
  }

  /** Orders a table. Returns when both tools wait for ever. */
  async function beginOrder(): Promise<void> {
    const before = shop.requests.length;
    expect(before).toBe(4);
    const { id } = await client.conversations.create({ agentId: "clerk" });
    shop.reply(inShop("/v1/chat/completions", []), { kind: "hang" }, { kind: "hang" });
    ordered = { id, started: await client.turns.start(id, order) };
    await Promise.all([shop.request(before + 1), shop.request(before + 2)]);
  }

  /** Five requests; the third of the careful task must not run twice. */
  const stepsOf = (tool: string) =>
    [1, 2, 3, 4, 5].map((n) => ({
      ref: `step_${n}`,
      action: {
        kind: "http.request",
        hosts: [new URL(office.baseUrl).host],
        effect: tool === "careful" && n === 3 ? "once" : "idempotent",
      },
      inputMapping: { url: `'${office.baseUrl}/${tool}-${n}'`, method: "'POST'", body: "state" },
      outputMapping: { [`state.done_${n}`]: "result.status" },
    }));

  async function openOffice(): Promise<void> {
    const { baseUrl } = office;
    await post("model-profiles", { id: "office", provider: "openai", modelId: "office", baseUrl });
    for (const tool of tools) {
      await post("tasks", { id: tool, inputSchema: { type: "object" }, steps: stepsOf(tool) });
      const target = { task: tool };
      await post("tools", { id: tool, name: tool, description: "Works.", target });
    }
    await post("personas", {
      id: "clerk",
      identity: { systemPrompt: "Work.", modelProfileId: "office" },
      tools: { toolIds: tools },
    });
    await send("/api/agents", { id: "office-clerk", persona: "office/clerk" });
  }

  const post = (path: string, body: object) => send(`/api/libraries/office/${path}`, body);

  async function send(path: string, body: object): Promise<void> {
    const init = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    };
    const response = await fetch(new URL(path, server.url), init);
    expect(response.status, await response.clone().text()).toBe(201);
  }

  /** The model calls both tools and then answers; the third step of each waits for ever the first time. */
  const hung = new Set<string>();
  function inOffice(path: string, messages: { role: string }[]): Reply {
    if (path === "/v1/chat/completions") {
      if (messages.some(({ role }) => role === "tool")) return textReply("Done.");
      return toolReply(...tools.map((name) => ({ id: name, name, arguments: {} })));
    }
    if (!path.endsWith("-3") || hung.has(path)) return jsonReply({ done: path });
    hung.add(path);
    return { kind: "hang" };
  }

  /** Begins both tasks. Returns when the third step of each waits for ever. */
  async function beginWork(): Promise<void> {
    const { id } = await client.conversations.create({ agentId: "office-clerk" });
    const { turnId } = await client.turns.start(id, { content: "Work, please." });
    working = { id, turnId };
    await vi.waitUntil(() => tools.every((tool) => keysOf(`${tool}-3`).length === 1), { timeout: 20_000 });
  }

  const visits = (name: string) => shop.requests.filter(({ path }) => path === `/v1/${name}`);

  const keysOf = (name: string) =>
    office.requests
      .filter(({ path }) => path === `/v1/${name}`)
      .map(({ headers }) => headers["idempotency-key"]);

  it("without clients: a once tool is not run again, an idempotent tool runs again as the same operation", async () => {
    const { id, started } = ordered;
    const last = await shop.request(8);
    await last.closed;
    expect(visits("charge")).toHaveLength(2);
    const [, , ...results] = last.body.messages?.slice(-4) ?? [];
    expect(results).toMatchObject([
      { role: "tool", tool_call_id: "charge", content: expect.stringContaining("Outcome unknown") },
      { role: "tool", tool_call_id: "reserve", content: expect.stringContaining("/v1/reserve") },
    ]);
    const [, first, second] = visits("reserve").map(({ headers }) => headers["idempotency-key"]);
    expect(first).toMatch(/^op_/);
    expect(second).toBe(first);

    await expect.poll(async () => (await client.turns.get(id, started.turnId)).status).toBe("completed");
    expect(await transcript(client, id)).toEqual(undisturbed);
    expect(await client.turns.start(id, order)).toEqual(started);
    const { moves } = await client.turns.get(id, started.turnId);
    expect(moves.map(({ toolCall, toolResult }) => [toolCall?.name, toolResult?.success])).toEqual([
      ["charge", false],
      ["reserve", true],
      [undefined, undefined],
    ]);
    expect(visits("charge")).toHaveLength(2);
    expect(visits("reserve")).toHaveLength(3);
    expect(visits("chat/completions")).toHaveLength(4);
  });

  it("F10 STEP-5 a task of five steps: its idempotent steps run again under the same keys; one with a `once` step runs no second time", async () => {
    const { id, turnId } = working;
    await expect
      .poll(async () => (await client.turns.get(id, turnId)).status, { timeout: 50_000 })
      .toBe("completed");
    const { moves } = await client.turns.get(id, turnId);
    const [careful, again] = moves.map(({ toolResult }) => toolResult);
    expect(careful).toMatchObject({
      success: false,
      error: { message: expect.stringContaining("Outcome unknown") },
    });
    expect(again?.success).toBe(true);
    const visitsOf = (tool: string) => [1, 2, 3, 4, 5].map((n) => keysOf(`${tool}-${n}`).length);
    expect(visitsOf("careful")).toEqual([1, 1, 1, 0, 0]);
    expect(visitsOf("again")).toEqual([2, 2, 2, 1, 1]);
    for (const n of [1, 2, 3]) {
      const [first, second] = keysOf(`again-${n}`);
      expect(first).toMatch(new RegExp(`^op_.+/step_${n}$`));
      expect(second).toBe(first);
    }
    const [, secondMove] = moves;
    expect(secondMove?.toolCall?.task?.steps.map(({ status }) => status)).toEqual(Array(5).fill("completed"));
  });
});
