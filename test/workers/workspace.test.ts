/** Workspaces on workerd: agents with the tools of repositories, commits, crashes, and the embedded shell. */
import { env, runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { ulid } from "ulid";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { embeddedShell } from "../../src/agents/workspace/shell/shell.ts";
import type { GitRepository } from "../../src/git/git-repository.ts";
import type { Persona } from "../../src/protocol/definitions.ts";
import type { WorkspaceApi, WorkspaceCall } from "../../src/protocol/workspace.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { AUTHOR, seededRepository } from "../support/seeded-repository.ts";
import { shellContract } from "../support/shell-contract.ts";
import { get, post } from "./http-client.ts";
import { Play } from "./provider.ts";
import { call, ended, post as postFlow, start } from "./run-helpers.ts";
import {
  ADA,
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  skipInvariants,
  TestConversation,
} from "./world.ts";

const TOOLS = ["tree", "read", "write", "edit", "search", "diff", "commit"].map(
  (name) => `dramatis/repo_${name}`,
);
const encode = (text: string) => new TextEncoder().encode(text);

let projects = 0;

/** Creates a project with a repository. */
async function newProject(more: Record<string, string> = {}) {
  const project = `workspace-${++projects}`;
  const files = { "src/sum.ts": "export const sum = (a, b) => a - b;\n", ...more };
  return { project, ...(await seededRepository(ADA.tenant, project, files)) };
}

/** Creates an agent with the tools in a project, and a conversation of this agent. */
async function developer(project: string, more: object = {}): Promise<TestConversation> {
  const persona = {
    identity: { systemPrompt: "You work on code.", modelProfileId: "test/scripted" },
    tools: {
      toolIds: [...TOOLS, ...["exec", "start", "output", "stop"].map((name) => `dramatis/shell_${name}`)],
    },
    ...more,
  };
  const agent = await post("/api/agents", { persona, projectIds: [project] }, ADA);
  expect(agent.status, JSON.stringify(agent.body)).toBe(201);
  return createConversation(agent.body.id);
}

/** Plays a turn with one call after the other. Returns the results of the calls, or their errors. */
async function calls(conversation: TestConversation, ...given: { call: string; input: object }[]) {
  const replies = [...given.map((one) => [one]), [{ text: "Done." }]];
  const { turnId } = await conversation.play({ replies });
  const turn = await conversation.ended(turnId);
  // SAFETY: the tests assert the results.
  return turn.moves.flatMap(({ toolResult }) =>
    toolResult === undefined ? [] : [(toolResult.result ?? toolResult.error) as Record<string, unknown>],
  );
}

const stubOf = (conversation: Pick<TestConversation, "id">) =>
  (exports as unknown as Record<string, DurableObjectNamespace>).Workspace?.getByName(
    `${ADA.tenant}:conv-${conversation.id}`,
  ) as DurableObjectStub & WorkspaceApi;

const workspaceOfRun = (runId: string) =>
  (exports as unknown as Record<string, DurableObjectNamespace>).Workspace?.getByName(
    `${ADA.tenant}:run-${runId}`,
  ) as DurableObjectStub;

const write = (path: string, content: string, key: string): WorkspaceCall => ({
  ...{ kind: "repo.write", input: { path, content }, key, author: AUTHOR },
});
const commit = (message: string, key: string): WorkspaceCall => ({
  ...{ kind: "repo.commit", input: { message }, key, author: AUTHOR },
});

const shell = (command: string, key: string): WorkspaceCall => ({
  ...{ kind: "shell.exec", input: { command }, key, author: AUTHOR },
});

/** Returns the tables of a workspace's changes; `null` while it does not answer. */
const tablesOf = (conversation: Pick<TestConversation, "id">) =>
  runInDurableObject(stubOf(conversation), (_, { storage }) =>
    storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'changes'").toArray(),
  ).catch(() => null);

/** Returns the files of a commit. */
async function filesAt(git: GitRepository, oid: string | null) {
  if (oid === null) throw new Error("The branch does not exist.");
  const files = [...(await git.tree(oid))].map(async ([path, { oid: blob }]) => [
    path,
    new TextDecoder().decode(await git.blob(blob)),
  ]);
  return Object.fromEntries(await Promise.all(files));
}

afterAll(checkInvariants);

describe("a command in the background", () => {
  const start = (command: string, more: object = {}) => ({
    call: "shell_start",
    input: { command, ...more },
  });

  /** Begins a turn that starts a command. Resolves when the workspace has the command. */
  async function begin(conversation: TestConversation, command: string, more: object = {}) {
    const { play, turnId } = await conversation.play({
      replies: [[start(command, more)], [{ text: "It runs." }], [{ text: "It has ended." }]],
    });
    await expect.poll(() => commandOf(conversation)).toMatchObject({ command });
    return { play, turnId, id: String((await commandOf(conversation)).id) };
  }

  /** Returns the result of the command, or its error, when the turn has ended. */
  async function outcome(conversation: TestConversation, turnId: string) {
    const { moves, answer } = await conversation.ended(turnId);
    const [end] = moves.flatMap(({ toolResult }) => toolResult ?? []);
    // SAFETY: the tests assert the results.
    return { answer, ...((end?.result ?? end?.error) as Record<string, unknown>) } as Record<string, unknown>;
  }

  const filesOf = async (conversation: TestConversation, project: string) =>
    unwrap(await stubOf(conversation).view({ project })).repositories[0]?.changes;
  const commandOf = (conversation: TestConversation) =>
    runInDurableObject(
      stubOf(conversation),
      (_, { storage }) => storage.kv.get<Record<string, unknown>>("command") ?? {},
    );

  test("ASYNC-2 BACKGROUND-1 runs while the turn waits and others run commands, and its end begins a cycle with the result", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    const client = await conversation.connect();
    const { play, turnId, id } = await begin(conversation, "cat src/sum.ts; sleep 3; echo built > built.txt");
    await client.frame("turn.waiting", ({ data }) => data.reason === "operations");
    await client.frame("tool.progress", ({ operationId }) => operationId === id);
    expect(await calls(conversation, { call: "shell_output", input: {} })).toMatchObject([
      { id, state: "running", command: expect.stringContaining("built") },
    ]);
    expect(
      await calls(conversation, { call: "shell_exec", input: { command: "echo 1 > other.txt; ls" } }),
    ).toMatchObject([{ stdout: "other.txt\nsrc\n", changed: ["other.txt"] }]);
    expect(await calls(conversation, start("ls"))).toMatchObject([
      { message: expect.stringContaining(`"${id}" runs in the background`) },
    ]);
    expect(await outcome(conversation, turnId)).toEqual({
      ...{ answer: "It has ended.", exitCode: 0, stderr: "", changed: ["built.txt"] },
      stdout: "export const sum = (a, b) => a - b;\n",
    });
    expect(await filesOf(conversation, project)).toEqual([
      { path: "built.txt", change: "added" },
      { path: "other.txt", change: "added" },
    ]);
    expect(JSON.stringify((await play.requests(3))[2]?.body)).toContain("ran in the background");
    const { handle, outcome: stored } = await commandOf(conversation);
    expect([handle, stored]).toMatchObject([undefined, { result: { exitCode: 0 } }]);
    expect(await calls(conversation, { call: "shell_output", input: {} })).toMatchObject([
      { id, state: "ended", exitCode: 0, changed: ["built.txt"] },
    ]);
  });

  test("BACKGROUND-3 a file that changed meanwhile is a conflict, and no file of the command changes", async () => {
    const { project } = await newProject({ "README.md": "# Sum\n" });
    const conversation = await developer(project);
    const { turnId } = await begin(
      conversation,
      "sleep 2; echo mine > src/sum.ts; rm README.md; echo same > same.txt; echo new > new.txt; echo done",
    );
    await calls(
      conversation,
      { call: "repo_write", input: { path: "src/sum.ts", content: "theirs\n" } },
      { call: "repo_write", input: { path: "README.md", content: "theirs\n" } },
      { call: "repo_write", input: { path: "same.txt", content: "same\n" } },
      { call: "repo_commit", input: { message: "Change the sum" } },
    );
    expect(await outcome(conversation, turnId)).toMatchObject({
      ...{ exitCode: 0, stdout: "done\n", changed: [], conflicts: ["README.md", "src/sum.ts"] },
      note: expect.stringContaining("No file changed"),
    });
    expect(await filesOf(conversation, project)).toEqual([]);
  });

  test("BACKGROUND-2 BACKGROUND-5 a crash of the actor ends a command of the embedded shell with an error, and it does not run again", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    const { turnId, id } = await begin(conversation, "sleep 1000; echo x > a.txt");
    await crash();
    expect(await outcome(conversation, turnId)).toMatchObject({
      ...{ code: "EXECUTION_FAILED", message: expect.stringContaining("did not start it again") },
    });
    expect(await filesOf(conversation, project)).toEqual([]);
    expect(await calls(conversation, { call: "shell_output", input: {} })).toMatchObject([
      { id, state: "ended", error: { code: "EXECUTION_FAILED" } },
    ]);
  });

  test("BACKGROUND-5 an outcome that was stored before a crash is delivered after it", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    const { turnId } = await begin(conversation, "sleep 1000");
    const result = { exitCode: 0, stdout: "kept", stderr: "", changed: [] };
    await runInDurableObject(stubOf(conversation), (_, { storage }) =>
      storage.kv.put("command", { ...storage.kv.get<object>("command"), outcome: { result } }),
    );
    await crash();
    expect(await outcome(conversation, turnId)).toEqual({ answer: "It has ended.", ...result });
  });

  test("BACKGROUND-6 stops with its turn, by a tool, and with its workspace", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    const first = await begin(conversation, "echo x > a.txt; sleep 1000");
    expect(
      (await request(`${conversation.path}/turns/${first.turnId}/cancel`, { method: "POST" })).status,
    ).toBe(200);
    await expect
      .poll(() => commandOf(conversation), { timeout: 15_000 })
      .toMatchObject({
        ...{ id: first.id, outcome: { error: { code: "CANCELLED" } } },
      });
    await expect.poll(async () => (await commandOf(conversation)).handle).toBeUndefined();

    const second = await begin(conversation, "echo x > b.txt; sleep 1000");
    expect(
      await calls(
        conversation,
        { call: "shell_stop", input: { id: first.id } },
        { call: "shell_stop", input: { id: second.id } },
        { call: "shell_stop", input: { id: second.id } },
      ),
    ).toMatchObject([
      { code: "NOT_FOUND" },
      { id: second.id, stopped: true },
      { id: second.id, stopped: false },
    ]);
    expect(await outcome(conversation, second.turnId)).toMatchObject({ code: "CANCELLED" });
    expect(await filesOf(conversation, project)).toEqual([]);

    await begin(conversation, "sleep 1000");
    unwrap(await stubOf(conversation).remove());
    expect(await commandOf(conversation)).toEqual({});
  });

  test("BACKGROUND-4 a repeated start starts nothing, also after another command", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    const { turnId, id } = await begin(conversation, "echo x >> log; sleep 2");
    const again = async () => {
      const { handle } = await commandOf(conversation);
      const input = { command: "echo x >> log; sleep 2", handle: String(handle) };
      return stubOf(conversation).perform(
        { project },
        { kind: "shell.start", input, key: id, author: AUTHOR },
      );
    };
    expect(unwrap(await again())).toEqual({ id, state: "running" });
    await outcome(conversation, turnId);
    expect(unwrap(await again())).toEqual({ id, state: "running" });
    expect(await calls(conversation, { call: "shell_exec", input: { command: "cat log" } })).toMatchObject([
      { stdout: "x\n" },
    ]);
  });

  test("SHELL-2 a command that is late ends with the exit code 124, and the end of a long output is kept", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    const late = await begin(conversation, "echo x > a.txt; sleep 1000", { timeoutMs: 500 });
    expect(await outcome(conversation, late.turnId)).toMatchObject({ exitCode: 124, changed: [] });
    const { turnId } = await begin(conversation, "seq 1 20000");
    const { stdout, isCut } = await outcome(conversation, turnId);
    expect([String(stdout).length, String(stdout).slice(-6), isCut]).toEqual([65_536, "20000\n", true]);
  });

  test("E26 SHELL-4 is denied a sensitive file, and a handle of no operation starts nothing", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    const { turnId } = await begin(conversation, "echo x > .env; echo y > b.txt");
    expect(await outcome(conversation, turnId)).toMatchObject({ code: "PERMISSION_DENIED" });
    expect(await filesOf(conversation, project)).toEqual([]);
    const input = { command: "ls", handle: "none" };
    expect(
      await stubOf(conversation).perform(
        { project },
        { kind: "shell.start", input, key: "op_1", author: AUTHOR },
      ),
    ).toMatchObject({
      ok: false,
      error: { code: "INVALID_INPUT", message: expect.stringContaining("ctx.defer()") },
    });
  });

  test("ERASE-7 loses its stored output with the erased call", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    const { turnId, id } = await begin(conversation, "echo SECRET");
    expect(await outcome(conversation, turnId)).toMatchObject({ stdout: "SECRET\n" });
    expect((await request(`${conversation.path}/events/${id}`, { method: "DELETE" })).status).toBe(204);
    await expect.poll(() => commandOf(conversation)).toEqual({});
  });
});

describe("an agent with skills", () => {
  const COUNT = {
    files: {
      "SKILL.md":
        "---\nname: count-lines\ndescription: Counts the lines of code.\n---\nRun the script first.\n",
      "scripts/count.sh":
        "cat src/?* | wc -l | tr -d ' '\necho spoilt > /skills/count-lines/scripts/count.sh\n",
      "references/units.md": "A line ends with a line feed.\n",
    },
  };

  test.each<[string, Persona["skills"]]>([
    ["inline", [COUNT]],
    ["of a library", ["counting/count-lines"]],
  ])(
    "I14 SKILL-4 SKILL-5 %s: the request has the description, a call reads the body, and a command runs a script",
    async (_, skills) => {
      const { project } = await newProject();
      const added = await post("/api/libraries/counting/skills", { id: "count-lines", ...COUNT }, ADA);
      expect(added.body).toMatchObject({ version: 1 });
      const conversation = await developer(project, { skills });
      const run = { call: "shell_exec", input: { command: "bash /skills/count-lines/scripts/count.sh" } };
      const given = [
        { call: "read_skill", input: { skill: "count-lines" } },
        { call: "read_skill", input: { skill: "count-lines", path: "references/units.md" } },
        { call: "read_skill", input: { skill: "count" } },
        { call: "read_skill", input: { skill: "count-lines", path: "../SKILL.md" } },
        ...[run, run, { call: "repo_diff", input: {} }],
      ];
      const { play, turnId } = await conversation.play({
        replies: [...given.map((one) => [one]), [{ text: "Done." }]],
      });
      const turn = await conversation.ended(turnId);
      const results = turn.moves.flatMap(({ toolResult }) =>
        toolResult === undefined ? [] : [toolResult.result ?? toolResult.error],
      );
      expect(results).toEqual([
        {
          ...{ skill: "count-lines", content: "Run the script first." },
          files: ["references/units.md", "scripts/count.sh"],
        },
        { skill: "count-lines", path: "references/units.md", content: "A line ends with a line feed.\n" },
        expect.objectContaining({ code: "NOT_FOUND", message: expect.stringContaining("count-lines") }),
        expect.objectContaining({ code: "NOT_FOUND", message: expect.stringContaining("scripts/count.sh") }),
        { exitCode: 0, stdout: "1\n", stderr: "", changed: [] },
        { exitCode: 0, stdout: "1\n", stderr: "", changed: [] },
        { diff: "" },
      ]);
      const [first, second] = (await play.requests(2)).map(({ body }) => JSON.stringify(body));
      expect(first).toContain("- count-lines: Counts the lines of code.");
      expect(first).toContain("/skills/NAME");
      expect(first).toContain("read_skill");
      expect(first).not.toContain("Run the script first.");
      expect(second).toContain("Run the script first.");
    },
  );

  test("I14 SKILL-2 a persona with an invalid skill is refused, and says what to change", async () => {
    const skills = [{ files: { "SKILL.md": "---\nname: Count Lines\ndescription: Counts.\n---\n" } }];
    const persona = { identity: { systemPrompt: "You work.", modelProfileId: "test/scripted" }, skills };
    const refused = await post("/api/agents", { persona }, ADA);
    expect(refused).toMatchObject({ status: 422, body: { code: "INVALID_INPUT" } });
    expect(JSON.stringify(refused.body)).toContain("/name: Must have small letters");
  });
});

describe("an agent with the tools of repositories", () => {
  test("A63 A64 A67 reads, searches, edits, runs commands and commits on the branch of its conversation", async () => {
    const { project, git, begin } = await newProject();
    const conversation = await developer(project);
    const results = await calls(
      conversation,
      { call: "repo_tree", input: {} },
      { call: "repo_search", input: { query: "a - b" } },
      { call: "repo_read", input: { path: "src/sum.ts" } },
      { call: "repo_edit", input: { path: "src/sum.ts", before: "a - b", after: "a + b" } },
      { call: "repo_write", input: { path: "README.md", content: "# Sum\n" } },
      { call: "shell_exec", input: { command: "cat src/sum.ts README.md; echo note > notes.txt" } },
      { call: "repo_diff", input: { path: "src" } },
      { call: "repo_commit", input: { message: "Add instead of subtract" } },
    );
    expect(results.slice(0, 6)).toEqual([
      { files: ["src/sum.ts"] },
      { matches: [{ path: "src/sum.ts", line: 1, text: "export const sum = (a, b) => a - b;" }] },
      { path: "src/sum.ts", to: 1, total: 1, lines: expect.stringMatching(/^1\texport const sum/) },
      { path: "src/sum.ts", line: 1, count: 1 },
      { path: "README.md" },
      {
        ...{ exitCode: 0, stdout: "export const sum = (a, b) => a + b;\n# Sum\n", stderr: "" },
        changed: ["notes.txt"],
      },
    ]);
    expect(results[6]?.diff).toContain(
      "-export const sum = (a, b) => a - b;\n+export const sum = (a, b) => a + b;\n",
    );
    const branch = `dramatis/conv-${conversation.id}`;
    expect(results[7]).toMatchObject({ repo: "app", branch, commit: await git.head(branch) });
    const head = await git.head(branch);
    expect(await filesAt(git, head)).toEqual({
      "src/sum.ts": "export const sum = (a, b) => a + b;\n",
      "README.md": "# Sum\n",
      "notes.txt": "note\n",
    });
    const [made] = await git.log(head ?? "", 1);
    expect(made).toMatchObject({ parents: [begin], author: { name: expect.any(String) } });
    expect(made?.message.trim()).toBe("Add instead of subtract");
    expect(await git.head("main")).toBe(begin);
  });

  test("errors say what to change", async () => {
    const conversation = await developer("no-repositories");
    const results = await calls(
      conversation,
      { call: "repo_tree", input: {} },
      { call: "repo_write", input: { path: "a", content: "a" } },
      { call: "repo_commit", input: { message: "Add a" } },
    );
    expect(results).toEqual(
      Array.from({ length: 3 }, () =>
        expect.objectContaining({
          code: "INVALID_INPUT",
          message: expect.stringContaining('POST /api/projects and {"id": "no-repositories"'),
        }),
      ),
    );
    const { project } = await newProject();
    const other = await developer(project);
    const refused = await calls(
      other,
      { call: "repo_read", input: { path: "sum.ts" } },
      { call: "repo_read", input: { path: "../secret" } },
      { call: "repo_tree", input: { repo: "web" } },
      { call: "repo_commit", input: { message: "Nothing" } },
    );
    expect(refused).toMatchObject([
      { code: "NOT_FOUND", message: expect.stringContaining('Did you mean "src/sum.ts"?') },
      { code: "PERMISSION_DENIED", message: expect.stringContaining("outside of the repository") },
      { code: "INVALID_INPUT", message: expect.stringContaining("It has: app") },
      { note: "There is nothing to commit." },
    ]);
  });

  test("E26 POLICY-7 WORKSPACE-6 is denied sensitive files and paths outside, and the journal has the rules", async () => {
    const { project, git } = await newProject({ ".env": "KEY=secret\n", "certs/a.pem": "secret\n" });
    const conversation = await developer(project);
    const denied = [
      { call: "repo_read", input: { path: ".env" }, rule: "sensitive-file" },
      { call: "repo_read", input: { path: "to-env" }, rule: "sensitive-file" },
      { call: "repo_write", input: { path: ".env", content: "x" }, rule: "sensitive-file" },
      {
        call: "repo_edit",
        input: { path: "certs/a.pem", before: "secret", after: "x" },
        rule: "sensitive-file",
      },
      { call: "repo_search", input: { query: "secret", path: "certs/a.pem" }, rule: "sensitive-file" },
      { call: "repo_diff", input: { path: ".env", against: "base" }, rule: "sensitive-file" },
      { call: "shell_exec", input: { command: "echo 1 > made; cat .env" }, rule: "sensitive-file" },
      { call: "shell_exec", input: { command: "ln src/sum.ts q.pem" }, rule: "sensitive-file" },
      { call: "repo_read", input: { path: "src/../../etc/passwd" }, rule: "sandbox" },
      { call: "repo_write", input: { path: "/etc/passwd", content: "x" }, rule: "sandbox" },
      { call: "repo_read", input: { path: "out/secret" }, rule: "sandbox" },
    ];
    const links = { call: "shell_exec", input: { command: "ln -s .env to-env; ln -s ../.. out" } };
    const search = { call: "repo_search", input: { query: "secret" } };
    const results = await calls(conversation, links, ...denied, search, { call: "repo_tree", input: {} });
    expect(results.slice(1, -2)).toEqual(
      denied.map(() => expect.objectContaining({ code: "PERMISSION_DENIED", retriable: false })),
    );
    expect(results.slice(-2)).toEqual([{ matches: [] }, { files: ["out", "src/sum.ts", "to-env"] }]);
    const journal = (await conversation.journal()).filter(({ type }) => type.startsWith("policy."));
    expect(journal.map(({ type, data }) => [type, data])).toEqual(
      denied.map(({ rule }) => ["policy.denied", { rule }]),
    );
    // A person with the role may read and commit them.
    const { path } = conversation;
    const bob = { ...ADA, roles: ["member"] };
    const author = { ...ADA, roles: ["author"] };
    const file = `${path}/workspace/file?path=.env`;
    expect((await get(file, bob)).body).toMatchObject({ status: 403, code: "PERMISSION_DENIED" });
    expect((await get(file, author)).body).toMatchObject({ content: "KEY=secret\n" });
    const edit = { ...write(".env", "KEY=new\n", "op_1"), mayUseSensitive: true } as const;
    unwrap(await stubOf(conversation).perform({ project }, edit));
    const commits = await calls(conversation, { call: "repo_commit", input: { message: "Mine" } });
    expect(commits).toMatchObject([
      { code: "PERMISSION_DENIED", message: expect.stringContaining('".env"') },
    ]);
    expect((await post(`${path}/workspace/commit`, { message: "Mine" }, bob)).status).toBe(403);
    const made = await post(`${path}/workspace/commit`, { message: "Mine" }, author);
    expect(made.body).toMatchObject({
      changes: expect.arrayContaining([{ path: ".env", change: "modified" }]),
    });
    const files = await filesAt(git, await git.head(`dramatis/conv-${conversation.id}`));
    expect(files[".env"]).toBe("KEY=new\n");
  });

  test("A65 two conversations write the same file on branches of their own", async () => {
    const { project, git } = await newProject();
    const both = await Promise.all([developer(project), developer(project)]);
    await Promise.all(
      both.map((conversation, index) =>
        calls(
          conversation,
          { call: "repo_write", input: { path: "src/sum.ts", content: `${index}\n` } },
          { call: "repo_commit", input: { message: `Write ${index}` } },
        ),
      ),
    );
    const heads = await Promise.all(both.map(({ id }) => git.head(`dramatis/conv-${id}`)));
    expect(await Promise.all(heads.map((head) => filesAt(git, head)))).toEqual([
      { "src/sum.ts": "0\n" },
      { "src/sum.ts": "1\n" },
    ]);
  });

  test("WORKCALL-1 an action of a task reads and writes the workspace, and its memories after a read are tainted", async () => {
    const { project } = await newProject();
    const author = { ...ADA, roles: ["author"] };
    const library = `workspace-library-${projects}`;
    const string = { type: "string" };
    const task = {
      ...{ id: "shout", description: "Shouts.", timeoutMs: 20_000 },
      inputSchema: { type: "object", properties: { path: string }, required: ["path"] },
      outputSchema: { type: "object", properties: { out: string }, required: ["out"] },
      steps: [
        {
          ...{ ref: "write", action: { kind: "repo.write" } },
          inputMapping: { path: "input.path", content: "'hello\\n'" },
        },
        {
          ...{ ref: "run", action: { kind: "shell.exec" } },
          inputMapping: { command: "'tr a-z A-Z < ' + input.path" },
          outputMapping: { "output.out": "result.stdout" },
        },
        {
          ...{ ref: "remember", action: { kind: "memory.write" } },
          inputMapping: { content: "'It says: ' + output.out" },
        },
      ],
    };
    const added = await post(`/api/libraries/${library}/tasks`, task, author);
    expect(added.status, JSON.stringify(added.body)).toBe(201);
    const tool = { id: "shout", name: "shout", description: "Shouts.", target: { task: "shout" } };
    expect((await post(`/api/libraries/${library}/tools`, tool, author)).status).toBe(201);
    const persona = {
      id: "shouter",
      identity: { systemPrompt: "Work.", modelProfileId: "test/scripted" },
      tools: { toolIds: ["shout"] },
      memory: { scope: "agent", extract: false },
    };
    expect((await post(`/api/libraries/${library}/personas`, persona, author)).status).toBe(201);
    const agent = await post("/api/agents", { persona: `${library}/shouter`, projectIds: [project] }, ADA);
    const conversation = await createConversation(agent.body.id);
    expect(await calls(conversation, { call: "shout", input: { path: "a.txt" } })).toEqual([
      { out: "HELLO\n" },
    ]);
    const { body } = await get(`/api/agents/${agent.body.id}/memories`, ADA);
    expect(body).toMatchObject({ memories: [{ content: "It says: HELLO\n", tainted: true }] });
  });
});

describe("a workspace", () => {
  test("WORKSPACE-2 a repeated operation changes nothing, and other inputs run", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    let workspace = stubOf(conversation);
    const exec = (command: string): WorkspaceCall => ({
      ...{ kind: "shell.exec", input: { command }, key: "op_1", author: AUTHOR },
    });
    const first = unwrap(
      await workspace.perform({ project }, exec("echo x >> log; date +%N > time; cat time")),
    );
    await crash();
    workspace = stubOf(conversation);
    expect(
      unwrap(await workspace.perform({ project }, exec("echo x >> log; date +%N > time; cat time"))),
    ).toEqual(first);
    expect(unwrap(await workspace.perform({ project }, exec("cat log")))).toMatchObject({ stdout: "x\n" });
  });

  test("WORKSPACE-3 uncommitted files survive a crash", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    unwrap(await stubOf(conversation).perform({ project }, write("a.txt", "kept\n", "op_1")));
    unwrap(
      await stubOf(conversation).perform(
        { project },
        {
          ...write("", "", "op_2"),
          kind: "shell.exec",
          input: { command: "rm src/sum.ts" },
        },
      ),
    );
    await crash();
    expect(unwrap(await stubOf(conversation).view({ project })).repositories[0]?.changes).toEqual([
      { path: "a.txt", change: "added" },
      { path: "src/sum.ts", change: "deleted" },
    ]);
  });

  test("WORKSPACE-4 a commit that a crash interrupted is in the branch once", async () => {
    const { project, git, begin } = await newProject();
    const conversation = await developer(project);
    unwrap(await stubOf(conversation).perform({ project }, write("a.txt", "a\n", "op_1")));
    // The actor died after its repository had the commit, and before it stored the result.
    const pending = { repo: "app", message: "Add a", author: AUTHOR, at: 5_000, receipt: "op_2/x" };
    await runInDurableObject(stubOf(conversation), (_, { storage }) => storage.kv.put("commit", pending));
    const branch = `dramatis/conv-${conversation.id}`;
    const changes = new Map([["a.txt", { content: encode("a\n") }]]);
    const made = await git.commit(branch, null, { parents: [begin], changes, ...pending });
    await crash();
    unwrap(await stubOf(conversation).perform({ project }, write("b.txt", "b\n", "op_3")));
    expect(await git.head(branch)).toBe((made as { oid: string }).oid);
    const { repositories } = unwrap(await stubOf(conversation).view({ project }));
    expect(repositories).toMatchObject([
      { head: (made as { oid: string }).oid, changes: [{ path: "b.txt", change: "added" }] },
    ]);
    const result = unwrap(await stubOf(conversation).perform({ project }, commit("Add b", "op_4")));
    expect(unwrap(await stubOf(conversation).perform({ project }, commit("Add b", "op_4")))).toEqual(result);
    const log = await git.log((await git.head(branch)) ?? "", 10);
    expect(log.map(({ message }) => message.trim())).toEqual(["Add b", "Add a", "Begin"]);
  });

  test("WORKSPACE-4 a commit on a branch that another writer moved is a conflict, and keeps the files", async () => {
    const { project, git, begin } = await newProject();
    const conversation = await developer(project);
    unwrap(await stubOf(conversation).perform({ project }, write("a.txt", "a\n", "op_1")));
    const other = new Map([["a.txt", { content: encode("other\n") }]]);
    const branch = `dramatis/conv-${conversation.id}`;
    await git.commit(branch, null, {
      parents: [begin],
      changes: other,
      message: "Other",
      author: AUTHOR,
      at: 9_000,
    });
    const refused = await stubOf(conversation).perform({ project }, commit("Mine", "op_2"));
    expect(refused).toMatchObject({ ok: false, error: { code: "CONFLICT" } });
    const workspace = stubOf(conversation);
    expect(unwrap(await workspace.view({ project })).repositories[0]?.changes).toHaveLength(1);
    // Without the changes, the workspace takes the files of the branch.
    unwrap(await workspace.perform({ project }, shell("rm a.txt", "op_3")));
    expect(
      unwrap(await workspace.perform({ project }, shell("cat a.txt; echo mine > a.txt", "op_4"))),
    ).toMatchObject({
      ...{ stdout: "other\n", changed: ["a.txt"] },
    });
    const made = unwrap(await workspace.perform({ project }, commit("Mine", "op_5")));
    expect(made.commit).toBe(await git.head(branch));
  });

  test("WORKSPACE-4 a commit of many files with long names, and a long output, are stored with a part of their lists", async () => {
    const { project, git } = await newProject();
    const conversation = await developer(project);
    const name = "n".repeat(240);
    unwrap(await stubOf(conversation).perform({ project }, shell("echo a > a.txt", "op_1")));
    await runInDurableObject(stubOf(conversation), (_, { storage }) => {
      const text = encode("x\n");
      for (let n = 1; n <= 2_200; n++) {
        const path = `${name}/${name}/${name}/${name}/${n}`;
        storage.sql.exec("INSERT INTO changes VALUES (?, ?, ?, ?)", "app", path, "100644", text);
      }
    });
    await crash();
    const made = unwrap(await stubOf(conversation).perform({ project }, commit("Add many", "op_2")));
    expect(made).toMatchObject({ cut: "2046 more files are left out.", changes: { length: 155 } });
    expect((await git.tree(String(made.commit))).size).toBe(2_202);
    const escapes = `rm -r ${name}; printf '%0262144d' 0 | tr 0 $'\\033'`;
    const ran = unwrap(await stubOf(conversation).perform({ project }, shell(escapes, "op_3")));
    expect(ran).toMatchObject({ exitCode: 0, isCut: true, cut: "2046 more files are left out." });
    await crash();
    for (const [call, result] of [
      [commit("Add many", "op_2"), made],
      [shell(escapes, "op_3"), ran],
    ] as const)
      expect(unwrap(await stubOf(conversation).perform({ project }, call))).toEqual(result);
  });

  test("WORKSPACE-5 a branch without commits follows its start until files change, and finds its start under another prefix", async () => {
    const { project, git, begin } = await newProject();
    const conversation = await developer(project);
    unwrap(await stubOf(conversation).view({ project }));
    const change = (path: string, parent: string) => ({
      ...{
        parents: [parent],
        changes: new Map([[path, { content: encode("x\n") }]]),
        message: "More",
        author: AUTHOR,
      },
      at: 9_000,
    });
    const later = await git.commit("main", begin, change("later.txt", begin));
    await git.commit("old/conv-conv_caller", null, change("caller.txt", begin));
    await crash();
    const tree = { ...write("", "", "op_1"), kind: "repo.tree", input: {} } as const;
    expect(unwrap(await stubOf(conversation).perform({ project }, tree))).toEqual({
      files: ["later.txt", "src/sum.ts"],
    });
    expect(unwrap(await stubOf(conversation).view({ project })).repositories[0]).toMatchObject({
      base: (later as { oid: string }).oid,
    });
    const place = { project, from: "conv-conv_caller" };
    expect(unwrap(await stubOf(await developer(project)).perform(place, tree))).toEqual({
      files: ["caller.txt", "src/sum.ts"],
    });
  });

  test("WORKSPACE-2 an operation is repeated after many others, and does not run again", async () => {
    const { project } = await newProject();
    const workspace = stubOf(await developer(project));
    unwrap(await workspace.perform({ project }, shell("echo x >> log", "op_1")));
    for (let n = 0; n < 60; n++) unwrap(await workspace.perform({ project }, write("f", `${n}`, `op_w${n}`)));
    unwrap(await workspace.perform({ project }, shell("echo x >> log", "op_1")));
    expect(unwrap(await workspace.perform({ project }, shell("cat log", "op_2")))).toMatchObject({
      stdout: "x\n",
    });
  });

  test("WORKSPACE-8 operations keep their order, and one that was cancelled while it waits does not begin", async () => {
    const { project } = await newProject();
    const workspace = stubOf(await developer(project));
    const results = Promise.all([
      workspace.perform({ project }, shell("sleep 0.2; echo 1 >> log", "op_1")),
      workspace.perform({ project }, shell("echo 2 >> log; echo secret > cancelled", "op_2")),
      workspace.perform({ project }, shell("echo 3 >> log", "op_3")),
      workspace.cancel("op_2"),
    ]);
    expect(await results).toMatchObject([
      { ok: true },
      { ok: false, error: { code: "CANCELLED" } },
      { ok: true },
      { ok: true },
    ]);
    expect(unwrap(await workspace.perform({ project }, shell("cat log; ls", "op_4")))).toMatchObject({
      stdout: "1\n3\nlog\nsrc\n",
    });
  });

  test("WORKSPACE-9 a first read during the removal leaves no storage", async () => {
    const { project, git } = await newProject();
    const conversation = await developer(project);
    await Promise.all([stubOf(conversation).view({ project }), stubOf(conversation).remove()]);
    expect(await stubOf(conversation).perform({ project }, write("b.txt", "b\n", "op_1"))).toMatchObject({
      ...{ ok: false, error: { code: "NOT_FOUND" } },
    });
    expect(await git.head(`dramatis/conv-${conversation.id}`)).toBeNull();
  });

  test("WORKSPACE-7 a deletion of another repository keeps the files of a running command", async () => {
    const { project } = await newProject();
    const added = await post(`/api/projects/${project}/repos`, { id: "second" }, ADA);
    expect(added.status, JSON.stringify(added.body)).toBe(201);
    const workspace = stubOf(await developer(project));
    unwrap(await workspace.view({ project }));
    const command = workspace.perform({ project }, shell("sleep 1; echo late > late.txt", "op_1"));
    const removed = await request(`/api/projects/${project}/repos/second`, { method: "DELETE" }, ADA);
    expect(removed.status).toBe(204);
    unwrap(await workspace.view({ project }));
    expect(unwrap(await command)).toMatchObject({ changed: ["late.txt"] });
    expect(unwrap(await workspace.view({ project })).repositories[0]?.changes).toEqual([
      { path: "late.txt", change: "added" },
    ]);
  });

  test("WORKSPACE-9 refuses calls after its removal", async () => {
    const { project, git } = await newProject();
    const conversation = await developer(project);
    const workspace = stubOf(conversation);
    unwrap(await workspace.perform({ project }, write("a.txt", "a\n", "op_1")));
    unwrap(await workspace.perform({ project }, commit("Add a", "op_2")));
    unwrap(await workspace.remove());
    await crash();
    for (const call of [write("b.txt", "b\n", "op_3"), commit("Add b", "op_4")])
      expect(await stubOf(conversation).perform({ project }, call)).toMatchObject({
        ...{ ok: false, error: { code: "NOT_FOUND" } },
      });
    expect(await git.head(`dramatis/conv-${conversation.id}`)).toBeNull();
    expect(unwrap(await stubOf(conversation).remove())).toBeNull();
  });

  test("GITMERGE-3 WORKSPACE-4 a merge and a commit whose answers are lost are known to the workspace", async () => {
    const { project, git, begin } = await newProject();
    const conversation = await developer(project);
    const workspace = stubOf(conversation);
    const batch = env.DB.batch;
    let isLost = false;
    vi.spyOn(Object.getPrototypeOf(env.DB), "batch").mockImplementation(async function (
      this: D1Database,
      list,
    ) {
      const done = await batch.call(this, list as D1PreparedStatement[]);
      if (!isLost) return done;
      isLost = false;
      throw new Error("The answer is lost.");
    });
    onTestFinished(() => void vi.restoreAllMocks());
    const lost = async (call: WorkspaceCall) => {
      isLost = true;
      const result = await workspace.perform({ project }, call);
      expect(result).toMatchObject({ ok: false, error: { code: "UNAVAILABLE" } });
    };
    unwrap(await workspace.perform({ project }, write("a.txt", "a\n", "op_1")));
    await lost(commit("Add a", "op_2"));
    // The commit ends before the next change, and its repetition has its result.
    unwrap(await workspace.perform({ project }, write("b.txt", "b\n", "op_3")));
    const head = await git.head(`dramatis/conv-${conversation.id}`);
    const { repositories } = unwrap(await workspace.view({ project }));
    expect(repositories).toMatchObject([{ head, changes: [{ path: "b.txt", change: "added" }] }]);
    expect(unwrap(await workspace.perform({ project }, commit("Add a", "op_2")))).toMatchObject({
      commit: head,
    });
    unwrap(await workspace.perform({ project }, commit("Add b", "op_4")));

    const changes = new Map([["own.txt", { content: encode("own\n") }]]);
    await git.commit("main", begin, { parents: [begin], changes, message: "Own", author: AUTHOR, at: 9_000 });
    const merge: WorkspaceCall = { ...write("", "", "op_5"), kind: "repo.merge", input: {} };
    await lost(merge);
    unwrap(await workspace.perform({ project }, write("c.txt", "c\n", "op_6")));
    const made = unwrap(await workspace.perform({ project }, commit("Add c", "op_7")));
    expect(await filesAt(git, String(made.commit))).toEqual({
      ...{ "a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n", "own.txt": "own\n" },
      "src/sum.ts": "export const sum = (a, b) => a - b;\n",
    });
    const merged = unwrap(await workspace.perform({ project }, { ...merge, key: "op_8" }));
    expect(merged).toMatchObject({ commit: made.commit });
    const later = new Map([["later.txt", { content: encode("later\n") }]]);
    const moved = {
      parents: [String(made.commit)],
      changes: later,
      message: "Later",
      author: AUTHOR,
      at: 9_000,
    };
    await git.commit("main", String(made.commit), moved);
    await crash();
    expect(unwrap(await stubOf(conversation).perform({ project }, { ...merge, key: "op_8" }))).toEqual(
      merged,
    );
  });

  test("ERASE-7 loses the stored output of an erased call", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    const { turnId } = await conversation.play({
      replies: [[{ call: "shell_exec", input: { command: "echo SECRET" } }], [{ text: "Done." }]],
    });
    const turn = await conversation.ended(turnId);
    const [id] = turn.moves.flatMap(({ toolCall }) => toolCall?.operationId ?? []);
    const results = () =>
      runInDurableObject(stubOf(conversation), (_, { storage }) =>
        JSON.stringify(storage.sql.exec("SELECT * FROM receipts").toArray()),
      );
    expect(await results()).toContain("SECRET");
    expect((await request(`${conversation.path}/events/${id}`, { method: "DELETE" })).status).toBe(204);
    await expect.poll(results).toBe("[]");
  });

  test("WORKSPACE-3 an actor without storage begins at its branch", async () => {
    const { project, git } = await newProject();
    const conversation = await developer(project);
    unwrap(await stubOf(conversation).perform({ project }, write("a.txt", "a\n", "op_1")));
    unwrap(await stubOf(conversation).perform({ project }, commit("Add a", "op_2")));
    await runInDurableObject(stubOf(conversation), (_, { storage }) => storage.deleteAll());
    await crash();
    unwrap(await stubOf(conversation).perform({ project }, write("b.txt", "b\n", "op_3")));
    unwrap(await stubOf(conversation).perform({ project }, commit("Add b", "op_4")));
    const head = await git.head(`dramatis/conv-${conversation.id}`);
    expect(Object.keys(await filesAt(git, head)).sort()).toEqual(["a.txt", "b.txt", "src/sum.ts"]);
  });

  test("a cancelled command ends and changes nothing", async () => {
    const { project } = await newProject();
    const workspace = stubOf(await developer(project));
    const command = "echo x > a.txt; sleep 60";
    const call: WorkspaceCall = { kind: "shell.exec", input: { command }, key: "op_1", author: AUTHOR };
    const running = workspace.perform({ project }, call);
    let isOver = false;
    void running.then(() => {
      isOver = true;
    });
    const cancel = async () => {
      await workspace.cancel("op_1");
      return isOver;
    };
    await expect.poll(cancel).toBe(true);
    expect(await running).toMatchObject({ ok: false, error: { code: "CANCELLED" } });
    expect(unwrap(await workspace.view({ project })).repositories[0]?.changes).toEqual([]);
  });

  test("WORKSPACE-1 refuses another project, and leaves no storage without a repository", async () => {
    const { project } = await newProject();
    const other = await newProject();
    const conversation = await developer(project);
    unwrap(await stubOf(conversation).view({ project }));
    expect(await stubOf(conversation).view({ project: other.project })).toMatchObject({
      ok: false,
      error: { code: "INVALID_INPUT" },
    });
    const empty = await developer("nothing-there");
    expect(unwrap(await stubOf(empty).view({ project: "nothing-there" }))).toMatchObject({
      repositories: [],
    });
    expect(await tablesOf(empty)).toEqual([]);
  });
});

describe("WORKSPACE-7 a workspace of a deleted repository", () => {
  const remove = async (path: string) =>
    expect((await request(`/api/projects/${path}`, { method: "DELETE" })).status).toBe(204);

  test.each(["warm", "restarted"])(
    "has no files, and a %s actor begins anew in a new repository",
    async (kind) => {
      const { project } = await newProject();
      const conversation = await developer(project);
      const restart = () => (kind === "restarted" ? crash() : undefined);
      const perform = (call: WorkspaceCall) => stubOf(conversation).perform({ project }, call);
      const views = async () => unwrap(await stubOf(conversation).view({ project })).repositories;
      const other = { id: "other", defaultBranch: "main" };
      expect((await post(`/api/projects/${project}/repos`, other, ADA)).status).toBe(201);
      unwrap(await perform(write("committed", "1\n", "op_1")));
      unwrap(await perform(commit("Commit", "op_2")));
      unwrap(await perform(write("open", "2\n", "op_3")));
      // A crash during a commit leaves its note.
      const pending = { repo: "app", message: "Lost", author: AUTHOR, at: 5_000, receipt: "op_4/x" };
      await runInDurableObject(stubOf(conversation), (_, { storage }) => storage.kv.put("commit", pending));
      await remove(`${project}/repos/app`);
      await restart();
      expect((await views()).map(({ id }) => id)).toEqual(["other"]);
      const gone = { ...write("open", "3\n", "op_5"), input: { repo: "app", path: "open", content: "3\n" } };
      expect(await perform(gone)).toMatchObject({
        ...{ ok: false, error: { code: "INVALID_INPUT" } },
        error: { message: expect.stringContaining('has no repository "app" for code. It has: other') },
      });
      unwrap(await perform(write("there", "4\n", "op_6")));
      await remove(project);
      await restart();
      expect(await views()).toEqual([]);
      expect(await perform(write("open", "5\n", "op_7"))).toMatchObject({
        ...{ ok: false, error: { code: "INVALID_INPUT" } },
        error: { message: expect.stringContaining("POST /api/projects") },
      });
      const { git, begin } = await seededRepository(ADA.tenant, project, { new: "new\n" });
      await restart();
      expect(await views()).toMatchObject([{ id: "app", base: begin, head: begin, changes: [] }]);
      unwrap(await perform(write("own", "6\n", "op_8")));
      unwrap(await perform(commit("Own", "op_9")));
      const head = await git.head(`dramatis/conv-${conversation.id}`);
      expect(await filesAt(git, head)).toEqual({ new: "new\n", own: "6\n" });
      expect(await git.log(head ?? "", 9)).toMatchObject([{ parents: [begin] }, { oid: begin }]);
    },
  );

  test("is deleted with its conversation", async () => {
    const { project } = await newProject();
    const conversation = await developer(project);
    skipInvariants(conversation);
    unwrap(await stubOf(conversation).perform({ project }, write("a", "1\n", "op_1")));
    unwrap(await stubOf(conversation).perform({ project }, commit("Commit", "op_2")));
    await remove(project);
    expect((await request(conversation.path, { method: "DELETE" })).status).toBe(204);
    await expect.poll(() => tablesOf(conversation)).toEqual([]);
  });
});

describe("A66 called agents and runs", () => {
  test("WORKSPACE-5 a delegate begins at its caller's commit on a branch of its own, or shares the caller's files", async () => {
    const { project, git } = await newProject();
    const library = `workspace-callers-${projects}`;
    const identity = { systemPrompt: "You work on code.", modelProfileId: "test/scripted" };
    const make = async (toolIds: string[]) => {
      const persona = { identity, tools: { toolIds: [...TOOLS, ...toolIds] } };
      const agent = await post("/api/agents", { persona, projectIds: [project] }, ADA);
      expect(agent.status, JSON.stringify(agent.body)).toBe(201);
      return agent.body.id;
    };
    const helper = await make([]);
    for (const [id, more] of [
      ["ask", {}],
      ["ask_shared", { workspace: "shared" }],
    ] as const) {
      const tool = {
        id,
        name: id,
        description: "Asks.",
        target: { agent: helper, mode: "delegate", ...more },
      };
      expect((await post(`/api/libraries/${library}/tools`, tool, ADA)).status).toBe(201);
    }
    const conversation = await createConversation(await make([`${library}/ask`, `${library}/ask_shared`]));
    const child = (path: string) =>
      new Play({
        replies: [
          [{ call: "repo_tree", input: {} }],
          [{ call: "repo_write", input: { path, content: `${path}\n` } }],
          [{ call: "repo_commit", input: { message: `Add ${path}` } }],
          [{ text: "Done." }],
        ],
      });
    const [own, shared] = [child("own"), child("shared")];
    const results = await calls(
      conversation,
      { call: "repo_write", input: { path: "first", content: "1\n" } },
      { call: "repo_commit", input: { message: "First" } },
      { call: "repo_write", input: { path: "open", content: "2\n" } },
      { call: "ask", input: { message: own.content } },
      { call: "ask_shared", input: { message: shared.content } },
    );
    expect(results).toHaveLength(5);
    const branch = `dramatis/conv-${conversation.id}`;
    const branches = (await git.branches()).map(({ name }) => name);
    const [other = ""] = branches.filter((name) => name !== "main" && name !== branch);
    expect(branches).toHaveLength(3);
    expect(Object.keys(await filesAt(git, await git.head(other)))).toEqual(["first", "own", "src/sum.ts"]);
    expect(Object.keys(await filesAt(git, await git.head(branch)))).toEqual([
      "first",
      "open",
      "shared",
      "src/sum.ts",
    ]);
    // People see the files that the agent of the conversation sees.
    const [turn] = (await get(`${conversation.path}/turns`, ADA)).body.turns;
    const { moves } = await conversation.turn(turn?.id ?? "");
    const opened = moves.flatMap(({ toolCall }) => toolCall?.agent?.conversationId ?? []);
    const views = await Promise.all(opened.map((id) => get(`/api/conversations/${id}/workspace`, ADA)));
    expect(views).toMatchObject([{ body: { branch: other } }, { body: { branch } }]);
  });

  test("A67 the agents of a run work on its branch and no other, and its task merges the branch", async () => {
    const { project, git } = await newProject();
    const conversation = await developer(project);
    // SAFETY: the API describes its answer.
    const participants = (await get(conversation.path, ADA)).body.participants as {
      type: string;
      id: string;
    }[];
    const agent = participants.find(({ type }) => type === "agent")?.id;
    const play = new Play({
      replies: [
        [{ call: "repo_write", input: { path: "by-agent", content: "1\n" } }],
        [{ call: "repo_commit", input: { message: "By a run" } }],
        [{ text: "Done." }],
      ],
    });
    const merge = {
      ...{ id: `merge-${projects}`, timeoutMs: 20_000, inputSchema: { type: "object" } },
      steps: [{ ref: "merge", action: { kind: "repo.merge" }, inputMapping: { strategy: "'rebase'" } }],
    };
    expect((await post("/api/libraries/flows/tasks", merge, ADA)).status).toBe(201);
    const flow = {
      initialNode: "ask",
      nodes: [
        { ref: "ask", agent, inputMapping: { message: "input.items[0]" } },
        { ref: "merge", task: merge.id },
      ],
      transitions: [{ from: "ask", to: "merge" }],
    };
    const { id } = await start(flow, { items: [play.content] }, { projectId: project });
    expect(await ended(id)).toMatchObject({ status: "completed" });
    const branch = `dramatis/run-${id}`;
    const head = await git.head(branch);
    expect(await git.branches()).toEqual([branch, "main"].map((name) => ({ name, oid: head })));
    expect(Object.keys(await filesAt(git, head))).toEqual(["by-agent", "src/sum.ts"]);
    // Readers of the run see its files.
    const read = async (rest: string) => (await get(`/api/runs/${id}/workspace${rest}`, ADA)).body;
    expect(await read("")).toMatchObject({ branch, repositories: [{ id: "app", head, changes: [] }] });
    expect(await read("/files")).toEqual({ files: ["by-agent", "src/sum.ts"], changes: [] });
    expect(await read("/file?path=by-agent")).toMatchObject({ content: "1\n" });
    expect(await read("/diff?against=base")).toEqual({ diff: "" });
    expect(await read("/commits?limit=1")).toMatchObject({ commits: [{ oid: head, message: "By a run" }] });
    const bob = { ...ADA, subject: "bob", roles: ["member"] };
    expect((await get(`/api/runs/${id}/workspace`, bob)).status).toBe(404);
  });
});

describe("BACKUP-18 WORKBACKUP-1 the file of a conversation", () => {
  const author = { ...ADA, subject: "bea", roles: ["member"] };
  const exportOf = async ({ path }: TestConversation, principal = ADA) =>
    (await request(`${path}/export`, {}, principal)).text();
  const imported = async (body: string, query = "") => {
    const response = await request(`/api/conversations/import${query}`, { method: "POST", body });
    const view = await response.json<{ id: string; notRestored?: object[]; detail?: string }>();
    expect(response.status, view.detail).toBe(201);
    return view;
  };

  /** A conversation with a commit, and a change of each kind that is not committed. */
  async function withFiles() {
    const made = await newProject({ "old.txt": "old\n", "folder/a": "a\n" });
    const conversation = await developer(made.project);
    skipInvariants(conversation);
    const { project } = made;
    const workspace = stubOf(conversation);
    unwrap(await workspace.perform({ project }, write("a.txt", "a\n", "op_1")));
    unwrap(await workspace.perform({ project }, commit("Add a", "op_2")));
    unwrap(await workspace.perform({ project }, write("a.txt", "changed\n", "op_3")));
    unwrap(
      await workspace.perform(
        { project },
        shell("rm old.txt; rm folder/a; rmdir folder; echo 1 > folder", "op_4"),
      ),
    );
    unwrap(
      await workspace.perform({ project }, { ...write(".env", "KEY=1\n", "op_5"), mayUseSensitive: true }),
    );
    return { ...made, conversation };
  }

  test("restores uncommitted files on a branch of its own, also after a restart", async () => {
    const { project, git, conversation } = await withFiles();
    const file = await exportOf(conversation);
    const { id, notRestored } = await imported(file);
    expect(notRestored).toBeUndefined();
    await crash();
    const read = async (of: string) => {
      const { body } = await get(`/api/conversations/${of}/workspace`, ADA);
      return body as unknown as { branch: string; repositories: object[] };
    };
    const [before, after] = [await read(conversation.id), await read(id)];
    expect(after).toEqual({ ...before, branch: `dramatis/conv-${id}` });
    expect(await git.head(after.branch)).toBe(await git.head(before.branch));
    const rest = "/workspace/diff?against=base";
    const diff = async (of: string) => (await get(`/api/conversations/${of}${rest}`, ADA)).body;
    expect(await diff(id)).toEqual(await diff(conversation.id));
    unwrap(await stubOf({ id }).perform({ project }, { ...commit("Go on", "op_1"), mayUseSensitive: true }));
    expect(await filesAt(git, await git.head(after.branch))).toMatchObject({
      "a.txt": "changed\n",
      folder: "1\n",
    });
    expect(await read(conversation.id)).toEqual(before);
    expect((await exportOf(conversation, { ...author, subject: "ada" })).includes(".env")).toBe(false);
    expect(file).toContain(".env");
  });

  test("names repositories and commits that are missing, and imports the rest", async () => {
    const { project, git, conversation } = await withFiles();
    const file = await exportOf(conversation);
    const head = await git.head(`dramatis/conv-${conversation.id}`);
    const elsewhere = file.replaceAll(`"project":"${project}"`, '"project":"nowhere"');
    const missing = { repo: "app", reason: 'The project "nowhere" has no repository "app".', files: 5 };
    const { id, notRestored } = await imported(elsewhere);
    expect(notRestored).toEqual([missing]);
    expect(await tablesOf({ id })).toEqual([]);
    const absent = file.replaceAll(String(head), "0".repeat(40));
    expect((await imported(absent)).notRestored).toEqual([
      { ...missing, reason: expect.stringContaining(`no commit ${"0".repeat(40)}`) },
    ]);
  });

  test("that breaks off leaves no files, and the next import of the id begins anew", async () => {
    const { project, git, conversation } = await withFiles();
    const file = await exportOf(conversation);
    const id = `conv_${ulid()}`;
    const broken = file.slice(0, file.lastIndexOf('{"end"'));
    const path = `/api/conversations/import?id=${id}`;
    expect((await request(path, { method: "POST", body: broken })).status).toBe(422);
    const plain = await developer(project);
    await imported(await exportOf(plain), `?id=${id}`);
    expect(await git.head(`dramatis/conv-${id}`)).toBeNull();
    expect((await get(`/api/conversations/${id}/workspace`, ADA)).body).toMatchObject({
      repositories: [{ changes: [] }],
    });
  });
});

describe("the workspace of a run", () => {
  /** Posts a workflow that writes and commits a file, and writes another. Returns its reference. */
  async function writer(): Promise<string> {
    const step = (ref: string, kind: string, inputMapping: object) => ({
      ref,
      action: { kind },
      inputMapping,
    });
    const task = {
      ...{ id: `write-${++projects}`, timeoutMs: 20_000, inputSchema: { type: "object" } },
      steps: [
        step("write", "repo.write", { path: "'a'", content: "'1'" }),
        step("commit", "repo.commit", { message: "'Add a'" }),
        step("more", "repo.write", { path: "'b'", content: "'2'" }),
      ],
    };
    expect((await post("/api/libraries/flows/tasks", task, ADA)).status).toBe(201);
    return postFlow({ nodes: [{ ref: "start", task: task.id }], inputSchema: { type: "object" } });
  }

  const tables = (runId: string) =>
    runInDurableObject(workspaceOfRun(runId), (_, { storage }) =>
      storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'changes'").toArray(),
    ).catch(() => null);

  const runOf = async (workflow: string, not = "") => {
    const found = () => get(`/api/runs?workflow=${workflow}`, ADA);
    // SAFETY: the API describes its answer.
    const runs = async () => ((await found()).body as unknown as { runs: { id: string }[] }).runs;
    const [id] = await vi.waitUntil(async () => {
      const ids = (await runs()).map((run) => run.id).filter((one) => one !== not);
      return ids.length > 0 ? ids : undefined;
    });
    return id ?? "";
  };

  test("DELETE-3 ERASE-7 is deleted with the erased call and with the conversation that started the run", async () => {
    const { project, git } = await newProject();
    const workflow = await writer();
    const tool = { id: `run-${projects}`, name: "build", description: "Builds.", target: { workflow } };
    expect((await post("/api/libraries/flows/tools", tool, ADA)).status).toBe(201);
    const identity = { systemPrompt: "You build.", modelProfileId: "test/scripted" };
    const persona = { identity, tools: { toolIds: [`flows/${tool.id}`] } };
    const agent = await post("/api/agents", { persona, projectIds: [project] }, ADA);
    const conversation = await createConversation(agent.body.id);
    skipInvariants(conversation);
    const build = async () => {
      const { turnId } = await conversation.play({
        replies: [[{ call: "build", input: {} }], [{ text: "Done." }]],
      });
      const { moves } = await conversation.ended(turnId);
      expect(moves.flatMap(({ toolResult }) => toolResult?.success ?? [])).toEqual([true]);
      return moves.flatMap(({ toolCall }) => toolCall?.operationId ?? [])[0];
    };
    const operation = await build();
    const erased = await runOf(workflow);
    await build();
    const deleted = await runOf(workflow, erased);
    for (const id of [erased, deleted]) {
      expect(await git.head(`dramatis/run-${id}`)).not.toBeNull();
      expect(await tables(id)).toHaveLength(1);
    }
    expect((await request(`${conversation.path}/events/${operation}`, { method: "DELETE" })).status).toBe(
      204,
    );
    await expect.poll(() => tables(erased)).toEqual([]);
    expect(await git.head(`dramatis/run-${erased}`)).toBeNull();
    expect(await tables(deleted)).toHaveLength(1);
    expect((await request(conversation.path, { method: "DELETE" })).status).toBe(204);
    await expect.poll(() => tables(deleted)).toEqual([]);
    expect(await git.head(`dramatis/run-${deleted}`)).toBeNull();
    expect((await get(`/api/runs/${deleted}`, ADA)).body).toMatchObject({ status: "completed" });
  });

  test("DELETE-3 is deleted with the conversation whose hooks started the runs, also after another has not answered", async () => {
    const { project } = await newProject();
    const conversation = await createConversation(await createAgent("hookflows/assembly_works"));
    skipInvariants(conversation);
    const hooked = async () => {
      const { turnId } = await conversation.play({ replies: [[{ text: "Yes." }]] });
      await conversation.ended(turnId);
      const runId = (await conversation.turn(turnId)).contextAssemblyRunId ?? "";
      const stub = workspaceOfRun(runId) as unknown as WorkspaceApi;
      unwrap(await stub.perform({ project }, write("a", "1\n", "op_1")));
      return runId;
    };
    const silent = await hooked();
    // The deletion takes the entries in several pieces.
    for (let n = 0; n < 20; n++) {
      const { turnId } = await conversation.play({ replies: [[{ text: "Yes." }]] });
      await conversation.ended(turnId);
    }
    const other = await hooked();
    const changed = (record: (before: object) => unknown) =>
      runInDurableObject(workspaceOfRun(silent), (_, { storage }) => {
        const before = storage.kv.get<object>("workspace") ?? {};
        storage.kv.put("workspace", record(before));
        return before;
      });
    const before = await changed((now) => ({ ...now, schema: 1_000 }));
    expect((await request(conversation.path, { method: "DELETE" })).status).toBe(204);
    await expect.poll(() => tables(other), { timeout: 10_000 }).toEqual([]);
    expect(await tables(silent)).toHaveLength(1);
    await changed(() => before);
    await crash();
    expect((await request(conversation.path)).status).toBe(404);
    await expect.poll(() => tables(silent), { timeout: 10_000 }).toEqual([]);
  });

  test("WORKSPACE-9 is deleted by a request after the end of its run", async () => {
    const { project, git } = await newProject();
    const { id } = await call("POST", "", 201, { workflow: await writer(), projectId: project });
    expect(await ended(id)).toMatchObject({ status: "completed" });
    const path = `/api/runs/${id}/workspace`;
    const bob = { ...ADA, subject: "bob", roles: ["member"] };
    expect((await request(path, { method: "DELETE" }, bob)).status).toBe(404);
    expect((await get(path, ADA)).status).toBe(200);
    expect((await request(path, { method: "DELETE" })).status).toBe(204);
    expect(await git.head(`dramatis/run-${id}`)).toBeNull();
    expect(await tables(id)).toEqual([]);
    expect((await get(path, ADA)).status).toBe(404);
    expect((await request(path, { method: "DELETE" })).status).toBe(204);
    const inputMapping = { key: "input.key", name: "'one'", wait: "'hold'" };
    const nodes = [{ ref: "start", task: "flow/work_once", inputMapping }];
    const active = await start({ nodes }, {}, { projectId: project });
    expect((await request(`/api/runs/${active.id}/workspace`, { method: "DELETE" })).status).toBe(409);
    await call("POST", `/${active.id}/cancel`, 200);
  });

  test("WORKSPACE-9 is not deleted by a request for the run of a sub-workflow, which shares it", async () => {
    const { project, git } = await newProject();
    const workflow = await writer();
    const flow = { nodes: [{ ref: "start", workflow }], inputSchema: { type: "object" } };
    const { id } = await start(flow, {}, { projectId: project });
    expect(await ended(id)).toMatchObject({ status: "completed" });
    const inner = await runOf(workflow);
    const head = await git.head(`dramatis/run-${id}`);
    expect(head).not.toBeNull();
    expect((await request(`/api/runs/${inner}/workspace`, { method: "DELETE" })).status).toBe(409);
    expect(await git.head(`dramatis/run-${id}`)).toBe(head);
    expect(await tables(id)).toHaveLength(1);
  });
});

describe("A67 merges", () => {
  /** Commits a file on the branch of a new conversation. Returns the path of the conversation. */
  async function withCommit(project: string, path: string, content: string) {
    const conversation = await developer(project);
    const workspace = stubOf(conversation);
    unwrap(await workspace.perform({ project }, write(path, content, "op_1")));
    unwrap(await workspace.perform({ project }, commit(`Write ${path}`, "op_2")));
    return { path: `${conversation.path}/workspace`, workspace, branch: `dramatis/conv-${conversation.id}` };
  }

  test("GITMERGE-3 a person merges the branch, and the conversation goes on at the merged state", async () => {
    const { project, git, begin } = await newProject();
    const one = await withCommit(project, "one", "1\n");
    const other = await withCommit(project, "other", "2\n");
    expect(await git.head("main")).toBe(begin);
    const first = await post(`${one.path}/merge`, {}, ADA);
    expect(first).toMatchObject({ status: 200, body: { repo: "app", branch: one.branch, into: "main" } });
    const second = await post(`${other.path}/merge`, { strategy: "rebase" }, ADA);
    const merged = await git.head("main");
    const of = new TestConversation(other.path.split("/")[3] ?? "");
    const note = { repo: "app", branch: other.branch, into: "main", commit: merged };
    expect((await of.journal()).at(-1)).toMatchObject({
      ...{ type: "conversation.updated", data: { merged: note, by: { type: "user", userId: ADA.subject } } },
    });
    const reader = await of.connect({ from: 0 });
    await reader.frame("conversation.updated");
    expect(reader.framesOf("conversation.updated").map(({ data }) => data)).toEqual([{ merged: note }]);
    expect(second.body).toEqual({ repo: "app", branch: other.branch, into: "main", commit: merged });
    expect(await filesAt(git, await git.head("main"))).toMatchObject({ one: "1\n", other: "2\n" });
    expect(await git.head(other.branch)).toBe(merged);
    expect((await get(other.path, ADA)).body).toMatchObject({
      repositories: [{ base: merged, head: merged, changes: [] }],
    });
    expect((await get(`${other.path}/diff?against=base`, ADA)).body).toEqual({ diff: "" });
    // The next commit follows the merge.
    unwrap(await other.workspace.perform({ project }, write("third", "3\n", "op_3")));
    unwrap(await other.workspace.perform({ project }, commit("Third", "op_4")));
    expect((await post(`${other.path}/merge`, {}, ADA)).status).toBe(200);
    expect((await git.log((await git.head("main")) ?? "", 1))[0]?.parents).toEqual([merged]);
  });

  test("GITMERGE-3 a repeated merge adds no entry, and notes a merge whose entry is missing", async () => {
    const { project, git } = await newProject();
    const { path, workspace } = await withCommit(project, "one", "1\n");
    const of = new TestConversation(path.split("/")[3] ?? "");
    const merges = async () =>
      (await of.journal()).flatMap(
        ({ data }) => (data as { merged?: { commit: string } } | undefined)?.merged?.commit ?? [],
      );
    // The journal did not get the entry of this merge.
    unwrap(await workspace.perform({ project }, { ...write("", "", "op_3"), kind: "repo.merge", input: {} }));
    const first = await git.head("main");
    expect(await merges()).toEqual([]);
    for (const title of ["One", "Two"]) {
      expect(await post(`${path}/merge`, {}, ADA)).toMatchObject({ status: 200, body: { commit: first } });
      expect(await merges()).toEqual([first]);
      await request(of.path, { method: "PATCH", body: JSON.stringify({ title }) });
    }
    unwrap(await workspace.perform({ project }, write("two", "2\n", "op_4")));
    unwrap(await workspace.perform({ project }, commit("Two", "op_5")));
    expect((await post(`${path}/merge`, {}, ADA)).status).toBe(200);
    expect(await merges()).toEqual([first, await git.head("main")]);
  });

  test("conflicts, uncommitted files and branches without a commit change nothing", async () => {
    const { project, git } = await newProject();
    const one = await withCommit(project, "src/sum.ts", "one\n");
    const other = await withCommit(project, "src/sum.ts", "other\n");
    expect((await post(`${one.path}/merge`, {}, ADA)).status).toBe(200);
    const main = await git.head("main");
    for (const strategy of ["fail", "rebase"])
      expect((await post(`${other.path}/merge`, { strategy }, ADA)).body).toEqual({
        ...{ repo: "app", branch: other.branch, into: "main" },
        conflicts: [{ path: "src/sum.ts" }],
      });
    unwrap(await other.workspace.perform({ project }, write("new", "", "op_3")));
    expect(await post(`${other.path}/merge`, {}, ADA)).toMatchObject({
      status: 409,
      body: { code: "CONFLICT" },
    });
    const { path } = await developer(project);
    expect(await post(`${path}/workspace/merge`, {}, ADA)).toMatchObject({ status: 409 });
    expect(await git.head("main")).toBe(main);
    unwrap(await other.workspace.perform({ project }, commit("New", "op_4")));
    expect((await post(`${other.path}/merge`, { strategy: "force" }, ADA)).body).toHaveProperty("commit");
    expect(await filesAt(git, await git.head("main"))).toEqual({ "src/sum.ts": "other\n", new: "" });
  });

  test("of many conversations at once lose nothing", async () => {
    const { project, git } = await newProject();
    const all = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => withCommit(project, `file-${n}`, `${n}\n`)));
    const merge = async ({ path }: (typeof all)[number]): Promise<void> => {
      const { status, body } = await post(`${path}/merge`, {}, ADA);
      if (status === 200) return;
      expect(body).toMatchObject({ code: "CONFLICT" });
      return merge({ path } as (typeof all)[number]);
    };
    await Promise.all(all.map(merge));
    expect(Object.keys(await filesAt(git, await git.head("main")))).toHaveLength(7);
  });

  test("WORKSPACE-3 a merge that a crash interrupted is known to the workspace", async () => {
    const { project, git } = await newProject();
    const { branch } = await withCommit(project, "a", "a\n");
    await git.commit("main", await git.head("main"), {
      ...{ parents: [(await git.head("main")) ?? ""], message: "Own", author: AUTHOR, at: 2_000 },
      changes: new Map([["own", { content: encode("own") }]]),
    });
    await git.merge("main", branch, "rebase", AUTHOR, 3_000);
    await crash();
    const workspace = stubOf({ id: branch.replace("dramatis/conv-", "") });
    const { repositories } = unwrap(await workspace.view({ project }));
    const merged = await git.head("main");
    expect(repositories).toMatchObject([{ base: merged, head: merged }]);
    unwrap(await workspace.perform({ project }, write("b", "b\n", "op_3")));
    unwrap(await workspace.perform({ project }, commit("B", "op_4")));
  });
});

describe("the workspace over HTTP", () => {
  test("shows files, changes and commits, and commits", async () => {
    const { project } = await newProject();
    const { path, id } = await developer(project);
    const workspace = stubOf({ id });
    unwrap(await workspace.perform({ project }, write("a.txt", "a\n", "op_1")));
    const read = async (rest: string) => (await get(`${path}/workspace${rest}`, ADA)).body;
    expect(await read("")).toMatchObject({
      branch: `dramatis/conv-${id}`,
      repositories: [{ id: "app", defaultBranch: "main", changes: [{ path: "a.txt", change: "added" }] }],
    });
    const changes = [{ path: "a.txt", change: "added" }];
    expect(await read("/files")).toEqual({ files: ["a.txt", "src/sum.ts"], changes });
    expect(await read("/file?path=a.txt")).toEqual({
      path: "a.txt",
      content: "a\n",
      from: 1,
      to: 1,
      total: 1,
    });
    expect(await read("/diff")).toMatchObject({
      diff: expect.stringContaining("+++ b/a.txt\n@@ -0,0 +1,1 @@\n+a\n"),
    });
    const made = await post(`${path}/workspace/commit`, { message: "Add a" }, ADA);
    expect(made).toMatchObject({ status: 200, body: { changes: [{ path: "a.txt", change: "added" }] } });
    expect(await read("/diff")).toEqual({ diff: "" });
    expect(await read("/diff?against=base")).toMatchObject({ diff: expect.stringContaining("+a\n") });
    expect(await read("/commits?limit=1")).toMatchObject({ commits: [{ message: "Add a", author: "ada" }] });
    unwrap(await workspace.perform({ project }, write("src/sum.ts", "// Empty\n", "op_2")));
    const sum = { path: "src/sum.ts", change: "modified" };
    expect(await read("/files")).toMatchObject({ changes: [...changes, sum] });
    expect(await read("/files?path=src")).toEqual({ files: [sum.path], changes: [sum] });
  });

  test("is deleted with its conversation, and its branch too", async () => {
    const { project, git } = await newProject();
    const conversation = await developer(project);
    const { path, id } = conversation;
    skipInvariants(conversation);
    unwrap(await stubOf({ id }).perform({ project }, write("a.txt", "a\n", "op_1")));
    unwrap(await stubOf({ id }).perform({ project }, commit("Add a", "op_2")));
    unwrap(await stubOf({ id }).perform({ project }, write("b.txt", "b\n", "op_3")));
    expect(await git.head(`dramatis/conv-${id}`)).not.toBeNull();
    expect((await request(path, { method: "DELETE" })).status).toBe(204);
    await expect.poll(() => git.head(`dramatis/conv-${id}`)).toBeNull();
    await expect.poll(() => tablesOf({ id })).toEqual([]);
    expect((await get(`${path}/workspace`, ADA)).status).toBe(404);
  });
});

shellContract("embedded on workerd", embeddedShell);
