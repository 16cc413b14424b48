/** The shell in a container: its server is a process of this machine, with real Bash and Git. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { WorkingTree } from "../../src/agents/workspace/core/working-tree.ts";
import { containerShell } from "../../src/agents/workspace/shell/container-shell.ts";
import { ShellContainerProcess } from "../support/shell-container.ts";
import { shellContract } from "../support/shell-contract.ts";

const container = await ShellContainerProcess.start();
afterAll(() => container.stop());

/** Returns the shell in the machine that `current` returns. */
const shellOf = (current: () => ShellContainerProcess) =>
  containerShell(() => ({
    fetch: (url, init) => fetch(new URL(new URL(url).pathname, current().url), init),
    destroy: () => current().stop(),
  }));

shellContract(
  "in a container",
  shellOf(() => container),
  { root: container.root, skillsRoot: join(container.folder, "skills"), isMachine: true },
);

const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const RESULT = { exitCode: 0, stdout: "", stderr: "", changes: [] };
const workspace = { tenant: "local", id: "conv:one" };

/** A tree of new files, and a function that runs commands over the tree. */
function machine(files: Record<string, string>, shell = shellOf(() => container)) {
  const tree = new WorkingTree(new Map(), async () => new Uint8Array());
  const ready = Promise.all(
    Object.entries(files).map(([path, text]) => tree.write(path, new TextEncoder().encode(text))),
  );
  const run = async (command: string, timeoutMs = 10_000) => {
    await ready;
    return shell.exec(tree, command, { workspace, timeoutMs });
  };
  return { tree, run };
}

describe("a machine of a workspace", () => {
  test("CONTAINER-1 a new machine continues with the files of the tree", async () => {
    const [first, second] = [await ShellContainerProcess.start(), await ShellContainerProcess.start()];
    let current = first;
    const { run } = machine(
      { "a.txt": "a\n" },
      shellOf(() => current),
    );
    await run("echo b > b.txt; chmod +x b.txt; rm a.txt");
    current = second;
    expect(await run("ls; test -x b.txt && cat b.txt")).toMatchObject({ stdout: "b.txt\nb\n", exitCode: 0 });
    await first.stop();
    await second.stop();
  });

  test("CONTAINER-3 ignored files stay in the machine, and other leftovers do not", async () => {
    const { tree, run } = machine({ ".gitignore": "built/\n" });
    await run("mkdir built; echo 1 > built/out; echo 2 > kept.txt");
    expect(tree.status().map(({ path }) => path)).toEqual([".gitignore", "kept.txt"]);
    expect((await run("cat built/out; echo late > late.txt; sleep 60")).exitCode).toBe(124);
    expect(await run("cat built/out; ls")).toMatchObject({ stdout: "1\nbuilt\nkept.txt\n" });
  });

  test("a command sees no variables of the server, and its processes end with the command", async () => {
    const { tree, run } = machine({});
    const { stdout } = await run(
      "env | cut -d= -f1 | sort | tr '\\n' ' '; (sleep 0.2; echo x > late.txt) & echo $!",
    );
    expect(stdout).toMatch(/^DRAMATIS_COMMAND HOME LANG PATH PWD SHLVL TERM TMPDIR _ \d+\n$/);
    const pid = Number(/(\d+)\n$/.exec(stdout)?.[1]);
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect((await run("ls")).stdout).toBe("");
    expect(tree.status()).toEqual([]);
  });

  test("a process that keeps the output open delays neither the command nor the next one", async () => {
    const { run } = machine({});
    const { stdout } = await run("env -i setsid sleep 30 & sleep 0.1; echo $!");
    expect((await run("echo next")).stdout).toBe("next\n");
    // On a shared machine the server does not find a process without its variable.
    process.kill(Number(stdout), "SIGKILL");
  });

  // It ends by itself after ten seconds, so the tests wait less than that.
  const LEAVE =
    "(setsid bash -c 'echo $$ > ../left; for i in {1..100}; do sleep 0.1; echo x > stolen.txt; done' &); sleep 0.3";
  const isLeft = async ({ folder }: ShellContainerProcess) =>
    isRunning(Number(await readFile(join(folder, "left"), "utf8")));

  test.each([
    ["ends", ""],
    ["is late", "; sleep 60"],
  ])(
    "processes outside of its group end with a command that %s, and change no later command",
    async (_, more) => {
      const { tree, run } = machine({ ".gitignore": "" });
      await run(LEAVE + more, 1_000);
      await run("rm -f stolen.txt; sleep 0.3");
      expect(tree.status().map(({ path }) => path)).toEqual([".gitignore"]);
      await expect.poll(() => isLeft(container), { timeout: 7_000 }).toBe(false);
    },
  );

  test("processes outside of its group end with a command in the background that stops, or that another one replaces", async () => {
    const commands = shellOf(() => container).commands ?? expect.fail("no commands");
    const place = { workspace, timeoutMs: 60_000 };
    const { tree } = machine({});
    for (const end of [
      () => commands.stop("op_left", place),
      () => commands.start(tree, "op_next", "true", place),
    ]) {
      await rm(join(container.folder, "left"), { force: true });
      await commands.start(tree, "op_left", `${LEAVE}; sleep 60`, place);
      await expect.poll(() => isLeft(container).catch(() => false)).toBe(true);
      await end();
      await expect.poll(() => isLeft(container), { timeout: 7_000 }).toBe(false);
    }
    expect(await commands.look("op_left", place)).toEqual({ state: "lost" });
    await commands.stop("op_next", place);
  });

  test("a repository that a command makes at the root ends with the next command", async () => {
    const { tree, run } = machine({ "a.txt": "a" });
    expect((await run("git init --quiet; git add a.txt; git status --short")).stdout).toBe("A  a.txt\n");
    expect((await run("ls -A")).stdout).toBe("a.txt\n");
    expect(tree.status().map(({ path }) => path)).toEqual(["a.txt"]);
  });

  test("BACKGROUND-2 a command in the background shows the end of its output, continues without its actor, and is lost with its machine", async () => {
    const own = await ShellContainerProcess.start();
    let current = own;
    const commands = shellOf(() => current).commands ?? expect.fail("no commands");
    const place = { workspace, timeoutMs: 60_000 };
    const { tree } = machine({});
    await tree.write("a.txt", new TextEncoder().encode("a\n"));
    const command =
      "seq 1 20000; printf 'ü%.0s' {1..40000} >&2; until test -e go; do sleep 0.05; done; cat a.txt";
    await commands.start(tree, "op_1", command, place);
    const output = async () => {
      const seen = await commands.look("op_1", place);
      return seen.state === "running" ? [seen.stdout.slice(-6), seen.stderr.slice(0, 2)] : seen;
    };
    await expect.poll(output).toEqual(["20000\n", "üü"]);
    // Another actor gives the same command: it does not start again.
    await shellOf(() => current).commands?.start(tree, "op_1", command, place);
    await writeFile(join(own.root, "go"), "");
    await expect.poll(async () => (await commands.look("op_1", place)).state).toBe("ended");
    expect(await commands.look("op_1", place)).toMatchObject({
      result: { exitCode: 0, stdout: expect.stringMatching(/^\d*\n[\s\S]*20000\na\n$/), isCut: true },
      changes: [{ path: "go", before: null }],
    });

    await commands.start(tree, "op_2", "echo $$ > ../pid; sleep 60", place);
    expect(await commands.look("op_1", place), "one command at a time").toEqual({ state: "lost" });
    const pid = async () => Number(await readFile(join(own.folder, "pid"), "utf8").catch(() => "0"));
    await expect.poll(pid).toBeGreaterThan(0);
    await commands.stop("op_2", place);
    await expect.poll(async () => isRunning(await pid())).toBe(false);

    await commands.start(tree, "op_3", "sleep 60", place);
    await own.stop();
    await expect(commands.look("op_3", place)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    current = await ShellContainerProcess.start();
    expect(await commands.look("op_3", place)).toEqual({ state: "lost" });
    await current.stop();
  });

  test("an image of an older release has no commands in the background", async () => {
    const answer = async () => new Response(null, { status: 404 });
    const { commands } = containerShell(() => ({ fetch: answer, destroy: async () => undefined }));
    const place = { workspace, timeoutMs: 60_000 };
    await expect(commands?.start(machine({}).tree, "op_1", "ls", place)).rejects.toMatchObject({
      ...{ code: "UNSUPPORTED", message: expect.stringContaining("Build the image") },
    });
  });

  test("CONTAINER-1 a machine whose state a command has damaged is UNAVAILABLE, and ends", async () => {
    const own = await ShellContainerProcess.start();
    const { run } = machine(
      { "a.txt": "a" },
      shellOf(() => own),
    );
    await run("ls");
    await expect(run("rm -rf $HOME/../git")).rejects.toMatchObject({ code: expect.any(String) });
    await expect(run("ls")).rejects.toMatchObject({ code: "UNAVAILABLE", retriable: true });
    await own.ended;
    await own.stop();
  });

  test("contents are as they are, with any attributes and in any folder", async () => {
    const { tree, run } = machine({
      ".gitattributes": "* text=auto eol=crlf ident\n",
      "a.txt": "one\r\ntwo\n$Id$\n",
    });
    await run("cp a.txt 'b ü.txt'; printf '\\r\\n\\0' > c.bin");
    expect(decode((await tree.file("b ü.txt")).content)).toBe("one\r\ntwo\n$Id$\n");
    expect([...(await tree.file("c.bin")).content]).toEqual([13, 10, 0]);
    expect((await run("cat a.txt")).stdout).toBe("one\r\ntwo\n$Id$\n");
  });

  test("TREE-6 more files than a workspace holds are refused, with advice", async () => {
    const { tree, run } = machine({ "a.txt": "a" });
    await expect(run("head -c 36000000 /dev/urandom > big; echo b > a.txt")).rejects.toMatchObject({
      code: "TOO_LARGE",
      message: expect.stringContaining(".gitignore"),
    });
    expect(tree.status()).toEqual([{ path: "a.txt", change: "added" }]);
    expect((await run("cat a.txt; ls")).stdout).toBe("aa.txt\n");
  });

  test.each([
    ["no answer", () => Promise.reject(new Error("It does not start."))],
    ["an error", async () => new Response("There is no Container instance available.", { status: 503 })],
    ["another program's answer", async () => new Response("<html>")],
    ["another form", async () => new Response('{"exitCode": "0"}\n')],
    [
      "sizes of other contents",
      async () => new Response(`${JSON.stringify({ ...RESULT, changes: [["b", "100644", 9]] })}\nabc`),
    ],
    [
      "too many changes",
      async () => new Response(`${JSON.stringify({ ...RESULT, changes: Array(20_001).fill(["b"]) })}\n`),
    ],
    [
      "a result that is too long",
      async () => new Response(`${JSON.stringify({ ...RESULT, stdout: "x".repeat(9_000_000) })}\n`),
    ],
    ["an error that is too long", async () => new Response("x".repeat(9_000_000), { status: 409 })],
    ["a lack without a list", async () => Response.json({ missing: "all" }, { status: 409 })],
    ["an endless lack", async () => Response.json({ missing: [] }, { status: 409 })],
  ])("%s is UNAVAILABLE, and changes nothing", async (_, answer) => {
    const shell = containerShell(() => ({ fetch: answer, destroy: async () => undefined }));
    const { tree, run } = machine({ "a.txt": "a" }, shell);
    await expect(run("rm a.txt")).rejects.toMatchObject({ code: "UNAVAILABLE", retriable: true });
    expect(tree.status()).toEqual([{ path: "a.txt", change: "added" }]);
  });

  test("reads at most 8 MiB of an error", async () => {
    const fetch = async () => new Response("x".repeat(9_000_000), { status: 503 });
    const { run } = machine(
      {},
      containerShell(() => ({ fetch, destroy: async () => undefined })),
    );
    await expect(run("ls")).rejects.toMatchObject({
      message: expect.stringContaining(`more than ${2 ** 23} bytes`),
    });
  });

  test.each([
    ["in the background", "/commands/op_other"],
    ["of its own", "/exec"],
  ])("a command starts no other command %s through the server, before or after its end", async (_, path) => {
    const { run } = machine({});
    const request = JSON.stringify({ files: [], command: "echo $$ > ../other; sleep 60", timeoutMs: 60_000 });
    const { port } = new URL(container.url);
    const post = `setsid curl --silent --data '${request}' http://127.0.0.1:${port}${path} > /dev/null &`;
    await rm(join(container.folder, "other"), { force: true });
    await run(`${post} sleep 1`);
    await run("sleep 0.3");
    await run("sleep 0.3");
    await expect(readFile(join(container.folder, "other"), "utf8")).rejects.toThrow("ENOENT");
  });

  test("a machine gets each content once, and only contents of the tree", async () => {
    const bodies: string[] = [];
    const oid = "257cc5642cb1a054f08cc83f2d943e56fd3ebe99";
    const missing = [...Array(1_000).fill(oid), "0".repeat(40), 7, null];
    const shell = containerShell(() => ({
      fetch: async (url, { body }) => {
        if (url.endsWith("/exec"))
          return bodies.length === 0
            ? Response.json({ missing }, { status: 409 })
            : new Response(`${JSON.stringify(RESULT)}\n`);
        bodies.push(decode(body as Uint8Array));
        return new Response(null, { status: 204 });
      },
      destroy: async () => undefined,
    }));
    await machine({ "a.txt": "foo\n", "b.txt": "bar\n" }, shell).run("ls");
    expect(bodies).toEqual([`${oid} 4\nfoo\n`]);
  });

  test.each([
    [413, "TOO_LARGE"],
    [422, "INVALID_INPUT"],
    [500, "UNAVAILABLE"],
  ])("an error %i with a long message is %s with its beginning", async (status, code) => {
    const answer = async () => Response.json({ message: "y".repeat(10_000) }, { status });
    const shell = containerShell(() => ({ fetch: answer, destroy: async () => undefined }));
    const failed = machine({ "a.txt": "a" }, shell).run("ls");
    await expect(failed).rejects.toMatchObject({ code, message: expect.stringMatching(/^.{400,800}$/s) });
  });

  test("the server refuses contents under another id, and unfinished bodies", async () => {
    const oid = "ce013625030ba8dba906f756967f9e9ca394464a";
    for (const [body, status] of [
      [`${oid} 6\nhello\n`, 204],
      [`${oid} 5\nhallo`, 400],
      [`${oid} 60\nhello\n`, 400],
      ["../../etc/passwd 0\n", 400],
      [oid, 400],
    ] as const)
      expect((await fetch(`${container.url}/blobs`, { method: "POST", body })).status, body).toBe(status);
    expect((await fetch(`${container.url}/exec`, { method: "POST", body: "{" })).status).toBe(500);
    expect((await fetch(`${container.url}/other`)).status).toBe(404);
  });
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
