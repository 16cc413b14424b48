/** Tool results that are too large for a turn. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { LargeResults } from "../../src/agents/conversation/results/large-results.ts";
import { runCalls } from "../../src/agents/executor/run-calls.ts";
import { storedResults } from "../../src/agents/executor/stored-results.ts";
import { AttachmentStore } from "../../src/attachments/attachment-store.ts";
import { excerptOf, pageRequest, storedResultId, viewOfResult } from "../../src/attachments/large-result.ts";
import { ResultKeeper } from "../../src/attachments/result-keeper.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { estimateTokens } from "../../src/memory/session/tokens.ts";
import { MemoryObjectStore } from "../../src/ports/node/memory-object-store.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import {
  type ExecutorReport,
  MAX_OUTPUT_BYTES,
  type ToolInvocation,
} from "../../src/protocol/executor-api.ts";
import { operationId } from "../../src/protocol/ids.ts";
import { isJsonObject, type Json, type JsonObject } from "../../src/shared/json.ts";
import { memoryToolState, noHandles } from "../../src/testing/world/local-executor.ts";
import { noMemory } from "../support/no-memory.ts";
import { callOf } from "../support/tools.ts";

const OWNER = { tenant: "acme", conversationId: "conv_1" };
const OPERATION = `op_${"0".repeat(26)}`;
const MAX_BYTES = 8 * 1024 * 1024;

/** An executor with a tool `giving` that returns a value, and the store of its results. */
function world(
  value: () => unknown,
  { store = new AttachmentStore(new MemoryObjectStore()), deleted = false } = {},
) {
  const clock = new VirtualClock();
  const giving = defineTool({
    name: "giving",
    description: "Returns a value.",
    input: z.object({}),
    effect: "once",
    execute: value,
  });
  const results = storedResults(new ResultKeeper(store, MAX_BYTES, clock), async () => deleted);
  const run = async (call: ToolInvocation) => {
    const reports: ExecutorReport[] = [];
    await runCalls(
      {
        ...{ tools: new DeployedCode([defineLibrary("test", { tools: [giving] })]), clock, results },
        ...{ state: () => memoryToolState(), memory: noMemory, defer: noHandles, baseUrl: undefined },
        ...{ mayReach: () => false, vectors: new Map(), deliver: async () => undefined },
        waitUntil: () => undefined,
      },
      { calls: [call] },
      {
        report: async (given) => {
          reports.push(...given);
          return [];
        },
        cancelled: () => new Promise<never>(() => undefined),
      },
    );
    const [report] = reports;
    return report !== undefined && "result" in report ? report.result : expect.fail("no result");
  };
  const call = (change: Partial<ToolInvocation> = {}) =>
    run(callOf("giving", {}, { operationId: OPERATION, inlineBytes: 1_000, ...change }));
  const read = (input: JsonObject) =>
    run(callOf("", input, { tool: { library: "dramatis", id: "read_tool_result", version: 0 } }));
  return { call, read, store };
}

const ROWS = Array.from({ length: 4_000 }, (_, n) => ({ n, name: `Zoë 🦊 ${n}` }));

test("LARGE-1 LARGE-2 a result that is too large is a success with a view, and the store has the whole result", async () => {
  const { call, store } = world(() => ROWS);
  const { success, result } = await call();
  expect(success).toBe(true);
  const bytes = Buffer.byteLength(JSON.stringify(ROWS));
  expect(result).toMatchObject({
    stored_result: { id: expect.stringMatching(/^att_/), bytes },
    note: expect.stringContaining(`${bytes} bytes`),
    head: expect.stringMatching(/^\[\{"n":0,"name":"Zoë 🦊 0"\}/),
    tail: expect.stringMatching(/3999"\}\]$/),
  });
  expect(JSON.stringify(result).length).toBeLessThan(8_000);
  const whole = await store.get(OWNER, storedResultId(result) ?? "");
  expect(JSON.parse(new TextDecoder().decode(whole?.bytes))).toEqual(ROWS);
  expect(whole).toMatchObject({ mediaType: "application/json", name: "giving.json" });
});

test("LARGE-2 a result with more values than a turn takes is stored, too", async () => {
  const { call } = world(() => Array.from({ length: 60_000 }, () => 0));
  const { success, result } = await call({ inlineBytes: MAX_OUTPUT_BYTES });
  expect([success, storedResultId(result)]).toEqual([true, expect.stringMatching(/^att_/)]);
});

test("LARGE-1 a result within the limit is returned unchanged, and a caller that takes no views gets an error", async () => {
  expect(await world(() => "small").call()).toMatchObject({ success: true, result: "small" });
  const { inlineBytes: _, ...rest } = callOf("giving");
  expect(rest.input).toEqual({});
  const { call } = world(() => "x".repeat(MAX_OUTPUT_BYTES));
  const hook = await call({ inlineBytes: undefined as never });
  expect(hook).toMatchObject({ success: false, error: { message: expect.stringContaining("The tool ran") } });
});

describe("LARGE-2 a result that cannot be stored is a success, and its view says why", () => {
  const silent = () => {
    const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
    onTestFinished(() => errors.mockRestore());
  };
  const broken = new AttachmentStore(
    Object.assign(new MemoryObjectStore(), { put: () => Promise.reject(new Error("The store is down.")) }),
  );
  test.each<[string, () => ReturnType<typeof world>, RegExp]>([
    ["beyond the limit of attachments", () => world(() => "x".repeat(MAX_BYTES)), /at most 8388608 bytes/],
    ["a store that is down", () => world(() => "x".repeat(2_000), { store: broken }), /could not be stored/],
    [
      "a deleted conversation",
      () => world(() => "x".repeat(2_000), { deleted: true }),
      /could not be stored/,
    ],
  ])("%s", async (_, create, why) => {
    silent();
    const { call, store } = create();
    const { success, result } = await call();
    expect(success).toBe(true);
    expect(result).toMatchObject({ note: expect.stringMatching(why), head: expect.stringMatching(/^"xxx/) });
    expect(storedResultId(result)).toBeUndefined();
    expect(await store.list(OWNER)).toEqual([]);
  });
});

test("LARGE-2 a result stays stored if the check after its storage fails", async () => {
  const store = new AttachmentStore(new MemoryObjectStore());
  const keeper = new ResultKeeper(store, MAX_BYTES, new VirtualClock());
  const result = { id: "att_1", name: "giving.json", size: 1, read: () => new Uint8Array(1) };
  const keep = (isDeleted: () => boolean) => keeper.keep(OWNER, { ...result, isDeleted });
  await expect(keep(() => expect.fail("The turn was not read."))).rejects.toThrow("The turn was not read.");
  expect(await keep(() => false)).toEqual({ id: "att_1" });
  expect(await store.list(OWNER)).toEqual(["att_1"]);
});

test("ERASE-9 LARGE-4 the result of a call that is erased before or during its storage is not stored", async () => {
  const store = new AttachmentStore(new MemoryObjectStore());
  const keeper = new ResultKeeper(store, MAX_BYTES, new VirtualClock());
  const operation = { item: 1, attempt: 1, status: "cancelled", effect: "once", name: "giving" };
  const turn = { stem: "0".repeat(19), n: 1, operations: [operation] };
  const runtime = {
    exists: true,
    state: { record: { tenant: OWNER.tenant, id: OWNER.conversationId } },
    turn: () => turn,
  };
  const viewAfter = async (...erased: boolean[]) => {
    const resultStores = { keeper, sender: () => expect.fail("no sender") };
    const context = { resultStores, isErased: async () => erased.shift() ?? expect.fail("asked again") };
    // The members that a call of a finished turn needs.
    const results = new LargeResults(context, runtime as never);
    const view = await results.viewOf(
      { operationId: operationId(turn, 1), attempt: 1 },
      "x".repeat(MAX_OUTPUT_BYTES),
    );
    return { view, stored: await store.list(OWNER) };
  };
  expect(await viewAfter(true)).toEqual({ view: undefined, stored: [] });
  expect((await viewAfter(false, true)).stored).toEqual([]);
  expect((await viewAfter(false, false)).stored).toHaveLength(1);
});

describe("LARGE-3 the pages of a result", () => {
  test("are within their budget, and together are the complete text", async () => {
    const text = JSON.stringify(ROWS);
    const { call, read } = world(() => ROWS);
    const id = storedResultId((await call()).result) ?? "";
    let whole = "";
    for (let next: Json | undefined = 0; next !== undefined; ) {
      const { success, result } = await read({ id, offset: next, tokens: 500 });
      expect(success).toBe(true);
      if (!isJsonObject(result)) throw new Error("A page is an object.");
      expect(estimateTokens(String(result.text))).toBeLessThanOrEqual(500);
      whole += result.text;
      next = result.next;
    }
    expect(whole).toBe(text);
  });

  test("begin with a complete character at any offset", async () => {
    const { call, read } = world(() => "🦊".repeat(1_000));
    const id = storedResultId((await call()).result) ?? "";
    for (const offset of [1, 2, 3, 4, 5]) {
      const { result } = await read({ id, offset, tokens: 100 });
      expect(result).toMatchObject({
        bytes: 4_002,
        offset: offset === 1 ? 1 : 5,
        text: expect.stringMatching(/^🦊+$/u),
      });
    }
  });

  test("are of this conversation only, and end with the result", async () => {
    const { call, read, store } = world(() => "x".repeat(2_000));
    const id = storedResultId((await call()).result) ?? "";
    expect(await read({ id, offset: 2_002 })).toMatchObject({
      error: { code: "INVALID_INPUT", message: expect.stringContaining("2002") },
    });
    expect(await read({ id: "att_0" })).toMatchObject({ error: { code: "NOT_FOUND" } });
    await store.put(
      { ...OWNER, conversationId: "conv_2" },
      { id: `att_${"9".repeat(26)}`, mediaType: "application/json", bytes: new Uint8Array(3) },
    );
    expect(await read({ id: `att_${"9".repeat(26)}` })).toMatchObject({ error: { code: "NOT_FOUND" } });
    await store.put(OWNER, { id: `att_${"8".repeat(26)}`, mediaType: "image/png", bytes: new Uint8Array(3) });
    expect(await read({ id: `att_${"8".repeat(26)}` })).toMatchObject({ error: { code: "NOT_FOUND" } });
  });

  test("have usual sizes", () => {
    expect(pageRequest({ id: "att_1" })).toEqual({ id: "att_1", offset: 0, tokens: 2_000 });
  });
});

test("LARGE-1 a view is well-formed Unicode, wherever its cuts are", () => {
  for (const cut of [3_000, 1_000])
    for (let shift = -3; shift <= 3; shift++) {
      const text = `${"a".repeat(cut + shift)}🦊${"b".repeat(cut === 3_000 ? 2_000 : 998 + shift)}`;
      const view = viewOfResult(excerptOf(text), { lost: "no reason." });
      expect(JSON.stringify(view).isWellFormed() && String(view.head).isWellFormed()).toBe(true);
      expect(String(view.tail).isWellFormed()).toBe(true);
    }
});
