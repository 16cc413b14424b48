/** Commands of agents in containers. Each container is a process of this machine with real Bash and Git. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Server, startServer } from "../../scripts/server.ts";
import { createClient, type DramatisClient } from "../../src/client/index.ts";
import { Machines } from "../support/shell-container.ts";

const CODE = join(import.meta.dirname, "code");
const folder = mkdtempSync(join(tmpdir(), "dramatis-container-"));
const machines = new Machines();
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

beforeAll(async () => {
  const config = configure(await machines.listen());
  server = await startServer({ port: 0, persist: join(folder, "state"), config, onLine: () => undefined });
  await server.ready;
  client = createClient({ baseUrl: server.url });
  await client.projects.create({ id: "shop", repositories: [{ id: "web" }] });
});
afterAll(async () => {
  await server?.stop();
  await machines.close();
  rmSync(folder, { recursive: true, force: true });
});

const newConversation = async () => (await client.conversations.create({ agentId: "developer" })).id;

/** Has the agent run a command, and returns the result of the call. */
async function run(id: string, command: string): Promise<unknown> {
  let turn = "";
  for await (const frame of client.streamTurn(id, {
    content: `!tool shell_exec ${JSON.stringify({ command })}`,
  }))
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
});
