/** The life of a conversation on the real Worker: it waits, it ends for good, and it rejects later messages. */
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { checkInvariants, createAgent, createConversation, request, type TestConversation } from "./world.ts";

let plain: string;
let buyer: string;

beforeAll(async () => {
  plain = await createAgent("test/plain");
  buyer = await createAgent("test/buyer");
});

afterEach(checkInvariants);

const OPERATOR: Principal = { subject: "olga", tenant: "test", roles: ["operator"] };

/** The status and the body of a request below the conversation's path. */
async function ask(
  { path }: TestConversation,
  method: string,
  below: string,
  body: object = {},
  principal?: Principal,
): Promise<[number, { code?: string; status?: string; turnId?: string }]> {
  const response = await request(path + below, { method, body: JSON.stringify(body) }, principal);
  return [response.status, await response.json()];
}

/** The status in the snapshot of a new connection. */
async function snapshotStatus(conversation: TestConversation): Promise<string> {
  const { data } = await (await conversation.connect()).frame("snapshot");
  return data.conversation.status;
}

describe("a conversation", () => {
  test("A23 LIFE-1 LIFE-2 waits while its only turn waits for a deferred result, and clients follow", async () => {
    const conversation = await createConversation(buyer);
    const client = await conversation.connect();
    const { play } = await conversation.play((key) => ({
      replies: [[{ call: "pay", input: { key } }], [{ text: "Paid." }]],
    }));
    const [run] = await play.runs(1);
    await client.frame("conversation.updated", ({ data }) => data.status === "waiting");
    expect((await conversation.view()).status).toBe("waiting");
    expect(await snapshotStatus(conversation)).toBe("waiting");
    await conversation.evict();
    expect((await conversation.view()).status).toBe("waiting");
    // SAFETY: the tools of the test library report it.
    const { handle } = (run ?? expect.fail("no run")).input as { handle: string };
    const paid = { method: "POST", body: JSON.stringify({ result: 1 }) };
    expect((await request(`/api/operations/${handle}/result`, paid)).status).toBe(200);
    await client.frame("turn.completed");
    await client.until(({ conversation: view }) => view?.status === "active");
    expect(client.framesOf("conversation.updated").map(({ data }) => data.status)).toEqual([
      "waiting",
      "active",
    ]);
  });

  test("B3 A23 NAMES-1 the names of the designs find the entries that our names find", async () => {
    const conversation = await createConversation(buyer);
    const { play } = await conversation.play((key) => ({
      replies: [[{ call: "pay", input: { key } }], [{ text: "Paid." }]],
    }));
    const [run] = await play.runs(1);
    await expect.poll(async () => (await conversation.view()).status).toBe("waiting");
    const found = async (names: string): Promise<[number, unknown[]]> => {
      const response = await request(`${conversation.path}/journal?type=${names}`);
      const { entries = [], errors } = await response.json<{
        entries?: { type: string }[];
        errors?: unknown[];
      }>();
      return [response.status, errors ?? entries.map(({ type }) => type)];
    };
    expect(await found(",".repeat(50))).toEqual([
      422,
      [expect.objectContaining({ message: "Give at most 50 types." })],
    ]);
    const waiting = [200, ["turn.waiting"]];
    const names = ["", "_FOR_TASK", "_FOR_WORKFLOW", "_FOR_AGENT"].map((end) => `MARK_WAITING${end}`);
    for (const name of ["turn.waiting", "turn_waiting", ...names])
      expect([name, await found(name)]).toEqual([name, waiting]);
    for (const name of ["tool.invoked", "DISPATCH_TASK", "conversation.tool.requested"])
      expect([name, await found(name)]).toEqual([name, [200, ["tool.requested"]]]);
    expect(await found("conversation_started,conversation_turn")).toEqual([
      200,
      ["conversation.started", "turn.started"],
    ]);
    expect(await found("TRACK_ASYNC_OPERATION")).toEqual([200, ["tool.requested", "tool.deferred"]]);
    for (const name of ["DISPATCH_AGENT", "DISPATCH_WORKFLOW"])
      expect([name, await found(name)]).toEqual([name, [200, []]]);
    for (const name of ["workflow_started", "workflow_completed", "workflow_failed"])
      expect([name, await found(name)]).toEqual([name, [200, []]]);
    expect(await found("MARK_WAITING_FOR_RAIN")).toMatchObject([422, [{ path: "/type/0" }]]);
    // SAFETY: the tools of the test library report it.
    const { handle } = (run ?? expect.fail("no run")).input as { handle: string };
    const paid = { method: "POST", body: JSON.stringify({ result: 1 }) };
    expect((await request(`/api/operations/${handle}/result`, paid)).status).toBe(200);
  });

  test("A25 LIFE-3 LIFE-4 is ended over HTTP: its turn stops, all clients see it, and it refuses later messages", async () => {
    const conversation = await createConversation(plain);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play({ replies: [[{ text: "Half" }, { gate: "never" }]] });
    await play.reached("never");
    expect(await ask(conversation, "POST", "/complete", {}, OPERATOR)).toMatchObject([
      403,
      { code: "FORBIDDEN" },
    ]);
    expect(await ask(conversation, "POST", "/complete", { why: 1 })).toMatchObject([
      422,
      { code: "INVALID_INPUT" },
    ]);

    const ended = await ask(conversation, "POST", "/complete", { reason: "Done." });
    expect(ended).toMatchObject([200, { status: "completed", gate: "idle" }]);
    expect(await ask(conversation, "POST", "/complete")).toEqual(ended);
    expect((await play.closes(1)).length).toBe(1);
    await client.frame("conversation.updated", ({ data }) => data.status === "completed");
    await client.until(({ turns }) => turns.some(({ id, status }) => id === turnId && status === "failed"));
    expect(client.state.conversation).toMatchObject({ status: "completed", gate: "idle" });

    const closed = [409, { code: "CONVERSATION_CLOSED" }];
    await conversation.evict();
    expect(await ask(conversation, "POST", "/turns", { content: "One more" })).toMatchObject(closed);
    expect(await ask(conversation, "POST", "/cancel")).toMatchObject(closed);
    expect(await ask(conversation, "POST", "/resume")).toMatchObject(closed);
    expect(await ask(conversation, "PATCH", "", { turns: "queued" })).toMatchObject(closed);
    expect(await ask(conversation, "POST", "/attachments?name=a.txt")).toMatchObject(closed);
    const message = { type: "conversation.user.message", data: { content: "One more" } };
    const [, batch] = await ask(conversation, "POST", "/signals", Array(130).fill(message));
    expect(batch).toMatchObject({
      results: Array(130).fill({ ok: false, error: { code: "CONVERSATION_CLOSED" } }),
    });
    client.send({ type: "turn.start", id: "late", content: "One more" });
    await client.frame("error", ({ data }) => data.code === "CONVERSATION_CLOSED" && data.ref === "late");
    expect((await conversation.messages()).map(({ content }) => content)).toEqual([play.content, "Half"]);
    expect(await snapshotStatus(conversation)).toBe("completed");
    expect((await conversation.journal()).at(-1)).toMatchObject({
      type: "conversation.ended",
      data: { status: "completed", by: { type: "user", userId: "ada" }, reason: "Done." },
    });
  });

  test("A25 LIFE-4 answers a repeated message after its end, and is ended by RPC", async () => {
    const conversation = await createConversation(plain);
    const said = { content: "", idempotencyKey: "k" };
    const { play, turnId } = await conversation.play(
      { replies: [[{ text: "Done." }]] },
      { idempotencyKey: "k" },
    );
    await conversation.ended(turnId);
    // SAFETY: the class has these methods; the type of a stub wraps what they return.
    const api = conversation.stub as unknown as ConversationApi;
    const principal: Principal = { subject: "ada", tenant: "test", roles: ["member"] };
    expect(await api.complete(principal)).toMatchObject({ ok: true, value: { status: "completed" } });
    const again = await ask(conversation, "POST", "/turns", { ...said, content: play.content });
    expect(again).toMatchObject([202, { turnId }]);
    expect(await ask(conversation, "POST", "/turns", { ...said, content: "Other" })).toMatchObject([
      409,
      { code: "IDEMPOTENCY_CONFLICT" },
    ]);
    expect(await api.startTurn(principal, { content: "One more" })).toMatchObject({
      ok: false,
      error: { code: "CONVERSATION_CLOSED", retriable: false },
    });
    const elsewhere = { ...principal, tenant: "elsewhere" };
    expect(await api.complete(elsewhere)).toMatchObject({ ok: false, error: { code: "NOT_FOUND" } });
  });

  test("STOP-2 that is stopped says in its answer to a message that the turn has failed, also when it is repeated", async () => {
    const conversation = await createConversation(plain);
    await ask(conversation, "POST", "/cancel");
    const body = { content: "Hello?", idempotencyKey: "k" };
    const [status, refused] = await ask(conversation, "POST", "/turns", body);
    expect([status, refused]).toMatchObject([202, { status: "failed" }]);
    expect(await ask(conversation, "POST", "/turns", body)).toEqual([202, refused]);
    await ask(conversation, "POST", "/resume");
    const [, accepted] = await ask(conversation, "POST", "/turns", { content: "Hello" });
    expect(accepted).not.toHaveProperty("status");
  });
});
