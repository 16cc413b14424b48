/** Commands in the background of a workspace, in a machine that is a process of this one, with answers that are lost or late. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { WorkspaceRuntime } from "../../src/agents/workspace/runtime.ts";
import { containerShell } from "../../src/agents/workspace/shell/container-shell.ts";
import { Projects } from "../../src/git/projects.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { claimText } from "../../src/protocol/operation-handle.ts";
import type { WorkspaceKind } from "../../src/protocol/workspace.ts";
import { DramatisError, unwrap } from "../../src/shared/errors.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { ADDRESS, AUTHOR, changes, gitWorld } from "../support/git-worlds.ts";
import { ShellContainerProcess } from "../support/shell-container.ts";

const ID = "op_00000000000000000000000001";

/** A workspace with a machine. `deliver` brings a request to the machine, and returns the answer. `destroy` ends the machine. */
async function backgroundWorld(
  deliver: (request: () => Promise<Response>, method: string) => Promise<Response> = (request) => request(),
  destroy: () => Promise<void> = async () => undefined,
) {
  const { repository, rows, objects, ids, clock } = await gitWorld();
  const input = { parents: [], message: "Begin", author: AUTHOR, at: 1_000, changes: changes({ a: "1" }) };
  await repository.commit("main", null, input);
  const machine = await ShellContainerProcess.start();
  onTestFinished(() => machine.stop());
  const own = new NodeSqlDatabase();
  const waiting = { isKnown: true, outcomes: [] as unknown[] };
  const runtime = new WorkspaceRuntime({
    ...{ stores: { database: own, keyValue: new NodeKeyValue(own) }, clock, branchPrefix: "dramatis" },
    isSensitive: (path) => path === ".env",
    shell: containerShell(() => ({
      fetch: (url, init) =>
        deliver(() => fetch(new URL(new URL(url).pathname, machine.url), init), init.method ?? ""),
      destroy,
    })),
    projects: () => new Projects({ rows, objects, ids }),
    tenant: () => ADDRESS.tenant,
    id: () => "conv-conv_1",
    arm: async () => undefined,
    operations: {
      report: async () => {
        if (waiting.isKnown) return true;
        throw new DramatisError("NOT_FOUND", "There is no such operation.");
      },
      complete: async (_, outcome) => void waiting.outcomes.push(outcome),
    },
  });
  const claim = {
    ...{ tenant: ADDRESS.tenant, conversationId: "conv_00000000000000000000000001", operationId: ID },
    expiresAt: clock.now() + 3_600_000,
  };
  const handle = `${claimText(claim)}.${"A".repeat(43)}`;
  const perform = (kind: WorkspaceKind, given: JsonObject = {}, key = ID) =>
    runtime.perform({ project: ADDRESS.project }, { kind, input: given, key, author: AUTHOR });
  const start = (command: string) => perform("shell.start", { command, handle });
  const output = async () => unwrap(await perform("shell.output", {}, "op_2"));
  const stop = () => perform("shell.stop", { id: ID }, "op_3");
  const fileOf = (name: string) => readFile(join(machine.folder, name), "utf8").catch(() => "");
  /** Returns whether the process that wrote its id to `pid` runs. */
  const isRunning = async () => {
    try {
      return process.kill(Number((await fileOf("pid")) || "0x7fffffff"), 0);
    } catch {
      return false;
    }
  };
  return { runtime, waiting, start, output, stop, fileOf, isRunning };
}

const LONG = "echo $$ > ../pid; echo x >> ../starts; sleep 1000";

test("ERASE-7 a command stops before its call is erased", async () => {
  const { runtime, start, output, isRunning } = await backgroundWorld();
  unwrap(await start(LONG));
  await expect.poll(isRunning).toBe(true);
  unwrap(await runtime.forget(ID));
  await expect.poll(isRunning).toBe(false);
  await expect(output()).rejects.toMatchObject({ code: "NOT_FOUND" });
});

test("ERASE-7 the erasure of a call waits for a machine that does not answer", async () => {
  let isDown = false;
  const { runtime, start, isRunning } = await backgroundWorld((request) =>
    isDown ? Promise.reject(new Error("The network is down.")) : request(),
  );
  unwrap(await start(LONG));
  await expect.poll(isRunning).toBe(true);
  isDown = true;
  expect(await runtime.forget(ID)).toMatchObject({ ok: false, error: { code: "UNAVAILABLE" } });
  isDown = false;
  unwrap(await runtime.forget(ID));
  await expect.poll(isRunning).toBe(false);
});

test("ERASE-7 a command whose call is erased during the start stops", async () => {
  const begun = Promise.withResolvers<void>();
  const erased = Promise.withResolvers<void>();
  const world: Awaited<ReturnType<typeof backgroundWorld>> = await backgroundWorld(
    async (request, method) => {
      if (method === "POST") {
        begun.resolve();
        await erased.promise;
      }
      const response = await request();
      if (method === "POST" && response.status === 204 && response.url.includes("/commands/"))
        await expect.poll(world.isRunning).toBe(true);
      return response;
    },
  );
  const started = world.start(LONG);
  await begun.promise;
  unwrap(await world.runtime.forget(ID));
  erased.resolve();
  unwrap(await started);
  await expect.poll(world.isRunning).toBe(false);
});

test("BACKGROUND-4 a command whose start has no answer starts once, and its outcome is delivered", async () => {
  const { runtime, waiting, start, fileOf } = await backgroundWorld(async (request, method) => {
    const response = await request();
    if (method === "POST" && response.status === 204 && response.url.includes("/commands/"))
      throw new Error("The answer is lost.");
    return response;
  });
  const command = "echo x >> ../starts; echo b > b.txt";
  expect(unwrap(await start(command))).toEqual({ id: ID, state: "running" });
  expect(unwrap(await start(command))).toEqual({ id: ID, state: "running" });
  await expect
    .poll(() => {
      runtime.wake();
      return waiting.outcomes;
    })
    .toMatchObject([{ result: { exitCode: 0, changed: ["b.txt"] } }]);
  expect(await fileOf("starts")).toBe("x\n");
});

test("BACKGROUND-4 a command starts once in a machine that hangs and cannot be ended", async () => {
  const deadline = new AbortController();
  const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValueOnce(deadline.signal);
  onTestFinished(() => timeout.mockRestore());
  const failure = new Error("The connection is lost.");
  const warn = vi.spyOn(console, "warn").mockReturnValue(undefined);
  onTestFinished(() => warn.mockRestore());
  const { start, fileOf, isRunning, runtime } = await backgroundWorld(
    async (request, method) => {
      const response = await request();
      if (deadline.signal.aborted || method !== "POST" || response.status !== 204) return response;
      if (!response.url.includes("/commands/")) return response;
      deadline.abort();
      throw deadline.signal.reason;
    },
    () => Promise.reject(failure),
  );
  expect(unwrap(await start(LONG))).toEqual({ id: ID, state: "running" });
  expect(unwrap(await start(LONG))).toEqual({ id: ID, state: "running" });
  await expect.poll(isRunning).toBe(true);
  expect(await fileOf("starts")).toBe("x\n");
  expect(warn).toHaveBeenCalledWith(expect.any(String), failure);
  unwrap(await runtime.forget(ID));
});

test("BACKGROUND-4 a command that is stopped during its start does not run on", async () => {
  const begun = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const world: Awaited<ReturnType<typeof backgroundWorld>> = await backgroundWorld(
    async (request, method) => {
      if (method === "POST") {
        begun.resolve();
        await stopped.promise;
      }
      const response = await request();
      if (method === "POST" && response.status === 204 && response.url.includes("/commands/"))
        await expect.poll(world.isRunning).toBe(true);
      return response;
    },
  );
  const started = world.start(LONG);
  await begun.promise;
  expect(unwrap(await world.stop())).toEqual({ id: ID, stopped: true });
  stopped.resolve();
  unwrap(await started);
  await expect.poll(world.isRunning).toBe(false);
  expect(await world.output()).toMatchObject({ state: "ended", error: { code: "CANCELLED" } });
});

test("the output of a running command is cut", async () => {
  const stdout = "x".repeat(65_536);
  const { start, output } = await backgroundWorld(async (request, method) =>
    method === "GET" ? Response.json({ stdout: `y${stdout}`, stderr: "z" }, { status: 202 }) : request(),
  );
  unwrap(await start("true"));
  expect(await output()).toMatchObject({ state: "running", stdout, stderr: "z", isCut: true });
});

test("BACKGROUND-4 a command that the machine never got is lost, with an error", async () => {
  const { start, output } = await backgroundWorld((request, method) =>
    method === "POST" ? Promise.reject(new Error("The network is down.")) : request(),
  );
  expect(unwrap(await start("ls"))).toEqual({ id: ID, state: "running" });
  expect(await output()).toMatchObject({ state: "ended", error: { code: "EXECUTION_FAILED" } });
});

test("BACKGROUND-6 a command whose operation is unknown stops", async () => {
  const { waiting, start, output, isRunning } = await backgroundWorld();
  unwrap(await start(LONG));
  await expect.poll(isRunning).toBe(true);
  waiting.isKnown = false;
  expect(await output()).toMatchObject({ state: "ended", error: { code: "CANCELLED" } });
  await expect.poll(isRunning).toBe(false);
});

test("CONTAINER-2 a command in the background that leaves a sensitive file changes nothing", async () => {
  const { runtime, start, output } = await backgroundWorld();
  unwrap(await start("echo x > .env; echo b > b.txt"));
  await expect.poll(output).toMatchObject({ state: "ended", error: { code: "PERMISSION_DENIED" } });
  const { repositories } = unwrap(await runtime.view({ project: ADDRESS.project }));
  expect(repositories[0]?.changes).toEqual([]);
});
