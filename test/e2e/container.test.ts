/** Commands of agents in containers. Each container is a process of this machine with real Bash and Git. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Server, startServer } from "../../scripts/server.ts";
import { createClient, type DramatisClient } from "../../src/client/index.ts";
import { killAll, processTree, runsTheWorker } from "../support/processes.ts";
import { Machines } from "../support/shell-container.ts";

const CODE = join(import.meta.dirname, "code");
const folder = mkdtempSync(join(tmpdir(), "dramatis-container-"));
const machines = new Machines();
let config: string;
let server: Server;
let client: DramatisClient;

/** Writes the configuration of the Worker in `code` with a class of containers, and returns its path. */
function configure(url: string): string {
  const config = JSON.parse(readFileSync(join(CODE, "wrangler.jsonc"), "utf8").replace(/^ *\/\/.*$/gm, ""));
  const { migrations, assets: _assets, ...rest } = config;
  migrations[0].new_sqlite_classes.push("ShellContainer");
  const path = join(folder, "wrangler.json");
  const durable_objects = { bindings: [{ name: "SHELL", class_name: "ShellContainer" }] };
  const main = join(import.meta.dirname, "container/worker.ts");
  writeFileSync(
    path,
    JSON.stringify({ ...rest, main, migrations, durable_objects, vars: { MACHINES_URL: url } }),
  );
  return path;
}

async function start(): Promise<void> {
  server = await startServer({ port: 0, persist: join(folder, "state"), config, onLine: () => undefined });
  await server.ready;
  client = createClient({ baseUrl: server.url });
}

/** Kills the Worker with all its actors. The containers run on. */
async function restart(): Promise<void> {
  const workers = processTree(process.pid).filter((each) => runsTheWorker(each, server.url));
  await killAll(workers.map(({ pid }) => pid));
  await server.stop();
  await start();
}

beforeAll(async () => {
  config = configure(await machines.listen());
  await start();
  await client.projects.create({ id: "shop", repositories: [{ id: "web" }] });
});
afterAll(async () => {
  await server?.stop();
  await machines.close();
  rmSync(folder, { recursive: true, force: true });
});

const newConversation = async () => (await client.conversations.create({ agentId: "developer" })).id;

/** Has the agent run a command, and returns the result of the call. */
const run = (id: string, command: string) => call(id, "shell_exec", { command });

async function call(id: string, tool: string, input: object): Promise<unknown> {
  let turn = "";
  for await (const frame of client.streamTurn(id, { content: `!tool ${tool} ${JSON.stringify(input)}` }))
    turn = frame.turnId ?? turn;
  return (await client.turns.get(id, turn)).moves[0]?.toolResult?.result;
}

describe("commands in containers", () => {
  it("A64 CONTAINER-1 each conversation has its container, with the files of its branch, also after a restart", async () => {
    const [one, other] = [await newConversation(), await newConversation()];
    expect(await run(one, "git --version; echo 1 > one.txt; mkdir src; echo a > src/a.txt")).toMatchObject({
      ...{ exitCode: 0, changed: ["one.txt", "src/a.txt"] },
      stdout: expect.stringMatching(/^git version/),
    });
    expect(await run(other, "ls")).toMatchObject({ stdout: "", changed: [] });
    expect([...machines.running.keys()].sort()).toEqual([`local:conv-${one}`, `local:conv-${other}`].sort());

    await machines.stop(`local:conv-${one}`);
    expect(await run(one, "cat one.txt src/a.txt; rm one.txt")).toMatchObject({
      stdout: "1\na\n",
      changed: ["one.txt"],
    });
    const { files } = await client.workspaces.files({ conversation: one });
    expect(files).toEqual(["src/a.txt"]);
    await client.workspaces.commit(one, "Add a", {});
    expect(await run(one, "ls src")).toMatchObject({ stdout: "a.txt\n", changed: [] });

    await client.conversations.delete(one);
    await expect.poll(() => [...machines.running.keys()]).toEqual([`local:conv-${other}`]);
  });

  it("I14 SKILL-5 CONTAINER-5 a container has the files of the skills of the agent, and commits have none of them", async () => {
    const skill = "---\nname: greet\ndescription: Greets.\n---\nRun scripts/greet.sh.\n";
    const files = { "SKILL.md": skill, "scripts/greet.sh": "echo Hello, $1\n" };
    const post = async (path: string, body: object) => {
      const posted = await fetch(`${server.url}/api/${path}`, { method: "POST", body: JSON.stringify(body) });
      expect(posted.status).toBe(201);
    };
    await post("libraries/guides/skills", { id: "greet", files });
    const persona = {
      identity: { systemPrompt: "You greet." },
      skills: ["guides/greet"],
      tools: { toolIds: ["dramatis/shell_exec"] },
    };
    await post("agents", { id: "greeter", persona, projectIds: ["shop"] });
    const { id } = await client.conversations.create({ agentId: "greeter" });
    const command = "cd ../skills/greet; bash scripts/greet.sh Ada; head -n 2 SKILL.md; rm -r scripts";
    for (const _ of ["the first time", "again"])
      expect(await run(id, command)).toMatchObject({
        ...{ exitCode: 0, stdout: "Hello, Ada\n---\nname: greet\n", changed: [] },
      });
    const { files: uncommitted } = await client.workspaces.files({ conversation: id });
    expect(uncommitted).toEqual([]);
  });

  it("A64 BACKGROUND-5 CONTAINER-4 a command in the background survives a kill of the Worker, is lost with its container, and stops with its turn", async () => {
    const id = await newConversation();
    const name = `local:background-conv-${id}`;
    const root = async () => (await machines.running.get(name))?.root ?? expect.fail("no container");
    const begin = async (command: string) => {
      const content = `!tool shell_start ${JSON.stringify({ command })}`;
      const { turnId } = await client.turns.start(id, { content });
      await expect.poll(() => machines.running.has(name)).toBe(true);
      await expect.poll(async () => existsSync(join(await root(), "began"))).toBe(true);
      return turnId;
    };
    const end = async (turnId: string) => {
      await expect
        .poll(async () => (await client.turns.get(id, turnId)).status, { timeout: 20_000 })
        .toBe("completed");
      return (await client.turns.get(id, turnId)).moves[0]?.toolResult;
    };

    const first = await begin(
      "echo begun; touch began; until test -e go; do sleep 0.1; done; echo built > out.txt; rm began go",
    );
    expect(await run(id, "ls; echo 1 > beside.txt")).toMatchObject({ stdout: "", changed: ["beside.txt"] });
    await restart();
    const output = (await call(id, "shell_output", {})) as { state: string; stdout: string };
    expect(output).toMatchObject({ state: "running", stdout: "begun\n" });
    writeFileSync(join(await root(), "go"), "");
    expect(await end(first)).toMatchObject({
      result: { exitCode: 0, stdout: "begun\n", changed: ["out.txt"] },
    });
    const { files } = await client.workspaces.files({ conversation: id });
    expect(files).toEqual(["beside.txt", "out.txt"]);

    const second = await begin("touch began; sleep 600");
    await machines.stop(name);
    expect(await end(second)).toMatchObject({ error: { code: "EXECUTION_FAILED" } });

    const third = await begin("touch began; echo $$ > ../pid; sleep 600");
    const pid = Number(readFileSync(join(await root(), "../pid"), "utf8"));
    await client.turns.cancel(id, third);
    expect(existsSync(`/proc/${pid}`)).toBe(true);
    await expect.poll(() => existsSync(`/proc/${pid}`), { timeout: 20_000 }).toBe(false);
    expect(await client.turns.get(id, third)).toMatchObject({ error: { code: "CANCELLED" } });

    await client.conversations.delete(id);
    await expect.poll(() => machines.running.has(name)).toBe(false);
  });
});
