/** `dramatis acp` with the official client of ACP: the command as a child process, against a Worker with slow tools and with approvals. */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type { ContentBlock } from "@agentclientprotocol/sdk";
import { ClientSideConnection, ndJsonStream } from "acp-sdk-older";
import { SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { buildConsole, CONSOLE } from "../../scripts/console.ts";
import { type Server, startServer } from "../../scripts/server.ts";
import { createClient, type DramatisClient } from "../../src/client/index.ts";
import { allow, Editor, reject, startAcp } from "../support/acp-editor.ts";
import { Desk } from "../support/desk.ts";
import { startMcpServers } from "../support/mcp-server.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";
import { killAll, processTree, runsTheWorker } from "../support/processes.ts";

const SECRET = "an e2e secret of more than thirty-two bytes";
/** Time for a restart of the Worker, in milliseconds. */
const RESTART_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "dramatis-acp-"));

let server: Server;
let desk: Desk;
let mcp: Awaited<ReturnType<typeof startMcpServers>>;
let client: DramatisClient;
const editors: Editor[] = [];

function edit(settings: Partial<ConstructorParameters<typeof Editor>[0]> = {}): Editor {
  const editor = new Editor({ url: server.url, ...settings });
  editors.push(editor);
  return editor;
}

beforeAll(async () => {
  buildConsole();
  desk = await Desk.open();
  mcp = await startMcpServers();
  vi.stubEnv("DRAMATIS_HTTP_HOSTS", new URL(mcp.url).host);
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

afterEach(async () => {
  for (const editor of editors.splice(0)) {
    if (editor.child.exitCode === null && editor.child.signalCode === null)
      expect(await editor.close()).toBe(0);
    expect(editor.faults).toEqual([]);
    for (const line of editor.output.split("\n").filter((line) => line !== ""))
      expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
  }
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await server?.stop();
  await desk?.close();
  await mcp?.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("I12 ACP: an editor", () => {
  it("I12 H9 ACP-3 ACP-13 begins a session, streams the answer, and lists the session", async () => {
    const editor = edit();
    expect(await editor.initialize()).toMatchObject({
      protocolVersion: 1,
      agentInfo: { name: "dramatis" },
      agentCapabilities: { loadSession: true, promptCapabilities: { image: true, embeddedContext: true } },
    });
    const { sessionId } = await editor.agent.request("session/new", { cwd: "/project", mcpServers: [] });
    expect(await editor.prompt(sessionId, "!slow 8 20")).toEqual({ stopReason: "end_turn" });
    const chunks = editor.updates.filter(({ sessionUpdate }) => sessionUpdate === "agent_message_chunk");
    expect(chunks.length).toBeGreaterThan(2);
    expect(editor.texts()).toEqual(["word-1 word-2 word-3 word-4 word-5 word-6 word-7 word-8"]);
    expect(editor.texts("user_message_chunk")).toEqual([]);
    const { sessions } = await editor.agent.request("session/list", { cwd: "/project" });
    expect(sessions[0]).toMatchObject({ sessionId, cwd: "/project" });
    expect(await client.conversations.get(sessionId)).toMatchObject({ agentId: "clerk" });
  });

  it.each([
    { decision: "approves", decide: allow, bodies: 1 },
    { decision: "denies", decide: reject, bodies: 0 },
  ])("I12 ACP-5 ACP-6 a person $decision a call in the editor", async ({ decision, decide, bodies }) => {
    const editor = edit({ decide });
    const sessionId = await editor.begin();
    const path = `/now/${decision}`;
    const input = { url: desk.url(path), item: "coin" };
    expect(await editor.prompt(sessionId, `!tool transfer ${JSON.stringify(input)}`)).toEqual({
      stopReason: "end_turn",
    });
    expect(editor.asked).toMatchObject([
      { sessionId, toolCall: { status: "pending", rawInput: input, title: `transfer ${input.url}` } },
    ]);
    expect(desk.bodiesOf(path)).toHaveLength(bodies);
    const calls = editor.calls();
    expect(calls[0]).toMatchObject({
      sessionUpdate: "tool_call",
      toolCallId: editor.asked[0]?.toolCall.toolCallId,
      name: "transfer",
      rawInput: input,
    });
    const last = calls.at(-1);
    if (bodies === 1) expect(last).toMatchObject({ status: "completed", rawOutput: "{}" });
    else
      expect(last).toMatchObject({
        status: "failed",
        rawOutput: { error: { code: "APPROVAL_DENIED" } },
      });
  });

  it("I12 ACP-14 a person confirms a question of a server, and questions with fields or with an address name another place", async () => {
    const schema = { type: "object", properties: { text: { type: "string" } } };
    const ask = { name: "ask", description: "Asks a person.", inputSchema: schema, does: "ask" };
    await fetch(`${mcp.url}/control/desk`, { method: "POST", body: JSON.stringify({ tools: [ask] }) });
    const body = JSON.stringify({ id: "visitor", persona: "work/visitor" });
    expect((await fetch(`${server.url}/api/agents`, { method: "POST", body })).status).toBe(201);
    const decide: typeof allow = async ({ options }) => {
      const { optionId = "" } = options[0] ?? {};
      return { outcome: { outcome: "selected", optionId } };
    };
    const editor = edit({ agent: "visitor", decide });
    const sessionId = await editor.begin();
    const play = async (text: string) => {
      expect(await editor.prompt(sessionId, `!tool mcp__desk__ask {"text": "${text}"}`)).toEqual({
        stopReason: "end_turn",
      });
      const { toolCall, options } = editor.asked.at(-1) ?? {};
      const names = options?.map(({ name }) => name);
      return { toolCall, names, shown: JSON.stringify(toolCall?.content), last: editor.calls().at(-1) };
    };
    const confirmed = await play("confirm");
    expect(confirmed.names).toEqual(["Approve", "Deny"]);
    expect(confirmed.toolCall?.content).toEqual([
      {
        type: "content",
        content: { type: "text", text: "The server of the tool asks:\n\n> Go on?\n> It costs 5." },
      },
    ]);
    expect(confirmed.last).toMatchObject({ status: "completed" });
    expect(JSON.stringify(confirmed.last)).toContain("accept");
    for (const [kind, texts] of [
      ["form", ["> Sure?"]],
      ["url", ["> Sign in.", "login.example.com"]],
    ] as const) {
      const { names, shown, toolCall, last } = await play(kind);
      expect(names).toEqual(["Deny"]);
      const approve = `dramatis approve ${sessionId} ${toolCall?.toolCallId} --round 1 --values`;
      for (const text of [...texts, `${server.url}/c/${sessionId}`, approve]) expect(shown).toContain(text);
      expect(last).toMatchObject({ status: "failed", rawOutput: { error: { code: "APPROVAL_DENIED" } } });
    }
    expect(editor.asked).toHaveLength(3);
  });

  it("I12 ACP-11 another person denies with a reason, and the request of the editor is cancelled", async () => {
    const { promise: isCancelled, resolve } = Promise.withResolvers<void>();
    const editor = edit({
      decide: async (_asked, signal) => {
        await once(signal, "abort");
        resolve();
        return { outcome: { outcome: "cancelled" } };
      },
    });
    const sessionId = await editor.begin();
    const path = "/now/elsewhere";
    const prompt = editor.prompt(sessionId, `!tool transfer {"url": "${desk.url(path)}"}`);
    await expect.poll(() => editor.asked.length).toBe(1);
    const operationId = editor.asked[0]?.toolCall.toolCallId ?? "";
    const reason = "Too expensive for today.";
    await client.operations.resolveApproval(sessionId, operationId, { approved: false, reason });
    expect(await prompt).toEqual({ stopReason: "end_turn" });
    await isCancelled;
    expect(JSON.stringify(editor.calls().at(-1))).toContain(reason);
    expect(desk.bodiesOf(path)).toEqual([]);
  });

  it("I12 ACP-11 a call that only other people may approve says so, and the editor is not asked", async () => {
    const editor = edit();
    const sessionId = await editor.begin();
    const prompt = editor.prompt(sessionId, `!tool pay_twice {"url": "${desk.url("/now/twice")}"}`);
    await expect
      .poll(() => JSON.stringify(editor.calls().at(-1)))
      .toContain("except the requester, may answer.");
    await editor.agent.notify("session/cancel", { sessionId });
    expect(await prompt).toEqual({ stopReason: "cancelled" });
    expect(editor.calls().at(-1)).toMatchObject({ status: "failed" });
    expect([editor.asked, desk.bodiesOf("/now/twice")]).toEqual([[], []]);
  });

  it("I12 ACP-6 shows the call of another agent, and asks about a call of that agent", async () => {
    const editor = edit();
    const sessionId = await editor.begin();
    const path = "/now/porter";
    const inner = `!tool transfer {"url": "${desk.url(path)}", "item": "trunk"}`;
    const outer = `!tool ask_porter ${JSON.stringify({ message: inner })}`;
    expect(await editor.prompt(sessionId, outer)).toEqual({ stopReason: "end_turn" });
    expect(editor.asked).toMatchObject([{ toolCall: { title: expect.stringMatching(/^porter: transfer/) } }]);
    expect(desk.bodiesOf(path)).toEqual(["trunk"]);
    const [called, asked] = editor.calls().filter(({ sessionUpdate }) => sessionUpdate === "tool_call");
    expect(called).toMatchObject({ title: "ask_porter (agent porter)" });
    expect(asked?.toolCallId).toBe(editor.asked[0]?.toolCall.toolCallId);
    for (const call of [called, asked])
      expect(editor.calls().findLast(({ toolCallId }) => toolCallId === call?.toolCallId)).toMatchObject({
        status: "completed",
      });
  });

  it("I12 ACP-12 session/cancel stops the turn in the middle of its text", async () => {
    const editor = edit();
    const sessionId = await editor.begin();
    const prompt = editor.prompt(sessionId, "!slow 500 50");
    await expect.poll(() => editor.texts().join("")).toContain("word-3");
    await editor.agent.notify("session/cancel", { sessionId });
    expect(await prompt).toEqual({ stopReason: "cancelled" });
    const stopped = async () => (await client.turns.list({ conversation: sessionId })).turns;
    await expect.poll(stopped).toMatchObject([{ errorCode: "CANCELLED" }]);
    expect(await editor.prompt(sessionId, "!say Again.")).toEqual({ stopReason: "end_turn" });
  });

  it("I12 H9 ACP-3 loads a session: the same texts and calls as live, and the conversation continues", async () => {
    const editor = edit();
    const sessionId = await editor.begin();
    await editor.prompt(sessionId, `!tool flaky {"url": "${desk.url("/now/flaky")}"}`);
    await editor.prompt(sessionId, "!say Good morning.");
    const later = edit();
    await later.initialize();
    await later.load(sessionId);
    expect(later.texts()).toEqual(editor.texts());
    expect(later.texts("user_message_chunk")).toHaveLength(2);
    expect(later.calls()).toEqual(editor.calls());
    expect(await later.prompt(sessionId, "!say Good evening.")).toEqual({ stopReason: "end_turn" });
    expect(later.texts().at(-1)).toBe("Good evening.");

    const resumed = edit();
    await resumed.initialize();
    await resumed.agent.request("session/resume", { sessionId, cwd: "/project" });
    expect(resumed.updates).toEqual([]);
    expect(await resumed.prompt(sessionId, "!say Good night.")).toEqual({ stopReason: "end_turn" });
    expect(resumed.texts()).toEqual(["Good night."]);
    expect(await resumed.agent.request("session/close", { sessionId })).toEqual({});
    await expect(resumed.prompt(sessionId, "!say No.")).rejects.toMatchObject({ code: -32002 });
  });

  it("I12 ACP-3 a loaded session leaves out turns that were answered again", async () => {
    const editor = edit();
    const sessionId = await editor.begin();
    await editor.prompt(sessionId, "!say First.");
    const { messages } = await client.messages.list(sessionId);
    const { turnId } = await client.turns.edit(sessionId, messages[0]?.turnId ?? "", {
      content: "!say Second.",
    });
    await expect.poll(async () => (await client.turns.get(sessionId, turnId)).status).toBe("completed");
    const later = edit();
    await later.initialize();
    await later.load(sessionId);
    expect(later.texts("user_message_chunk")).toEqual(["!say Second."]);
    expect(later.texts()).toEqual(["Second."]);
  });

  it("I12 ACP-12 a killed command leaves the turn, and a loaded session continues with its text once", async () => {
    const editor = edit();
    const sessionId = await editor.begin();
    const prompt = editor.prompt(sessionId, "!slow 60 50").catch((error: unknown) => error);
    await expect.poll(() => editor.texts().join("")).toContain("word-3");
    editor.child.kill("SIGKILL");
    expect(await prompt).toBeInstanceOf(Error);
    const later = edit();
    await later.initialize();
    await later.load(sessionId);
    const words = Array.from({ length: 60 }, (_, index) => `word-${index + 1}`).join(" ");
    await expect.poll(() => later.texts(), { timeout: 15_000 }).toEqual([words]);
    expect(later.texts("user_message_chunk")).toEqual(["!slow 60 50"]);
  });

  it("I12 ACP-11 a killed command leaves a request, and a loaded session asks again", async () => {
    const editor = edit({ decide: () => new Promise(() => {}) });
    const sessionId = await editor.begin();
    const path = "/now/again";
    const prompt = editor
      .prompt(sessionId, `!tool transfer {"url": "${desk.url(path)}"}`)
      .catch(() => undefined);
    await expect.poll(() => editor.asked.length).toBe(1);
    editor.child.kill("SIGKILL");
    await prompt;
    const later = edit();
    await later.initialize();
    await later.load(sessionId);
    await expect.poll(() => later.calls().at(-1)).toMatchObject({ status: "completed" });
    expect(later.asked).toHaveLength(1);
    expect(desk.bodiesOf(path)).toHaveLength(1);
    await later.load(sessionId);
    expect(later.asked).toHaveLength(1);
  });

  it("I12 ACP-12 one command serves several sessions, and a cancelled request stops its own turn only", async () => {
    const editor = edit();
    const [first, second] = [await editor.begin(), await editor.begin()];
    const cancel = new AbortController();
    const prompt = [{ type: "text" as const, text: "!slow 500 50" }];
    const stopped = editor.agent.request(
      "session/prompt",
      { sessionId: first, prompt },
      { cancellationSignal: cancel.signal },
    );
    await expect.poll(() => editor.texts().join("")).toContain("word-3");
    await expect(editor.load(first)).rejects.toMatchObject({
      message: expect.stringContaining("session/cancel"),
    });
    const other = editor.prompt(second, "!slow 20 50");
    cancel.abort();
    expect(await stopped).toEqual({ stopReason: "cancelled" });
    expect(await other).toEqual({ stopReason: "end_turn" });
  });

  it("I12 ACP-3 a cut answer ends with max_tokens, and a stopped conversation says what to do", async () => {
    const editor = edit({ agent: "telegraphist" });
    const sessionId = await editor.begin();
    expect(await editor.prompt(sessionId, "!say One two three four five.")).toEqual({
      stopReason: "max_tokens",
    });
    await client.conversations.cancel(sessionId);
    await expect(editor.prompt(sessionId, "Hello")).rejects.toMatchObject({
      data: { code: "CANCELLED" },
      message: expect.stringContaining("Resume the conversation"),
    });
  });

  it("I12 ACP-7 a prompt ends while work goes on in the background, and its result follows", async () => {
    const editor = edit();
    const sessionId = await editor.begin();
    const prompt = editor.prompt(
      sessionId,
      `!tool research {"url": "${desk.url("/research")}", "item": "rain"}`,
    );
    expect(await prompt).toEqual({ stopReason: "end_turn" });
    expect(editor.calls().at(-1)).not.toMatchObject({ status: "completed" });
    await expect.poll(() => desk.answer("/research", "It rains.")).toBe(true);
    await expect.poll(() => editor.texts().join(" ")).toContain("It rains.");
    expect(editor.calls().at(-1)).toMatchObject({ status: "completed", rawOutput: "It rains." });
  });

  it("I12 ACP-1 a prompt with an image and a file becomes a message with both, and a loaded session shows the image", async () => {
    const editor = edit();
    const sessionId = await editor.begin();
    const image =
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const prompt: ContentBlock[] = [
      { type: "text", text: "!say Seen: " },
      { type: "resource_link", name: "a.ts", uri: "file:///project/a.ts" },
      { type: "image", data: image, mimeType: "image/png" },
      { type: "resource", resource: { uri: "file:///project/b.md", text: "# Notes" } },
    ];
    const { stopReason } = await editor.agent.request("session/prompt", { sessionId, prompt });
    expect(stopReason).toBe("end_turn");
    const { messages } = await client.messages.list(sessionId);
    expect(messages[0]?.content).toEqual([
      { type: "text", text: "!say Seen: [a.ts](file:///project/a.ts)[b.md](file:///project/b.md)" },
      { type: "text", text: "Content of file:///project/b.md:\n\n# Notes" },
      { type: "image", url: `data:image/png;base64,${image}`, mediaType: "image/png" },
    ]);
    const later = edit();
    await later.initialize();
    await later.load(sessionId);
    expect(later.updates).toContainEqual(
      expect.objectContaining({ content: { type: "image", data: image, mimeType: "image/png" } }),
    );
  });

  it("I12 H9 ACP-13 ClientSideConnection of an older release of the SDK runs a turn with an approval", async () => {
    const child = startAcp({ url: server.url, agent: "clerk" });
    const texts: string[] = [];
    const older = new ClientSideConnection(
      () => ({
        requestPermission: async () => ({ outcome: { outcome: "selected", optionId: "allow" } }),
        sessionUpdate: async ({ update }) => {
          if (update.sessionUpdate === "agent_message_chunk" && update.content.type === "text")
            texts.push(update.content.text);
        },
      }),
      ndJsonStream(
        Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>,
      ),
    );
    expect(await older.initialize({ protocolVersion: 1 })).toMatchObject({ protocolVersion: 1 });
    const { sessionId } = await older.newSession({ cwd: "/project", mcpServers: [] });
    const text = `!tool transfer {"url": "${desk.url("/now/older")}"}`;
    expect(await older.prompt({ sessionId, prompt: [{ type: "text", text }] })).toEqual({
      stopReason: "end_turn",
    });
    expect(texts.join("")).toBe("Offline model: transfer answered {}.");
    expect(desk.bodiesOf("/now/older")).toHaveLength(1);
    const exit = once(child, "exit");
    child.stdin.end();
    expect((await exit)[0]).toBe(0);
  });

  it("I12 G2 the configurations of docs/acp.md name options of the command", async () => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/acp.md"), "utf8");
    const blocks = [...page.matchAll(/^```json\n(.*?)^```$/gms)].map(([, text = ""]) => JSON.parse(text));
    expect(blocks).toHaveLength(2);
    const lines = blocks.flatMap(({ agent_servers: servers }) => Object.values<{ args: string[] }>(servers));
    const [, listed = ""] = /args = \{ (.*) \}/.exec(page) ?? [];
    const [, started = ""] = /default = \{ "npx", (.*) \}/.exec(page) ?? [];
    for (const args of [
      ...lines.map(({ args }) => args),
      JSON.parse(`[${listed}]`),
      JSON.parse(`[${started}]`),
    ]) {
      expect(args.slice(0, 3)).toEqual(["dramatis", "acp", "--url"]);
      const editor = edit({ args: args.slice(1) });
      expect(await editor.initialize()).toMatchObject({ protocolVersion: 1 });
    }
  });

  it("I12 ACP-8 wrong input gets a JSON-RPC error that says what to change, and the command goes on", async () => {
    const editor = edit();
    const sessionId = await editor.begin();
    editor.child.stdin.write("{not json\n[]\n");
    await expect.poll(() => editor.output).toContain('"code":-32700');
    await expect.poll(() => editor.output).toContain('"code":-32600');
    await expect(editor.prompt("conv_x", "Hello")).rejects.toMatchObject({
      code: -32002,
      message: expect.stringContaining("session/load"),
    });
    await expect(editor.load("conv_01JD0000000000000000000000")).rejects.toMatchObject({ code: -32002 });
    await expect(editor.prompt(sessionId, " ")).rejects.toMatchObject({ code: -32602 });
    await expect(editor.agent.request("session/none", {})).rejects.toMatchObject({ code: -32601 });
    const other = (await client.conversations.create({ agentId: "porter" })).id;
    await expect(editor.load(other)).rejects.toMatchObject({
      message: expect.stringContaining("--agent porter"),
    });
    const loads = await Promise.allSettled([editor.load(sessionId), editor.load(sessionId)]);
    expect(loads.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(await editor.prompt(sessionId, "!say Still here.")).toEqual({ stopReason: "end_turn" });

    const unknown = edit({ agent: "ghost" });
    await expect(unknown.begin()).rejects.toMatchObject({
      code: -32002,
      message: expect.stringMatching(/no agent "ghost".*--agent/),
    });
    const away = edit({ url: "http://127.0.0.1:1" });
    await expect(away.begin()).rejects.toMatchObject({
      code: -32603,
      message: expect.stringMatching(/No server answers at http:\/\/127\.0\.0\.1:1.*--url/),
    });
    const foreign = edit({ url: desk.url("/now/") });
    await expect(foreign.begin()).rejects.toMatchObject({
      message: expect.stringContaining("not as a Dramatis"),
    });
  });

  it("I12 ACP-9 a prompt starts one turn, also if the answer of the server is lost", async () => {
    let lost = 0;
    const proxy = createServer(async (request, response) => {
      const body = await buffer(request);
      const { host: _, connection: __, ...headers } = request.headers;
      const answer = await fetch(server.url + request.url, {
        method: request.method ?? "GET",
        headers: headers as Record<string, string>,
        ...(body.length > 0 && { body }),
      });
      if (request.method === "POST" && request.url?.endsWith("/turns") && lost++ === 0) {
        await answer.text();
        request.socket.destroy();
        return;
      }
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
      Readable.fromWeb(answer.body as never)
        .on("error", () => response.destroy())
        .pipe(response);
    });
    await once(proxy.listen(0, "127.0.0.1"), "listening");
    const editor = edit({ url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` });
    const sessionId = await editor.begin();
    expect(await editor.prompt(sessionId, "!say Once.")).toEqual({ stopReason: "end_turn" });
    expect(lost).toBe(2);
    expect(editor.texts()).toEqual(["Once."]);
    expect((await client.messages.list(sessionId)).messages).toHaveLength(2);
    await editor.close();
    proxy.closeAllConnections();
    proxy.close();
  });
});

describe("I12 ACP: the Worker is killed", () => {
  /** Kills the process that runs the Worker. The server starts it again. */
  async function killWorker(): Promise<void> {
    const workers = processTree(process.pid).filter((child) => runsTheWorker(child, server.url));
    expect(workers).toHaveLength(1);
    await killAll(workers.map(({ pid }) => pid));
  }

  it(
    "I12 H9 ACP-4 ACP-10 in the middle of a streamed answer: the editor gets the same text, once",
    async () => {
      const editor = edit();
      const sessionId = await editor.begin();
      const prompt = editor.prompt(sessionId, "!slow 60 50");
      await expect.poll(() => editor.texts().join("")).toContain("word-9");
      await killWorker();
      expect(await prompt).toEqual({ stopReason: "end_turn" });
      const words = Array.from({ length: 60 }, (_, index) => `word-${index + 1}`).join(" ");
      expect(editor.texts()).toEqual([words]);
      const later = edit();
      await later.initialize();
      await later.load(sessionId);
      expect(later.texts()).toEqual([words]);
    },
    RESTART_MS,
  );

  it(
    "I12 ACP-5 ACP-9 in the middle of two calls: the done call runs once, and each call begins and ends once",
    async () => {
      const editor = edit();
      const sessionId = await editor.begin();
      const calls = [
        `!tool transfer {"url": "${desk.url("/now/kill")}", "item": "coin"}`,
        `!tool flaky {"url": "${desk.url("/kill")}"}`,
      ];
      const prompt = editor.prompt(sessionId, calls.join("\n"));
      const completed = () => editor.calls().filter(({ status }) => status === "completed");
      await expect.poll(() => [completed().length, desk.bodiesOf("/kill").length]).toEqual([1, 1]);
      await killWorker();
      await expect.poll(() => desk.bodiesOf("/kill").length, { timeout: RESTART_MS }).toBe(2);
      while (desk.answer("/kill", "Found."));
      expect(await prompt).toEqual({ stopReason: "end_turn" });
      expect(desk.bodiesOf("/now/kill")).toEqual(["coin"]);
      expect(editor.asked).toHaveLength(1);
      expect(completed()).toHaveLength(2);
      expect(editor.calls().filter(({ sessionUpdate }) => sessionUpdate === "tool_call")).toHaveLength(2);
      expect(editor.texts().join("")).toContain("Found.");
    },
    RESTART_MS,
  );
});

describe("I12 ACP: a secured deployment", () => {
  let start: RunningStart;

  const sign = (seconds: number) =>
    new SignJWT({
      sub: "ada",
      tenant: "local",
      roles: ["admin"],
      exp: Math.floor(Date.now() / 1000) + seconds,
    })
      .setProtectedHeader({ alg: "HS256" })
      .sign(new TextEncoder().encode(SECRET));

  beforeAll(async () => {
    start = await npmStart(join(folder, "secured"), { AUTH_SECRET: SECRET });
  });
  afterAll(() => start?.stop());

  it("I12 CLITOKEN-1 ACP-8 the token comes from the environment, no output contains it, and a wrong token has an error", async () => {
    const { url } = start;
    for (const token of [undefined, await sign(-3600)]) {
      const refused = edit({ url, agent: "assistant", ...(token !== undefined && { token }) });
      await expect(refused.begin()).rejects.toMatchObject({
        code: -32000,
        message: expect.stringContaining("Set DRAMATIS_TOKEN"),
      });
    }
    const token = await sign(3600);
    const editor = edit({ url, agent: "assistant", token });
    const sessionId = await editor.begin();
    expect(await editor.prompt(sessionId, `!say ${token}`)).toEqual({ stopReason: "end_turn" });
    expect(editor.texts().join("")).toContain("[DRAMATIS_TOKEN]");
    expect(editor.output + editor.errors).not.toContain(token);
  });

  it("I12 ACP-1 a large image becomes an attachment", async () => {
    const editor = edit({ url: start.url, agent: "assistant", token: await sign(3600) });
    const sessionId = await editor.begin();
    const data = Buffer.alloc(1024 * 1024, 7).toString("base64");
    const prompt: ContentBlock[] = [
      { type: "text", text: "!say Seen." },
      { type: "image", data, mimeType: "image/png" },
    ];
    expect(await editor.agent.request("session/prompt", { sessionId, prompt })).toEqual({
      stopReason: "end_turn",
    });
    const reader = createClient({ baseUrl: start.url, token: await sign(3600) });
    const { messages } = await reader.messages.list(sessionId);
    expect(messages[0]?.content).toMatchObject([
      { type: "text" },
      { type: "image", url: expect.stringMatching(/^attachment:/), mediaType: "image/png" },
    ]);
  });

  it("I12 ACP-2 the change of a file is a diff of its call", async () => {
    const editor = edit({ url: start.url, agent: "developer", token: await sign(3600) });
    const sessionId = await editor.begin();
    const calls = [
      '!tool repo_write {"path": "notes.md", "content": "One."}',
      '!tool repo_edit {"path": "notes.md", "before": "One", "after": "Two"}',
    ];
    expect(await editor.prompt(sessionId, calls.join("\n!then\n"))).toEqual({ stopReason: "end_turn" });
    const [, written, , edited] = editor.calls();
    expect(written).toMatchObject({
      status: "completed",
      content: [{ type: "diff", path: "/notes.md", oldText: null, newText: "One." }],
    });
    expect(edited).toMatchObject({
      status: "completed",
      content: [{ type: "diff", path: "/notes.md", oldText: "One", newText: "Two" }],
    });
  });
});
