/** Deferred operations on the real Worker: results by handles, their expiry, and handles in the wrong hands. */
import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { completeOperation } from "../../src/agents/conversation/results/complete-operation.ts";
import { createClient } from "../../src/client/http.ts";
import type { LiveConversation } from "../../src/client/state.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import { claimText, readHandle } from "../../src/protocol/operation-handle.ts";
import { Play } from "./provider.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

let buyer: string;

beforeAll(async () => {
  buyer = await createAgent("test/buyer");
});

afterEach(checkInvariants);

const isOver = (turnId: string) => (state: LiveConversation) =>
  state.turns.some(({ id, status }) => id === turnId && status !== "active");

const paying =
  (tool: string, input: object = {}) =>
  (key: string) => ({
    replies: [[{ call: tool, input: { key, ...input } }], [{ text: "Paid." }]],
  });

/** The handle that the tool's run reported; `count` runs are there. */
async function handleOf(play: Play, count = 1): Promise<string> {
  const [last = expect.fail("no run")] = (await play.runs(count)).slice(-1);
  // SAFETY: the tools of the test library report it.
  return (last.input as { handle: string }).handle;
}

/** Posts a result without any credential but the handle. */
async function post(handle: string, body: object | string): Promise<[number, { code?: string }]> {
  const response = await exports.default.fetch(
    new Request(`http://dramatis.test/api/operations/${handle}/result`, {
      method: "POST",
      body: typeof body === "string" ? body : JSON.stringify(body),
      // The test's `authorize` throws at this.
      headers: { "x-test-principal": "nobody" },
    }),
  );
  return [response.status, await response.json<{ code?: string }>()];
}

/** Resolves when the operation of a turn is deferred. */
async function untilDeferred(conversation: TestConversation): Promise<void> {
  await expect
    .poll(async () => (await conversation.journal()).map(({ type }) => type))
    .toContain("tool.deferred");
}

const PAID = { result: { paid: true } };

test("DEFER-5 ORDER-1 E13 a turn that waits for a payment holds no queue, and clients see until when it waits", async () => {
  const conversation = await createConversation(buyer);
  await request(conversation.path, { method: "PATCH", body: JSON.stringify({ turns: "queued" }) });
  const client = await conversation.connect();
  const { play, turnId } = await conversation.play(paying("pay"));
  const handle = await handleOf(play);
  await client.frame("turn.waiting", ({ data }) => data.reason === "operations");
  const turnIn = ({ turns }: LiveConversation) => turns.find(({ id }) => id === turnId);
  const shown = ({ type, operation }: { type: string; operation?: unknown }) => type === "tool" && operation;
  const running = { state: "running", deferredUntil: expect.stringMatching(/^20/) };
  expect(turnIn(client.state)).toMatchObject({ status: "active", phase: "waiting" });
  expect(turnIn(client.state)?.items.flatMap((item) => shown(item) || [])).toMatchObject([running]);
  const late = await conversation.connect();
  await late.until((state) => turnIn(state)?.phase === "waiting");
  expect(turnIn(late.state)?.items.flatMap((item) => shown(item) || [])).toMatchObject([running]);

  const other = await conversation.play({ replies: [[{ text: "Hello." }]] });
  expect((await conversation.ended(other.turnId)).answer).toBe("Hello.");
  await crash();
  expect(await conversation.turn(turnId)).toMatchObject({ status: "active", phase: "waiting" });
  expect(await post(handle, PAID)).toMatchObject([200, { status: "completed" }]);
  expect(await conversation.ended(turnId)).toMatchObject({ status: "completed", answer: "Paid." });
});

test("DEFER-5 UISTREAM-5 the stream of a chat ends if its turn only waits for a deferred result", async () => {
  const conversation = await createConversation(buyer);
  const play = new Play(paying("pay"));
  const message = { id: "m1", role: "user", parts: [{ type: "text", text: play.content }] };
  const chat = await request(`${conversation.path}/chat`, {
    method: "POST",
    body: JSON.stringify({ id: "c", trigger: "submit-message", messages: [message] }),
  });
  const chunks = await chat.text();
  expect(chunks).toContain("tool-input-available");
  expect(chunks.trimEnd().split("\n\n").slice(-2)).toEqual([
    'data: {"type":"finish","finishReason":"stop"}',
    "data: [DONE]",
  ]);
  const turnId = chat.headers.get("x-dramatis-turn") ?? "";
  expect((await conversation.turn(turnId)).status).toBe("active");
  expect(await post(await handleOf(play), PAID)).toMatchObject([200, { status: "completed" }]);
  expect((await conversation.ended(turnId)).answer).toBe("Paid.");
});

describe("the result of a deferred operation", () => {
  test("DEFER-1 DEFER-3 arrives by its handle, and the turn continues; five more deliveries after the turn are no-ops without a model call; a different result is refused", async () => {
    const conversation = await createConversation(buyer);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play(paying("pay"));
    const handle = await handleOf(play);
    await untilDeferred(conversation);
    expect((await conversation.turn(turnId)).status).toBe("active");
    const [operationId] = (await play.runs(1)).map((run) => run.operationId);
    const taken = [200, { operationId, status: "completed" }];
    expect(await post(handle, PAID)).toEqual(taken);
    await client.until(isOver(turnId));
    const turn = await conversation.turn(turnId);
    expect([turn.answer, turn.moves[0]?.toolResult]).toEqual(["Paid.", { success: true, ...PAID }]);
    const journal = await conversation.journal();
    for (let again = 0; again < 5; again++) expect(await post(handle, PAID)).toEqual(taken);
    expect(await post(handle, { result: { paid: false } })).toMatchObject([409, { code: "CONFLICT" }]);
    expect(await post(handle, { error: { message: "No." } })).toMatchObject([409, { code: "CONFLICT" }]);
    expect(await conversation.journal()).toEqual(journal);
    const requests = await play.requests(2);
    expect(requests).toHaveLength(2);
    const messages = requests.at(-1)?.body.messages ?? [];
    expect(messages.at(-1)).toMatchObject({ role: "tool", content: JSON.stringify(PAID.result) });
    const said = JSON.stringify([requests.slice(1), journal, client.frames, turn]);
    for (const secret of [handle, ...handle.split(".")]) expect(said).not.toContain(secret);
  });

  test("DEFER-1 H1 survives a crash: the tool does not run again, and the handle is valid", async () => {
    const conversation = await createConversation(buyer);
    const { play, turnId } = await conversation.play(paying("order"));
    const handle = await handleOf(play);
    await untilDeferred(conversation);
    await crash();
    expect(await post(handle, { error: { message: "Sold out.", code: "NOT_FOUND" } })).toMatchObject([
      200,
      { status: "failed" },
    ]);
    await expect.poll(async () => (await conversation.turn(turnId)).status).toBe("completed");
    const turn = await conversation.turn(turnId);
    expect(turn).toMatchObject({ issues: { toolFailures: 1 } });
    expect(turn.moves[0]?.toolResult?.error).toMatchObject({ code: "NOT_FOUND", message: "Sold out." });
    expect(await play.runs(1)).toHaveLength(1);
    expect((await conversation.journal()).map(({ type }) => type)).not.toContain("turn.resumed");
  });

  test("DEFER-2 H1 a crash while the tool runs: its deferral arrives by name, and its handle is valid", async () => {
    const conversation = await createConversation(buyer);
    const { play, turnId } = await conversation.play(paying("pay", { gate: "returning" }));
    const handle = await handleOf(play);
    await play.reached("returning");
    await crash();
    await conversation.view();
    await play.open("returning");
    await untilDeferred(conversation);
    expect(await post(handle, PAID)).toMatchObject([200, { status: "completed" }]);
    await expect.poll(async () => (await conversation.turn(turnId)).answer).toBe("Paid.");
    expect(await play.runs(1)).toHaveLength(1);
  });

  test("DEFER-2 may arrive before the tool returns", async () => {
    const conversation = await createConversation(buyer);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play(paying("pay", { gate: "returning" }));
    const handle = await handleOf(play);
    await play.reached("returning");
    expect(await post(handle, PAID)).toMatchObject([200, { status: "completed" }]);
    await client.until(isOver(turnId));
    await play.open("returning");
    expect((await conversation.turn(turnId)).answer).toBe("Paid.");
  });

  test("DEFER-3 STOP-1 OP-6 after a stop is refused; the success of a `once` tool is a note in the next request, once", async () => {
    const conversation = await createConversation(buyer);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play(paying("pay"));
    const handle = await handleOf(play);
    await untilDeferred(conversation);
    expect((await conversation.stop(turnId))[0]).toBe(200);
    for (let again = 0; again < 3; again++)
      expect(await post(handle, PAID)).toMatchObject([409, { code: "CONFLICT" }]);
    const late = (await conversation.journal()).filter(({ type }) => type === "tool.late");
    expect(late).toHaveLength(1);
    expect(await play.requests(1)).toHaveLength(1);
    const next = await conversation.play({ replies: [[{ text: "It was paid." }]] });
    await client.until(isOver(next.turnId));
    const messages = (await next.play.requests(1)).at(-1)?.body.messages ?? [];
    const notes = messages.filter(({ content }) => content?.includes(JSON.stringify(PAID.result)));
    expect(notes.map(({ role }) => role)).toEqual(["system"]);
    expect(JSON.stringify(messages)).toContain("Outcome unknown");
  });

  test("OP-6 DEFER-3 after the tool's run was lost is refused, too, and the success of a `once` tool is noted once", async () => {
    const conversation = await createConversation(buyer);
    const { play, turnId } = await conversation.play(paying("pay", { gate: "never" }));
    const handle = await handleOf(play);
    await play.reached("never");
    await crash();
    await conversation.view();
    await conversation.passLateResultTime();
    const turn = await conversation.ended(turnId);
    expect(turn.moves[0]?.toolResult?.error?.message).toMatch(/^Outcome unknown/);
    for (let again = 0; again < 3; again++)
      expect(await post(handle, PAID)).toMatchObject([409, { code: "CONFLICT" }]);
    expect((await conversation.journal()).filter(({ type }) => type === "tool.late")).toHaveLength(1);
    const next = await conversation.play({ replies: [[{ text: "It was paid." }]] });
    await conversation.ended(next.turnId);
    const asked = JSON.stringify((await next.play.requests(1)).at(-1)?.body.messages);
    expect(asked).toContain("it took effect");
    await play.open("never");
  });

  test("DEFER-4 does not arrive in time: the actor's alarm gives the operation `TIMEOUT`, also after a crash", async () => {
    const conversation = await createConversation(buyer);
    const { play, turnId } = await conversation.play(paying("pay", { ms: 2_000 }));
    const handle = await handleOf(play);
    await untilDeferred(conversation);
    await crash();
    // The alarm wakes the actor without a request.
    await play.requests(2);
    await expect.poll(async () => (await conversation.turn(turnId)).status).toBe("completed");
    const error = (await conversation.turn(turnId)).moves[0]?.toolResult?.error;
    expect(error).toMatchObject({ code: "TIMEOUT", message: expect.stringContaining("Outcome unknown") });
    expect(await post(handle, PAID)).toMatchObject([409, { code: "CONFLICT" }]);
    expect(await play.requests(2)).toHaveLength(2);
  }, 20_000);

  test("DEFER-3 arrives by the client, by RPC, and by `completeOperation` in the Worker", async () => {
    const conversation = await createConversation(buyer);
    const calls = { call: "order" };
    const { play, turnId } = await conversation.play((key) => ({
      replies: [[1, 2, 3].flatMap(() => ({ ...calls, input: { key } })), [{ text: "All." }]],
    }));
    const runs = await play.runs(3);
    // SAFETY: the tools of the test library report it.
    const [one = "", two = "", three = ""] = runs.map(({ input }) => (input as { handle: string }).handle);
    const fetching = ((url: string, init: RequestInit) =>
      exports.default.fetch(new Request(url, init))) as typeof fetch;
    const client = createClient({ baseUrl: "http://dramatis.test", fetch: fetching });
    expect(await client.operations.complete(one, { result: 1 })).toMatchObject({ status: "completed" });
    // SAFETY: the stub is of the class `Conversation`.
    const stub = conversation.stub as unknown as ConversationApi;
    expect(await stub.completeOperation(two, { result: 2 })).toMatchObject({ ok: true });
    expect(await completeOperation(three, { result: 3 })).toMatchObject({ status: "completed" });
    await expect(completeOperation(three, { result: 4 })).rejects.toMatchObject({ code: "CONFLICT" });
    await expect(completeOperation("x", { result: 4 })).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect.poll(async () => (await conversation.turn(turnId)).answer).toBe("All.");
  });

  test("DEFER-1 ASYNC-2 ASYNC-3 arrives for a background call as for others: the agent answers at once, and again with the result, in the same turn", async () => {
    const conversation = await createConversation(buyer);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play((key) => ({
      replies: [
        [{ call: "ship", input: { key } }],
        [{ text: "It is on its way." }],
        [{ text: "It arrived." }],
      ],
    }));
    const handle = await handleOf(play);
    await client.until(() => client.framesOf("turn.waiting").length === 1);
    await untilDeferred(conversation);
    await crash();
    expect(await conversation.turn(turnId)).toMatchObject({ status: "active", phase: "waiting" });
    for (let again = 0; again < 3; again++)
      expect(await post(handle, { result: { signed: "Ada" } })).toMatchObject([200, { status: "completed" }]);
    await expect.poll(async () => (await conversation.turn(turnId)).status).toBe("completed");
    expect(await conversation.turn(turnId)).toMatchObject({ answer: "It arrived." });
    const requests = await play.requests(3);
    expect(requests).toHaveLength(3);
    expect(JSON.stringify(requests.at(-1)?.body.messages)).toContain("signed");
    expect(await play.runs(1)).toHaveLength(1);
  });

  test("DEFER-4 ASYNC-3 a background call expires as others: a further cycle gets the error", async () => {
    const conversation = await createConversation(buyer);
    const { play, turnId } = await conversation.play((key) => ({
      replies: [
        [{ call: "ship", input: { key, ms: 1_000 } }],
        [{ text: "Soon." }],
        [{ text: "It is lost." }],
      ],
    }));
    await play.requests(3);
    await expect.poll(async () => (await conversation.turn(turnId)).answer).toBe("It is lost.");
    expect((await conversation.turn(turnId)).moves[0]?.toolResult?.error).toMatchObject({ code: "TIMEOUT" });
  }, 20_000);

  test("DEFER-1 a `pure` tool cannot defer, and the error names the required declaration", async () => {
    const conversation = await createConversation(buyer);
    const client = await conversation.connect();
    const { turnId } = await conversation.play(paying("peek"));
    await client.until(isOver(turnId));
    expect((await conversation.turn(turnId)).moves[0]?.toolResult?.error?.message).toMatch(
      /Declare `effect: "idempotent"`/,
    );
  });
});

describe("a handle in the wrong hands", () => {
  async function waiting() {
    const conversation = await createConversation(buyer);
    const { play, turnId } = await conversation.play(paying("pay"));
    const handle = await handleOf(play);
    await untilDeferred(conversation);
    const done = async () => {
      expect((await conversation.turn(turnId)).status).toBe("active");
      expect(await post(handle, PAID)).toMatchObject([200, {}]);
      await expect.poll(async () => (await conversation.turn(turnId)).answer).toBe("Paid.");
    };
    return { conversation, handle, done };
  }

  const refused = [404, { code: "NOT_FOUND" }];

  test("HANDLE-1 a handle that was changed or cut at any place is unknown", async () => {
    const { handle, done } = await waiting();
    const other = (character: string) => (character === "A" ? "B" : "A");
    const places = [0, 1, 40, handle.indexOf(".") - 1, handle.indexOf(".") + 1, handle.length - 2];
    const changed = places.map(
      (place) => handle.slice(0, place) + other(handle.charAt(place)) + handle.slice(place + 1),
    );
    // Every other last character, including the characters that encode the same bytes.
    const last = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"]
      .filter((character) => character !== handle.at(-1))
      .map((character) => handle.slice(0, -1) + character);
    const cut = [
      handle.slice(0, -1),
      handle.slice(1),
      handle.split(".")[0] ?? "",
      `.${handle.split(".")[1]}`,
    ];
    const more = [`${handle}A`, `${handle}=`, `${handle}.${handle}`, "%00", "__proto__", "a".repeat(5_000)];
    for (const wrong of [...changed, ...last, ...cut, ...more])
      expect(await post(encodeURIComponent(wrong), PAID), wrong).toMatchObject(refused);
    await done();
  });

  test("HANDLE-1 a handle of another conversation, tenant, operation or time is unknown", async () => {
    const one = await waiting();
    const two = await waiting();
    const read = readHandle(one.handle) ?? expect.fail("no handle");
    const { claim, signature } = read;
    const foreign = readHandle(two.handle) ?? expect.fail("no handle");
    const forged = [
      { ...claim, tenant: "globex" },
      { ...claim, tenant: "acme:conv_x" },
      { ...claim, conversationId: foreign.claim.conversationId },
      { ...claim, conversationId: "conv_01JD0000000000000000000000" },
      { ...claim, operationId: foreign.claim.operationId },
      { ...claim, expiresAt: claim.expiresAt + 1 },
      { ...claim, expiresAt: Number.MAX_SAFE_INTEGER },
    ];
    for (const other of forged)
      for (const by of [signature, foreign.signature])
        expect(await post(`${claimText(other)}.${by}`, PAID)).toMatchObject(refused);
    expect(await post(`${foreign.text}.${signature}`, PAID)).toMatchObject(refused);
    await one.done();
    await two.done();
  });

  test("HANDLE-1 HANDLE-2 tools cannot read the key, and another conversation's key is invalid here", async () => {
    const { conversation, handle, done } = await waiting();
    // SAFETY: the stub is of the class `Conversation`.
    const stub = conversation.stub as unknown as {
      toolStateList(prefix: string): Promise<{ value: unknown[] }>;
    };
    expect(await stub.toolStateList("")).toMatchObject({ value: [] });
    const keys = await runInDurableObject(conversation.stub, (_, { storage }) =>
      [...storage.kv.list()].filter(([name]) => name.startsWith("handles:")),
    );
    expect(keys).toMatchObject([["handles:key", expect.any(Uint8Array)]]);
    const claim = readHandle(handle)?.claim ?? expect.fail("no handle");
    const text = claimText({ ...claim, expiresAt: claim.expiresAt + 1 });
    const bytes = crypto.getRandomValues(new Uint8Array(32));
    const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [
      "sign",
    ]);
    const signed = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(text));
    const signature = btoa(String.fromCharCode(...new Uint8Array(signed)))
      .replaceAll("+", "-")
      .replaceAll("/", "_")
      .replaceAll("=", "");
    expect(await post(`${text}.${signature}`, PAID)).toMatchObject(refused);
    await done();
  });

  test("BODY-1 DEFER-3 hostile bodies change no state", async () => {
    const { handle, done } = await waiting();
    const bodies: [string, number][] = [
      [JSON.stringify({ result: "x".repeat(10 * 1024 * 1024) }), 413],
      [JSON.stringify({ result: "x".repeat(1024 * 1024) }), 413],
      ['{"result": 1, "error": {"message": "both"}}', 422],
      ["{}", 422],
      ["[]", 422],
      ['{"__proto__": {"result": 1}}', 422],
      ['{"result": 1, "constructor": 2}', 422],
      ['{"error": {"message": "x", "code": "NOT_A_CODE"}}', 422],
      ["not json", 400],
      ["", 400],
    ];
    for (const [body, status] of bodies)
      expect((await post(handle, body))[0], body.slice(0, 40)).toBe(status);
    await done();
  });

  test("HANDLE-3 a handle of an unknown conversation leaves no storage, and the conversation can be created", async () => {
    const id = "conv_01JD0000000000000000000003";
    const claim = {
      tenant: "test",
      conversationId: id,
      operationId: "op_01JD0000000000000000000000",
      expiresAt: 9e12,
    };
    const forged = `${claimText(claim)}.${"A".repeat(43)}`;
    const namespace = exports.Conversation;
    const stub = () => namespace.get(namespace.idFromName(`test:${id}`));
    const marked = () => runInDurableObject(stub(), (_, { storage }) => storage.kv.get("marker"));
    await runInDurableObject(stub(), (_, { storage }) => storage.kv.put("marker", true));
    expect(await marked()).toBe(true);
    const answers = await Promise.all([1, 2, 3].map(() => post(forged, PAID)));
    for (const answer of answers) expect(answer).toMatchObject(refused);
    await expect.poll(() => marked()).toBeUndefined();
    await expect(completeOperation(forged, PAID)).rejects.toMatchObject({ code: "NOT_FOUND" });
    await vi.waitFor(
      async () => {
        // SAFETY: the stub is of the class `Conversation`.
        const conversation = stub() as unknown as ConversationApi;
        const principal = { tenant: "test", subject: "ada", roles: [] };
        expect(await conversation.create(principal, { id, agentId: buyer })).toMatchObject({ ok: true });
      },
      { timeout: 20_000 },
    );
    expect(await post(forged, PAID)).toMatchObject(refused);
    await runInDurableObject(stub(), (_, { storage }) => storage.kv.put("marker", true));
    expect(await post(forged, PAID)).toMatchObject(refused);
    expect(await marked()).toBe(true);
  });

  test("HANDLE-1 the handle gives access only to its operation", async () => {
    const { conversation, handle, done } = await waiting();
    for (const path of [conversation.path, `${conversation.path}/messages`]) {
      const response = await exports.default.fetch(
        new Request(`http://elsewhere.test${path}`, { headers: { authorization: `Bearer ${handle}` } }),
      );
      expect(response.status).toBe(401);
    }
    await done();
  });
});
