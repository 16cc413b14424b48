/** The built-in team as `npm start` serves it: over HTTP, over WebSocket and in the console, with both kinds of models. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectConversation, createClient, type DramatisClient } from "../../src/client/index.ts";
import { answers, hasChromium, launchChromium, say, sidewaysScrollers, Visitor } from "../support/browser.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";
import {
  newGate,
  type OpenAIServer,
  type RecordedRequest,
  type Reply,
  startOpenAIServer,
  textReply,
  toolReply,
} from "../support/openai-server.ts";
import { run } from "../support/packed-package.ts";
import { killAll, processTree, runsTheWorker } from "../support/processes.ts";
import { agentTexts, Watcher } from "../support/watcher.ts";

const folder = mkdtempSync(join(tmpdir(), "dramatis-team-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let start: RunningStart;
let client: DramatisClient;

async function newConversation(): Promise<string> {
  return (await client.conversations.create({ agentId: "manager" })).id;
}

/** Sends a message by HTTP, follows its turn, and returns the answer with the calls of agents. */
async function askByHttp(id: string, content: string) {
  const turns: string[] = [];
  for await (const { turnId } of client.streamTurn(id, { content }))
    if (turnId !== undefined) turns.push(turnId);
  const turn = await client.turns.get(id, turns[0] ?? "");
  expect(turn.status).toBe("completed");
  return { ...turn, calls: turn.moves.flatMap(({ toolCall }) => toolCall?.agent ?? []) };
}

/** Sends a message by WebSocket, and returns the agents' messages when `count` turns have ended. */
async function askBySocket(id: string, content: string, count = 1): Promise<string[]> {
  using watcher = new Watcher(start.url, id);
  await watcher.until(({ conversation }) => conversation !== null);
  const connection = connectConversation({ host: start.url, id });
  connection.send(content);
  const state = await watcher.until(
    ({ turns }) => turns.length === count && turns.every(({ status }) => status === "completed"),
  );
  connection.close();
  return agentTexts(state);
}

describe("the team with the offline model", () => {
  beforeAll(async () => {
    start = await npmStart(join(folder, "offline"));
    client = createClient({ baseUrl: start.url });
  });
  afterAll(() => start.stop());

  it("lists the manager first, and the assistant still", async () => {
    const { agents } = await client.agents.list();
    const team = ["manager", "architect", "developer", "reviewer", "researcher", "assistant"];
    expect(agents.map(({ id }) => id)).toEqual(team);
    expect(await client.agents.get("manager")).toMatchObject({
      description: expect.stringContaining("Leads"),
      examples: expect.arrayContaining(["Build me a login page"]),
    });
  });

  it("A52 A47 by HTTP: the manager has a login page planned, built and reviewed, each with the results before it", async () => {
    const { answer, calls } = await askByHttp(await newConversation(), "Build me a login page");
    expect(calls.map(({ id, mode }) => [id, mode])).toEqual([
      ["architect", "delegate"],
      ["developer", "delegate"],
      ["reviewer", "delegate"],
    ]);
    expect(answer).toContain("I asked the architect, the developer and the reviewer.");
    for (const name of ["**Architect**", "**Developer**", "**Reviewer**"]) expect(answer).toContain(name);
    const { messages } = await client.messages.list(calls[2]?.conversationId ?? "");
    expect(JSON.stringify(messages)).toContain("The architect says:");
    expect(await client.conversations.get(calls[2]?.conversationId ?? "")).toMatchObject({
      status: "completed",
      agentId: "reviewer",
    });
  });

  it("A63 A65 A67 GITFILES-1 the developer fixes a failing test on a branch, git and Node agree, and a person merges it", async () => {
    const { id } = await client.conversations.create({ agentId: "developer" });
    const { answer } = await askByHttp(id, "Fix the failing test.");
    expect(answer).toContain("I changed `a - b;` to `a + b;` in src/sum.js");
    const clone = (from: string, name: string) => {
      run(folder, "git", "clone", "--quiet", from, name);
      run(join(folder, name), "git", "fsck", "--strict");
      return join(folder, name);
    };
    const bundle = await fetch(`${start.url}/api/projects/default/repos/sums/bundle`);
    expect(bundle.status).toBe(200);
    writeFileSync(join(folder, "sums.bundle"), Buffer.from(await bundle.arrayBuffer()));
    const before = clone("sums.bundle", "before");
    expect(() => run(before, process.execPath, "--test")).toThrow();
    run(before, "git", "checkout", "--quiet", `origin/dramatis/conv-${id}`);
    run(before, process.execPath, "--test");
    const merged = await fetch(`${start.url}/api/conversations/${id}/workspace/merge`, {
      ...{ method: "POST", body: "{}" },
      headers: { "content-type": "application/json" },
    });
    expect(await merged.json()).toMatchObject({ into: "main", commit: expect.any(String) });
    const after = clone(`${start.url}/git/default/sums`, "after");
    run(after, process.execPath, "--test");
    await askByHttp(id, '!tool repo_write {"path": "b.txt", "content": "b"}');
    await fetch(`${start.url}/api/conversations/${id}/workspace/commit`, {
      ...{ method: "POST", body: '{"message": "Add b"}' },
      headers: { "content-type": "application/json" },
    });
    run(after, "git", "fetch", "--quiet");
    expect(run(after, "git", "show", `origin/dramatis/conv-${id}:b.txt`)).toBe("b");
  });

  it("A52 by WebSocket: two work at the same time, and the researcher searches the documentation", async () => {
    const content = "Ask the researcher about crash recovery and the reviewer about weak passwords";
    const [text] = await askBySocket(await newConversation(), content);
    expect(text).toContain("I asked the researcher and the reviewer.");
    expect(text).toContain('**Researcher**\n\nThe documentation says about "crash recovery":\n\n- **');
    expect(text).toContain('**Reviewer**\n\nWhat I check in "weak passwords":');
  });

  it("A49 A50 by WebSocket: the developer joins, and answers the user's next message", async () => {
    const id = await newConversation();
    const texts = await askBySocket(id, "Bring the developer into this conversation", 2);
    expect(texts).toContain("Offline model: the developer takes part in this conversation now.");
    expect(texts.some((text) => text.startsWith("Offline model: I am the developer."))).toBe(true);
    const turn = await askByHttp(id, "Write a parser");
    expect(turn).toMatchObject({
      agentId: "developer",
      answer: expect.stringContaining("a test that fails"),
    });
  });

  it.runIf(hasChromium).each([
    [1440, 900],
    [390, 844],
  ])(
    "A52 G1 opens with the manager, describes it, and shows its colleagues while they work, %i by %i pixels",
    async (width, height) => {
      await using browser = await launchChromium();
      const visitor = new Visitor(browser, start.url, { viewport: { width, height } });
      const page = await visitor.open();
      await page.getByRole("radio", { name: "Manager", checked: true }).waitFor();
      const description = page.getByText("Leads an architect, a developer, a reviewer and a researcher");
      await description.filter({ visible: true }).waitFor();
      expect(await sidewaysScrollers(page)).toEqual([]);
      await page.getByRole("button", { name: "Build me a login page" }).click();
      for (const name of ["Architect", "Developer", "Reviewer"]) {
        const card = page.locator(`[data-testid=tool-card][data-tool=ask_${name.toLowerCase()}]`);
        await card.locator("summary").first().getByText(name, { exact: true }).waitFor();
      }
      await answers(page, "I asked the architect, the developer and the reviewer.", false).waitFor();
      await page.locator("[data-tool=ask_architect] summary").first().press("Enter");
      await page.getByRole("region", { name: "Work of Architect" }).getByText("My plan for").waitFor();
      expect(await sidewaysScrollers(page)).toEqual([]);

      await say(page, "Bring the developer into this conversation");
      await answers(page, "I am the developer.", false).waitFor();
      await page.locator("summary", { hasText: "Join us, and say how you can help." }).waitFor();
      expect(await sidewaysScrollers(page)).toEqual([]);
    },
  );
});

/** The next answers of each agent's model, by the role in its prompt. */
class Cast {
  readonly requests: { role: string; request: RecordedRequest }[] = [];
  readonly #lines = new Map<string, Reply[]>();

  lines(role: string, ...replies: Reply[]): void {
    this.#lines.set(role, replies);
  }

  readonly reply = (request: RecordedRequest): Reply => {
    const prompt = String(request.body.messages?.[0]?.content);
    const [, role = ""] = /You are the (\w+) of a small team/.exec(prompt) ?? [];
    this.requests.push({ role, request });
    return this.#lines.get(role)?.shift() ?? textReply(`${role} has no more lines.`);
  };

  /** The messages of the requests of a role, without instructions. */
  said(role: string): string[] {
    return this.requests
      .filter((one) => one.role === role)
      .map(({ request }) =>
        (request.body.messages ?? [])
          .filter((message) => message.role !== "system")
          .map((message) => `${message.role}: ${message.content ?? ""}`)
          .join("\n"),
      );
  }
}

describe("the team with a model that speaks the OpenAI protocol", () => {
  let model: OpenAIServer;
  let cast: Cast;

  beforeAll(async () => {
    model = await startOpenAIServer({ script: (request) => cast.reply(request) });
    start = await npmStart(join(folder, "openai"), { OPENAI_BASE_URL: model.baseUrl });
    client = createClient({ baseUrl: start.url });
  });
  afterAll(async () => {
    await start.stop();
    await model.close();
  });

  const ask = (agent: string, message: string, more: object = {}) => ({
    id: `call_${agent}`,
    name: `ask_${agent}`,
    arguments: { message, ...more },
  });

  it("07 agent delegate, by HTTP: the architect sees its message only, and the manager alone gets the answer", async () => {
    cast = new Cast();
    cast.lines(
      "manager",
      toolReply(ask("architect", "Plan a shop.")),
      textReply("We ", "build three parts."),
    );
    cast.lines("architect", textReply("Three parts."));
    const id = await newConversation();
    const { answer, calls, agentId } = await askByHttp(id, "The vault is 4711. Build me a shop.");
    expect({ answer, agentId }).toEqual({ answer: "We build three parts.", agentId: "manager" });
    expect(cast.said("architect")).toEqual(["user: Plan a shop."]);
    const [architect] = cast.requests.filter(({ role }) => role === "architect");
    expect(JSON.stringify(architect?.request.body)).not.toContain("4711");
    expect(cast.said("manager")[1]).toContain('tool: "Three parts."');
    expect(calls).toMatchObject([{ id: "architect", mode: "delegate" }]);
    const { participants } = await client.conversations.get(id);
    expect(participants.filter(({ type }) => type === "agent")).toEqual([{ type: "agent", id: "manager" }]);
    const { messages } = await client.messages.list(id);
    expect(messages.map(({ role }) => role)).toEqual(["user", "agent"]);
  });

  it("08 agent loop-in, by WebSocket: the reviewer joins, sees the conversation, and answers there in its own persona", async () => {
    cast = new Cast();
    const invitation = ask("reviewer", "Have a look, please.", { invocationMode: "loop_in" });
    cast.lines("manager", textReply("Hello."), toolReply(invitation), textReply("The reviewer is here."));
    cast.lines("reviewer", textReply("Ready."), textReply("Line two is wrong."));
    const id = await newConversation();
    await askByHttp(id, "My shop sells boats.");
    const texts = await askBySocket(id, "I want to talk with the reviewer.", 3);
    expect([...texts].sort()).toEqual(["Have a look, please.", "Hello.", "Ready.", "The reviewer is here."]);
    expect(cast.said("reviewer")[0]).toContain('agent "manager": Have a look, please.');
    const [joined] = cast.requests.filter(({ role }) => role === "reviewer");
    expect(JSON.stringify(joined?.request.body)).toContain("My shop sells boats.");
    const { participants } = await client.conversations.get(id);
    expect(participants).toContainEqual({ type: "agent", id: "reviewer" });
    expect(await askByHttp(id, "What is wrong?")).toMatchObject({
      agentId: "reviewer",
      answer: "Line two is wrong.",
    });
  });

  it("A52 by WebSocket: the manager answers while two of its colleagues work at the same time, then puts their answers together", async () => {
    cast = new Cast();
    const [built, found] = [newGate(), newGate()];
    const both = toolReply(ask("developer", "Build it."), ask("researcher", "Find out."));
    cast.lines("manager", both, textReply("I am here."), textReply("Built, and found."));
    cast.lines("developer", {
      kind: "stream",
      steps: [{ gate: built.wait }, { text: "Built." }, { finish: "stop" }],
    });
    cast.lines("researcher", {
      kind: "stream",
      steps: [{ gate: found.wait }, { text: "Found." }, { finish: "stop" }],
    });
    const before = model.requests.length;
    const id = await newConversation();
    using watcher = new Watcher(start.url, id);
    await watcher.until(({ conversation }) => conversation !== null);
    const { turnId } = await client.turns.start(id, { content: "Build it, and find out." });
    await model.request(before + 2);
    expect(await askByHttp(id, "Are you there?")).toMatchObject({ answer: "I am here." });
    expect((await client.turns.get(id, turnId)).status).not.toBe("completed");
    found.open();
    built.open();
    await watcher.until(({ turns }) => turns.every(({ status }) => status === "completed"));
    expect((await client.turns.get(id, turnId)).answer).toBe("Built, and found.");
    const last = cast.said("manager").at(-1);
    expect(last).toContain('tool: "Built."');
    expect(last).toContain('tool: "Found."');
  });

  it("A52 H1 the process is killed while both work: they restart, and the manager gets each answer once", async () => {
    cast = new Cast();
    const both = toolReply(ask("developer", "Build it."), ask("reviewer", "Review it."));
    const stuck: Reply = { kind: "stream", steps: [{ text: "I be" }, { gate: new Promise(() => {}) }] };
    cast.lines("manager", both, textReply("Built and reviewed."));
    cast.lines("developer", stuck, textReply("Built."));
    cast.lines("reviewer", stuck, textReply("Reviewed."));
    const before = model.requests.length;
    const id = await newConversation();
    using watcher = new Watcher(start.url, id);
    await watcher.until(({ conversation }) => conversation !== null);
    const { turnId } = await client.turns.start(id, { content: "Build it, and review it." });
    await model.request(before + 2);
    const workers = processTree(start.npm.pid ?? 0).filter((process) => runsTheWorker(process, start.url));
    await killAll(workers.map(({ pid }) => pid));
    await watcher.until(({ turns }) => turns.at(-1)?.status === "completed");
    expect((await client.turns.get(id, turnId)).answer).toBe("Built and reviewed.");
    const [, last, ...others] = cast.said("manager");
    expect(others).toEqual([]);
    expect(last?.match(/^tool: .*$/gm)).toEqual(['tool: "Built."', 'tool: "Reviewed."']);
    expect(cast.said("developer")).toHaveLength(2);
    expect(cast.said("reviewer")).toHaveLength(2);
  });

  it("A17 A18 by WebSocket: with a developer in the background the manager answers at once, and again with the result", async () => {
    const tool = {
      id: "ask_developer",
      name: "ask_developer",
      description: "Has the developer build something.",
      target: { agent: "developer" },
      async: true,
    };
    await post("libraries/busy/tools", tool);
    const toolIds = ["busy/ask_developer", "team/ask_reviewer"];
    const identity = { systemPrompt: "You are the manager of a small team." };
    await post("agents", { id: "busy-manager", persona: { identity, tools: { toolIds } } });
    cast = new Cast();
    const built = newGate();
    cast.lines(
      "manager",
      toolReply(ask("developer", "Build it.")),
      textReply("I asked."),
      textReply("No."),
      textReply("It is built."),
    );
    cast.lines("developer", {
      kind: "stream",
      steps: [{ gate: built.wait }, { text: "Built." }, { finish: "stop" }],
    });
    const { id } = await client.conversations.create({ agentId: "busy-manager" });
    using watcher = new Watcher(start.url, id);
    await watcher.until(({ conversation }) => conversation !== null);
    const { turnId } = await client.turns.start(id, { content: "Build it." });
    await watcher.until((state) => agentTexts(state).includes("I asked."));
    expect((await askByHttp(id, "Is it built?")).answer).toBe("No.");
    built.open();
    await watcher.until(
      ({ turns }) => turns.length === 2 && turns.every(({ status }) => status === "completed"),
    );
    expect((await client.turns.get(id, turnId)).answer).toBe("It is built.");
  });

  async function post(path: string, body: object): Promise<void> {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${start.url}/api/${path}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    expect(response.status, await response.clone().text()).toBe(201);
  }
});
