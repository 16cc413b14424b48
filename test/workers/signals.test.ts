/** Signals from outside, on the real Worker: over HTTP, by RPC, and their queue on the real alarms. */
import { afterEach, beforeAll, expect, test } from "vitest";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { ConversationView } from "../../src/protocol/conversation-schemas.ts";
import type { AcceptedSignal } from "../../src/protocol/signal-schemas.ts";
import type { SignalResult } from "../../src/protocol/signals.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { Play } from "./provider.ts";
import { checkInvariants, createAgent, createConversation, request, type TestConversation } from "./world.ts";

const ADA: Principal = { subject: "ada", tenant: "test", roles: ["admin"] };
const MESSAGE = "conversation.user.message";

let plain: string;
let correlating: string;
let offline: string;

beforeAll(async () => {
  plain = await createAgent("test/plain");
  offline = await createAgent({ identity: { systemPrompt: "Test." } });
  correlating = await createAgent({
    identity: { systemPrompt: "Test.", modelProfileId: "test/scripted" },
    tools: { toolIds: ["test/correlation"] },
  });
});

afterEach(checkInvariants);

async function send<Body>({ path }: TestConversation, body: unknown): Promise<[status: number, body: Body]> {
  const response = await request(`${path}/signals`, { method: "POST", body: JSON.stringify(body) });
  return [response.status, await response.json<Body>()];
}

async function patch({ path }: TestConversation, body: object): Promise<ConversationView> {
  const response = await request(path, { method: "PATCH", body: JSON.stringify(body) });
  expect(response.status).toBe(200);
  return response.json<ConversationView>();
}

const rpc = ({ stub }: TestConversation) => stub as unknown as ConversationApi;
const messages = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ type: MESSAGE, data: { content: `message ${index}` } }));

test("E1 E2 a signal of another type, or with a wrong envelope, is refused with its reason, over HTTP and by RPC, and is not stored", async () => {
  const conversation = await createConversation(plain);
  const before = await conversation.journal();
  const data = { content: "Hello" };
  const refused = [
    ["external_type_not_allowed", { type: "conversation.tool.completed", data }],
    ["reserved_type", { type: "conversation.cmd.drain", data }],
    ["missing_data_envelope", { type: MESSAGE, data, content: "flat" }],
    ["invalid_data", { type: MESSAGE, data: { ...data, more: 1 } }],
    ["invalid_meta", { type: MESSAGE, data, meta: 1 }],
  ] as const;
  for (const [reason, signal] of refused) {
    const error = { code: "INVALID_SIGNAL", errors: [{ path: "", message: reason }] };
    expect(await send(conversation, signal)).toEqual([400, expect.objectContaining(error)]);
    expect(await rpc(conversation).ingest(ADA, signal)).toMatchObject({
      ok: true,
      value: [{ ok: false, error }],
    });
  }
  expect(await conversation.journal()).toEqual(before);
});

test("E3 E4 a message's correlation id is on its turn, its entries, its calls and in its tool's context; the same signal again is a no-op", async () => {
  const conversation = await createConversation(correlating);
  const { content } = new Play({ replies: [[{ call: "correlation", input: {} }], [{ text: "Done." }]] });
  const signal = { id: "one", type: MESSAGE, data: { content }, meta: { correlation_id: "order-7" } };
  const [, accepted] = await send<AcceptedSignal>(conversation, signal);
  const turnId = "turnId" in accepted ? accepted.turnId : "";
  await conversation.ended(turnId);
  const turn = await conversation.turn(turnId);
  expect(turn.correlationId).toBe("order-7");
  expect(turn.moves[0]?.toolResult?.result).toEqual({
    correlationId: "order-7",
    traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
  });
  expect(turn.calls.map(({ requestMetadata }) => requestMetadata)).toEqual([
    { correlationId: "order-7" },
    { correlationId: "order-7" },
  ]);
  const journal = await conversation.journal();
  const ofTurn = journal.filter((entry) => entry.turnId === turnId);
  expect(new Set(ofTurn.map(({ correlationId }) => correlationId))).toEqual(new Set(["order-7"]));
  expect(await send(conversation, signal)).toEqual([202, { ...accepted, repeated: true }]);
  expect(await conversation.journal()).toEqual(journal);
  const other = { ...signal, meta: { correlation_id: "order-8" } };
  expect(await send(conversation, other)).toMatchObject([202, { repeated: false, correlationId: "order-8" }]);
});

test("E3 a message without a correlation id gets an id, and a stop does, too", async () => {
  const conversation = await createConversation(plain);
  const [status, accepted] = await send<AcceptedSignal>(conversation, messages(1)[0]);
  expect([status, accepted.status]).toEqual([202, "started"]);
  const turnId = "turnId" in accepted ? accepted.turnId : "";
  await conversation.ended(turnId);
  const { correlationId } = await conversation.turn(turnId);
  expect(correlationId).toMatch(/^corr-[0-9a-f]{20}$/);
  expect(accepted.correlationId).toBe(correlationId);
  const [, stopped] = await send<AcceptedSignal>(conversation, { id: "s", type: "conversation.cancel" });
  expect(stopped).toEqual({ status: "applied", correlationId: expect.stringMatching(/^corr-[0-9a-f]{20}$/) });
  expect((await conversation.journal()).at(-1)).toMatchObject({
    type: "conversation.cancelled",
    correlationId: stopped.correlationId,
    causeId: "s",
  });
});

test("E6 a batch of 200 messages begins in order, 128 at once and the others by the actor's own wake-ups; more exceed the rate of turns", async () => {
  const conversation = await createConversation(plain);
  expect(await patch(conversation, { orchestration: false })).toMatchObject({ orchestration: false });
  const [status, { results }] = await send<{ results: SignalResult[] }>(conversation, messages(250));
  expect([status, results.length]).toEqual([200, 250]);
  const of = (wanted: string) =>
    results.filter((result) => result.ok && result.value.status === wanted).length;
  expect(of("started")).toBe(128);
  const refused = results.filter((result) => !result.ok);
  expect(refused.length).toBe(250 - 128 - of("queued"));
  expect(results.at(-1)).toMatchObject({ ok: false, error: { code: "RATE_LIMITED" } });
  await expect.poll(async () => (await conversation.view()).queued).toBeUndefined();
  const said = await conversation.messages();
  expect(said.map(({ content }) => content)).toEqual(
    messages(250 - refused.length).map(({ data }) => data.content),
  );
});

test("SIGQUEUE-1 queued messages begin as the turns before them end, until all have ended", async () => {
  const conversation = await createConversation(offline);
  await patch(conversation, { turns: "queued" });
  await send(conversation, messages(100));
  await expect
    .poll(async () => (await conversation.messages()).filter(({ role }) => role === "agent").length, {
      timeout: 20_000,
    })
    .toBe(100);
});

test("E24 without orchestration no model is called, and afterwards it sees the earlier messages", async () => {
  const conversation = await createConversation(plain);
  await patch(conversation, { orchestration: false });
  const client = await conversation.connect();
  const [, silent] = await send<AcceptedSignal>(conversation, messages(1)[0]);
  const turnId = "turnId" in silent ? silent.turnId : "";
  expect(await conversation.turn(turnId)).toMatchObject({ status: "completed", calls: [], answer: null });
  await patch(conversation, { orchestration: true });
  const { play } = await conversation.play({ replies: [[{ text: "Both seen." }]] });
  const [asked] = await play.requests(1);
  expect(asked?.body.messages.slice(1, 2)).toEqual([{ role: "user", content: "message 0" }]);
  await client.until(({ conversation: state }) => state?.orchestration === undefined);
});
