import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { failedStart, npmStart, type RunningStart } from "../support/npm-start.ts";
import {
  newGate,
  nothingLearned,
  type OpenAIServer,
  startOpenAIServer,
  textReply,
} from "../support/openai-server.ts";
import { devTools, listeningPorts } from "../support/ports.ts";
import {
  killAll,
  processTree,
  type RunningProcess,
  runsTheWorker,
  waitUntilGone,
} from "../support/processes.ts";

const ROOT = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "dramatis-start-"));
const persist = join(folder, "state");

const temporary = join(folder, "tmp");

let model: OpenAIServer;

beforeAll(async () => {
  mkdirSync(temporary);
  model = await startOpenAIServer({ script: () => textReply("Hello ", "there."), aside: nothingLearned });
});

afterAll(async () => {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the folders with variables for a Worker. */
function passedOn(): string[] {
  return readdirSync(temporary).filter((name) => name.startsWith("dramatis-"));
}

async function post(url: string, path: string, body: object): Promise<string> {
  const response = await fetch(`${url}/api/${path}`, { method: "POST", body: JSON.stringify(body) });
  expect(response.status).toBe(201);
  const { id } = (await response.json()) as { id: string };
  return id;
}

function createConversation(url: string, agentId = "assistant"): Promise<string> {
  return post(url, "conversations", { agentId });
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
  const response = await fetch(`${url}/api/conversations/${id}/messages?limit=200`);
  const { messages } = (await response.json()) as { messages: { content: unknown }[] };
  return messages.map(({ content }) => content);
}

/** Returns the status of a GET with any headers, including `Host`. */
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

  beforeAll(async () => {
    mkdirSync(persist, { mode: 0o755 });
    start = await npmStart(persist, {
      OPENAI_API_KEY: key,
      OPENAI_BASE_URL: model.baseUrl,
      TMPDIR: temporary,
    });
  });

  it("START-2 prints its address on one line, without wrangler's messages", async () => {
    expect(start.output().match(/ready/gi)).toHaveLength(1);
    expect(start.output()).not.toMatch(/wrangler:|⛅|⎔/);
    const health = await fetch(`${start.url}/health`);
    expect(health.status).toBe(200);
    expect(await health.json()).toMatchObject({ status: "ok" });
  });

  it("START-8 makes a state folder that existed readable by its owner only", () => {
    expect(statSync(persist).mode & 0o777).toBe(0o700);
  });

  it("START-9 LOG-1 logs a line for each turn and each model error, with ids and without content", async () => {
    const id = await createConversation(start.url);
    await say(start.url, id, "marmalade-7e57");
    const lines = () =>
      start
        .output()
        .split("\n")
        .filter((line) => line.includes(id));
    await expect.poll(lines).toHaveLength(1);
    expect(lines()[0]).toMatch(
      /^turn completed ms=\d+ turn=turn_\w{26} conversation=conv_\w{26} agent=assistant trace=[0-9a-f]{32}$/,
    );
    model.reply({ kind: "body", status: 401, headers: {}, body: "marmalade-7e57" });
    await say(start.url, id, "Again");
    await expect.poll(lines).toHaveLength(3);
    expect(lines()[1]).toMatch(
      /^model failed provider=openai model=\S+ status=401 attempts=1 .* code=auth ms=/,
    );
    expect(lines()[2]).toMatch(/^turn failed ms=\d+ .* code=MODEL_FAILED trace=/);
    expect(start.output()).not.toContain("marmalade");
  });

  it("DOCS-1 serves the page /docs with the policy of its style, and the console beside it", async () => {
    const page = await fetch(`${start.url}/docs`);
    expect(page.headers.get("content-type")).toMatch(/^text\/html/);
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    const style = /<style>([\s\S]*)<\/style>/.exec(await page.text())?.[1] ?? "";
    const hash = createHash("sha256").update(style).digest("base64");
    expect(page.headers.get("content-security-policy")).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
  });

  it("PAGE-1 every static file has the policy of the console, also missing and cached files", async () => {
    const console = join(ROOT, "dist/console");
    const files = globSync("**/*", { cwd: console, withFileTypes: true }).filter((entry) => entry.isFile());
    const paths = files.map(({ parentPath, name }) => `/${relative(console, join(parentPath, name))}`);
    expect(paths).toEqual(expect.arrayContaining(["/index.html", "/docs.html", "/favicon.svg"]));
    const { etag = "" } = Object.fromEntries((await fetch(start.url)).headers);
    const answers = await Promise.all([
      ...[...paths, "/", "/c/conv_x", "/assets/absent.js", "//evil.example/"].map((path) =>
        fetch(start.url + path, { redirect: "manual" }),
      ),
      fetch(start.url, { headers: { "if-none-match": etag } }),
      fetch(start.url, { method: "HEAD" }),
      fetch(start.url, { method: "POST" }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(expect.arrayContaining([200, 304, 307, 405]));
    for (const { headers, url, status } of answers) {
      expect(Object.fromEntries(headers), `${status} ${url}`).toMatchObject({
        "content-security-policy": expect.stringMatching(/^default-src 'none'; script-src 'self'; [^,]*$/),
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
      });
      expect(headers.get("content-security-policy")).not.toMatch(/unsafe|\*|data:|https?:/);
    }
  });

  it("sends a browser at the address of an agent to its page of the console", async () => {
    const headers = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
    const page = await fetch(`${start.url}/agents/assistant`, { headers });
    expect([page.status, page.url]).toEqual([200, `${start.url}/a/assistant`]);
    expect(await page.text()).toContain("<script");
    expect((await fetch(`${start.url}/agents/assistant`)).status).toBe(404);
  });

  it("passes model settings of the shell exactly, and keeps them out of command lines", async () => {
    const conversation = await createConversation(start.url);
    expect(await say(start.url, conversation, "Hi")).toContain("Hello there.");
    expect(model.requests[0]?.headers.authorization).toBe(`Bearer ${key}`);
    for (const { command } of processTree(start.npm.pid ?? 0)) expect(command).not.toContain("sk-");
  });

  it("uses the server of the shell's base URL also for a posted model profile without a base URL", async () => {
    await post(start.url, "libraries/mine/model-profiles", {
      id: "p",
      provider: "openai",
      modelId: "posted",
    });
    const identity = { systemPrompt: "Hi.", modelProfileId: "p" };
    await post(start.url, "libraries/mine/personas", { id: "a", identity });
    await post(start.url, "agents", { id: "mine", persona: "mine/a" });
    expect(await say(start.url, await createConversation(start.url, "mine"), "Hi")).toContain("Hello there.");
    expect(model.requests.at(-1)?.body.model).toBe("posted");
  });

  it("G3 KEEP-2 refuses a used port and a used state, and names the fix", async () => {
    const { port } = new URL(start.url);
    const taken = { code: 1, output: expect.stringMatching(`Port ${port} is taken\\..*npm start -- --port`) };
    expect(await failedStart(["--port", port, "--persist", persist])).toMatchObject(taken);
    const sameState = await failedStart(["--port", "0", "--persist", persist]);
    expect(sameState).toMatchObject({ code: 1, output: expect.stringContaining("is in use by another") });
    expect(sameState.output).toContain("choose another --persist");
    expect((await fetch(`${start.url}/health`)).status).toBe(200);
  });

  it.each(["eighty", "65536", "-1"])("G3 refuses the port %s", async (port) => {
    const refused = await failedStart([`--port=${port}`]);
    expect(refused).toMatchObject({ code: 1, output: expect.stringContaining("a number from 0 to 65535") });
    expect(refused.output).toContain("Usage: npm start");
  });

  it("G3 explains its options, and refuses options that npm took", async () => {
    expect(await failedStart(["--help"])).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^Usage: npm start -- \[--port N\] \[--persist DIR\]$/m),
    });
    const taken = await failedStart([], { npm_config_port: "9199" });
    expect(taken).toMatchObject({ code: 1, output: expect.stringContaining('Write them after "--".') });
  });

  it("G3 START-12 refuses an invalid DRAMATIS_MODEL in one line, before the server starts", async () => {
    const unused = join(folder, "unused");
    const refused = await failedStart(["--persist", unused], { DRAMATIS_MODEL: "opnai/gpt-4.1-mini" });
    expect(refused.code).toBe(1);
    expect(refused.output).toMatch(/^DRAMATIS_MODEL must be .*Did you mean "openai"\? Providers are .*\.$/m);
    expect(refused.output).not.toMatch(/is starting|^\s+at /m);
    expect(readdirSync(folder)).not.toContain("unused");
  });

  it("G3 refuses a folder that cannot hold state, and names the fix", async () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    const locked = join(folder, "locked");
    mkdirSync(join(locked, "lock.sqlite"), { recursive: true });
    const shared = join(folder, "shared");
    mkdirSync(shared);
    chmodSync(shared, 0o1777);
    for (const persist of [file, join(file, "below"), locked, shared]) {
      const refused = await failedStart(["--port", "0", "--persist", persist]);
      expect(refused).toMatchObject({ code: 1, output: expect.stringContaining(persist) });
      expect(refused.output).toMatch(/^.*cannot be .*choose another --persist\.$/m);
      expect(refused.output).not.toMatch(/^\s+at /m);
    }
  });

  it("rejects rebound names and foreign pages", async () => {
    const { port } = new URL(start.url);
    const ask = (headers: Record<string, string>) => rawStatus(`${start.url}/api/agents`, headers);
    expect(await ask({})).toBe(200);
    expect(await ask({ host: `evil.example:${port}` })).toBe(401);
    expect(await ask({ origin: "http://evil.example" })).toBe(401);
    expect(await ask({ origin: start.url })).toBe(200);
  });

  it.skipIf(listeningPorts(process.pid) === undefined)(
    "START-4 opens no debugger, because its heap would hold AUTH_SECRET: its own ports are the Worker's, or refuse all",
    async () => {
      const ports = processTree(start.npm.pid ?? 0).flatMap(({ pid, command }) =>
        (listeningPorts(pid) ?? []).map((at) => ({ ...at, kind: kindOf({ command }, start.url) })),
      );
      const found = await Promise.all(
        ports.map(async ({ host, port, kind }) => {
          const { status } = await fetch(`http://127.0.0.1:${port}/health`);
          return { host, kind, status, debugger: await devTools(port) };
        }),
      );
      const local = { host: "127.0.0.1", debugger: undefined };
      found.sort(
        (one, other) => one.status - other.status || String(one.kind).localeCompare(String(other.kind)),
      );
      expect(found).toEqual([
        { ...local, kind: "the workerd in front of it", status: 200 },
        { ...local, kind: "the workerd that runs the Worker", status: 200 },
        { ...local, kind: "wrangler", status: 403 },
        { ...local, kind: "wrangler", status: 403 },
      ]);
    },
  );

  it("START-1 ends completely when it is interrupted, and removes the passed settings", async () => {
    expect(passedOn()).toHaveLength(1);
    await start.stop();
    expect(passedOn()).toEqual([]);
  });
});

/** Processes of `npm start`. The first matching pattern counts. */
const kinds = {
  npm: /^npm start/,
  "npm's shell": /^\S*sh -c /,
  "the keeper": /scripts\/keeper\.ts/,
  "the start script": /scripts\/start\.ts/,
  wrangler: /scripts\/worker-server\.ts/,
  esbuild: /esbuild .*--service/,
  "the workerd that runs the Worker": runsTheWorker,
  "the workerd in front of it": /workerd serve/,
};

function kindOf(process: Pick<RunningProcess, "command">, url: string): string | undefined {
  const is = (kind: RegExp | typeof runsTheWorker) =>
    kind instanceof RegExp ? kind.test(process.command) : kind(process, url);
  return Object.entries(kinds).find(([, kind]) => is(kind))?.[0];
}

describe("whichever process is killed, no process remains and no data is lost", () => {
  const state = join(folder, "killed");
  const said: string[] = [];
  const seen = new Set<number>();
  let port = 0;
  let start: RunningStart;
  let conversation: string | undefined;

  afterEach(({ task }) => (task.result?.state === "fail" ? killAll([...seen]) : undefined));

  function lookAtTree(): RunningProcess[] {
    const tree = processTree(start.npm.pid ?? 0);
    for (const { pid } of tree) seen.add(pid);
    return tree;
  }

  /** Starts on the previous port. Earlier messages are still there and are answered. */
  async function startAgain(): Promise<void> {
    start = await npmStart(state, { OPENAI_BASE_URL: model.baseUrl, TMPDIR: temporary }, port);
    lookAtTree();
    port = Number(new URL(start.url).port);
    conversation ??= await createConversation(start.url);
    await expectAnswers();
  }

  async function expectAnswers(): Promise<void> {
    const now = () => transcript(start.url, conversation ?? "").catch(String);
    await expect.poll(now, { timeout: 60_000 }).toEqual(said);
    expect(passedOn()).toHaveLength(1);
  }

  /** Sends a message, and kills when half of the answer has arrived. */
  async function killInMidTurn(...victims: { pid: number }[]): Promise<void> {
    const gate = newGate();
    const steps = [{ text: "Hello " }, { gate: gate.wait }, { text: "there." }, { finish: "stop" }];
    model.reply({ kind: "stream", steps });
    const before = model.requests.length;
    const content = `Message ${said.length / 2}`;
    const response = await fetch(`${start.url}/api/conversations/${conversation}/turns`, {
      method: "POST",
      body: JSON.stringify({ content }),
    });
    expect(response.status).toBe(202);
    await model.request(before);
    await killAll(victims.map(({ pid }) => pid));
    gate.open();
    said.push(content, "Hello there.");
  }

  function find(tree: RunningProcess[], kind: keyof typeof kinds): RunningProcess {
    const found = tree.find((process) => kindOf(process, start.url) === kind);
    if (found === undefined) throw new Error(`${kind} is not among ${JSON.stringify(tree)}`);
    return found;
  }

  const foreground: [string, (tree: RunningProcess[]) => RunningProcess[]][] = [
    ["npm", (tree) => [find(tree, "npm")]],
    // Some shells are replaced by their last command. Then this is the start script.
    ["what npm started", (tree) => tree.slice(1, 2)],
    ["the start script", (tree) => [find(tree, "the start script")]],
    ["their group", (tree) => tree.filter((process) => !isServer(tree, process))],
    ["all of them", (tree) => tree],
  ];

  /** Reports whether a process is the keeper or one of its descendants. */
  function isServer(tree: RunningProcess[], { pid }: RunningProcess): boolean {
    return processTree(find(tree, "the keeper").pid).some((member) => member.pid === pid);
  }

  it.each(foreground)(
    "G3 START-1 KEEP-1 KEEP-3 %s: all processes end, and the next start continues",
    async (_, choose) => {
      await startAgain();
      const tree = lookAtTree();
      const victims = choose(tree);
      await killInMidTurn(...victims);
      await waitUntilGone(tree.map(({ pid }) => pid));
      // If all processes are killed, the next start cleans up.
      expect(passedOn()).toHaveLength(victims.length === tree.length ? 1 : 0);
    },
  );

  it("G3 KEEP-3 npm, politely: all processes end, and the passed settings are removed", async () => {
    await startAgain();
    const tree = lookAtTree();
    start.npm.kill("SIGTERM");
    await waitUntilGone(tree.map(({ pid }) => pid));
    expect(passedOn()).toEqual([]);
  });

  describe("in one start", () => {
    it("G3 there is no process of another kind than these", async () => {
      await startAgain();
      const found = new Set(lookAtTree().map((process) => kindOf(process, start.url) ?? process.command));
      found.add("npm's shell");
      expect([...found].sort()).toEqual(Object.keys(kinds).sort());
    });

    it.each(["the workerd that runs the Worker", "esbuild"] as const)(
      "G3 %s: the runtime continues",
      async (kind) => {
        const victim = find(lookAtTree(), kind);
        await killInMidTurn(victim);
        await expectAnswers();
        expect(start.output()).not.toContain("Restarting");
      },
    );

    it.each(["the keeper", "wrangler", "the workerd in front of it"] as const)(
      "G3 START-3 START-7 %s: the server is started again",
      async (kind) => {
        const before = lookAtTree();
        const server = before.filter((process) => isServer(before, process));
        await killInMidTurn(find(before, kind));
        await waitUntilGone(server.map(({ pid }) => pid));
        await expectAnswers();
        await expect.poll(() => start.output()).toMatch(/^Dramatis stopped: .*\. Restarting\.$/m);
      },
    );

    it("G3 START-3 wrangler, the fourth in a short time: all ends, with the reason", async () => {
      const tree = lookAtTree();
      await killInMidTurn(find(tree, "wrangler"));
      await waitUntilGone(tree.map(({ pid }) => pid));
      // Output of a process may arrive after its end.
      await expect
        .poll(() => start.output())
        .toMatch(/^Dramatis stopped: .*\. It stopped too often and is not restarted\.$/m);
      expect(passedOn()).toEqual([]);
    });

    it("G3 START-1 the next start continues, and ends with 0 on SIGINT", async () => {
      await startAgain();
      const tree = lookAtTree();
      const exit = once(start.npm, "exit");
      // The same signal would end npm's shell, and npm would report that instead.
      process.kill(find(tree, "the start script").pid, "SIGINT");
      expect(await exit).toEqual([0, null]);
      await waitUntilGone(tree.map(({ pid }) => pid));
      expect(passedOn()).toEqual([]);
    });
  });
});
