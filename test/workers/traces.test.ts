/** Traces of turns by HTTP, on the real Worker: the spans of all actors that a turn reached, in one answer. */
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import type { SpanView, TraceView } from "../../src/protocol/trace.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { postTool } from "./authoring.ts";
import { Play, spansOf } from "./provider.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

let helper: string;
let lead: string;
let manager: string;

const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
const identity = (systemPrompt: string) => ({ systemPrompt, modelProfileId: "test/scripted" });

const tool = (id: string, target: object, more?: object) => postTool("traces", id, target, more);

beforeAll(async () => {
  helper = await createAgent({ identity: identity("You are the helper.") });
  const toolIds = [await tool("ask_helper", { agent: helper }), "test/double"];
  lead = await createAgent({ identity: identity("You are the lead."), tools: { toolIds } });
  manager = await createAgent({
    identity: identity("You are the manager."),
    tools: {
      toolIds: [
        await tool("ask_lead", { agent: lead }),
        await tool(
          "ask_again",
          { agent: helper },
          { effect: "idempotent", retry: { maxAttempts: 2, backoffMs: 10 } },
        ),
        await tool("ask_nobody", { agent: "nobody-there" }),
        await tool("invite_helper", { agent: helper, mode: "loop_in" }),
      ],
    },
  });
});

afterEach(checkInvariants);

async function traceOf({ path }: TestConversation, turnId: string): Promise<TraceView> {
  const response = await request(`${path}/turns/${turnId}/trace`);
  expect(response.status).toBe(200);
  return response.json<TraceView>();
}

/** Returns the tokens that the providers counted, of all spans. */
function tokensOf(spans: readonly SpanView[]): number {
  const of = (name: string) => spans.reduce((sum, span) => sum + Number(span.attributes[name] ?? 0), 0);
  return of("gen_ai.usage.input_tokens") + of("gen_ai.usage.output_tokens");
}

/** Returns the names of the spans above a span, from the root down. */
function pathTo(spans: readonly SpanView[], { name, parentSpanId }: SpanView): string[] {
  const parent = spans.find(({ spanId }) => spanId === parentSpanId);
  return parent === undefined ? [name] : [...pathTo(spans, parent), name];
}

/** A manager that asks the lead, who calls a tool and asks the helper. */
function tree(gate: { gate: string }[] = []) {
  const bottom = new Play({ replies: [[...gate, { text: "Top secret." }, { usage }]] });
  const middle = new Play({
    replies: [
      [{ call: "double", input: { n: 21 } }, { usage }],
      [{ call: "ask_helper", input: { message: bottom.content } }, { usage }],
      [{ text: "The lead knows." }, { usage }],
    ],
  });
  const replies = [
    [{ call: "ask_lead", input: { message: middle.content } }, { usage }],
    [{ text: "Done." }, { usage }],
  ];
  return { bottom, replies };
}

test("G17 TRACES-1 TRACEREAD-1 one trace over three actors: each span below its cause, and the tokens equal the ledger's tokens", async () => {
  const conversation = await createConversation(manager);
  const { turnId } = await conversation.play({ replies: tree().replies });
  const turn = await conversation.ended(turnId);
  const { traceId, spans, partial } = await traceOf(conversation, turnId);
  expect(traceId).toMatch(/^[0-9a-f]{32}$/);
  expect(partial).toBe(false);
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  expect(new Set(spans.map(({ attributes }) => attributes["gen_ai.conversation.id"])).size).toBe(3);
  expect(spans.filter(({ parentSpanId }) => parentSpanId === undefined)).toHaveLength(1);
  expect(tokensOf(spans)).toBe(turn.spent.tokens);
  expect(turn.spent.tokens).toBe(6 * usage.total_tokens);

  const chats = spans.filter(({ attributes }) => attributes["gen_ai.operation.name"] === "chat");
  expect(chats).toHaveLength(6);
  const [doubled] = spans.filter(({ name }) => name === "execute_tool double");
  const [top, call, work, tool] = doubled === undefined ? [] : pathTo(spans, doubled);
  expect([top, call, work, tool]).toEqual([
    `invoke_agent ${manager}`,
    `invoke_agent ${lead}`,
    `invoke_agent ${lead}`,
    "execute_tool double",
  ]);
  const depths = spans
    .filter(({ name }) => name.startsWith("chat"))
    .map((span) => pathTo(spans, span).length);
  expect(Math.max(...depths), "the helper's model call, below two calls").toBeGreaterThanOrEqual(6);
  expect(JSON.stringify(spans)).not.toMatch(/Top secret|The lead knows|You are/);
  expect(spans.map(({ startedAt }) => startedAt)).toEqual(spans.map(({ startedAt }) => startedAt).toSorted());
});

test("G17 TRACEREAD-1 TRACEREAD-2 SPANS-6 while agents work, the trace has the finished and the open spans; after a crash it continues with the same ids", async () => {
  const conversation = await createConversation(manager);
  const { bottom, replies } = tree([{ gate: "work" }]);
  const { turnId } = await conversation.play({ replies });
  await bottom.reached("work");
  const before = await traceOf(conversation, turnId);
  expect(before.spans.map(({ name }) => name)).toContain("execute_tool double");
  const isOpen = ({ open }: SpanView) => open === true;
  const open = before.spans.filter(isOpen);
  const named = open.map(({ name, kind }) => `${kind} ${name.replace(/^chat .*/, "chat")}`);
  expect(named.sort()).toEqual(
    [
      ...[`client invoke_agent ${lead}`, `client invoke_agent ${helper}`, `internal invoke_agent ${helper}`],
      "client chat",
    ].sort(),
  );
  for (const { startedAt, endedAt } of open) expect(endedAt >= startedAt).toBe(true);
  await crash();
  await bottom.open("work");
  await conversation.wake();
  await conversation.ended(turnId);
  const after = await traceOf(conversation, turnId);
  expect(after.traceId).toBe(before.traceId);
  for (const span of before.spans.filter((one) => !isOpen(one))) expect(after.spans).toContainEqual(span);
  expect(after.spans.map(({ spanId }) => spanId)).toEqual(
    expect.arrayContaining(open.map(({ spanId }) => spanId)),
  );
  expect(after.spans.filter(isOpen)).toEqual([]);
});

test("G17 TRACEREAD-1 the turn of an invited agent is part of the trace, for a request of any of its turns", async () => {
  const conversation = await createConversation(manager);
  const invited = new Play({ replies: [[{ text: "I am here." }, { usage }]] });
  const { turnId } = await conversation.play({
    replies: [
      [{ call: "invite_helper", input: { message: invited.content } }, { usage }],
      [{ text: "It is here." }, { usage }],
    ],
  });
  const turns = await vi.waitFor(async () => {
    const response = await request(`${conversation.path}/turns`);
    const { turns } = await response.json<{ turns: { id: string; agentId: string; status: string }[] }>();
    expect(turns.map(({ status }) => status)).toEqual(["completed", "completed"]);
    return turns;
  }, 10_000);
  const other = await conversation.play({ replies: [[{ text: "Something else." }, { usage }]] });
  await conversation.ended(other.turnId);
  const guest = turns.find(({ agentId }) => agentId === helper)?.id ?? "";
  const trace = await traceOf(conversation, turnId);
  expect(await traceOf(conversation, guest)).toEqual(trace);
  const agents = new Set(trace.spans.map(({ attributes }) => attributes["dramatis.turn.id"]));
  expect(agents).toEqual(new Set([turnId, guest]));
  expect(tokensOf(trace.spans)).toBe(3 * usage.total_tokens);
  expect((await traceOf(conversation, other.turnId)).traceId).not.toBe(trace.traceId);
});

test("G17 TRACEREAD-2 below a trace from outside it has the spans that a collector gets, no more and no fewer", async () => {
  const conversation = await createConversation(manager);
  const outside = `7e57${crypto.randomUUID().replaceAll("-", "").slice(4)}`;
  const response = await request(`${conversation.path}/turns`, {
    method: "POST",
    headers: { "content-type": "application/json", traceparent: `00-${outside}-00f067aa0ba902b7-01` },
    body: JSON.stringify({ content: new Play({ replies: tree().replies }).content }),
  });
  const { turnId } = await response.json<{ turnId: string }>();
  await conversation.ended(turnId);
  const { traceId, spans } = await traceOf(conversation, turnId);
  expect(traceId).toBe(outside);
  const own = spans.map(({ spanId, parentSpanId, name, startedAt, endedAt, attributes }) => ({
    ...{ spanId, parentSpanId, name },
    times: [startedAt, endedAt].map((time) => Date.parse(time)),
    attributes: Object.keys(attributes).toSorted(),
  }));
  const sent = (await spansOf(traceId, spans.length)).map(
    ({ spanId, parentSpanId, name, startTimeUnixNano, endTimeUnixNano, attributes }) => ({
      ...{ spanId, parentSpanId, name },
      times: [startTimeUnixNano, endTimeUnixNano].map((time) => Number(BigInt(time) / 1_000_000n)),
      attributes: attributes.map(({ key }) => key).toSorted(),
    }),
  );
  const byId = (a: { spanId: string }, b: { spanId: string }) => a.spanId.localeCompare(b.spanId);
  expect(own.toSorted(byId)).toEqual(sent.toSorted(byId));
});

test("G17 TRACES-1 each attempt of a call is in the trace, below the call", async () => {
  const conversation = await createConversation(manager);
  const broken = { status: 400, message: "No." };
  const child = new Play({ replies: [{ attempts: [broken, [{ text: "Yes." }, { usage }]] }] });
  const { turnId } = await conversation.play({
    replies: [[{ call: "ask_again", input: { message: child.content } }], [{ text: "At last." }]],
  });
  expect((await conversation.ended(turnId)).answer).toBe("At last.");
  const { spans } = await traceOf(conversation, turnId);
  const work = spans.filter(({ name, kind }) => name === `invoke_agent ${helper}` && kind === "internal");
  expect(work.map(({ attributes }) => attributes["dramatis.turn.status"])).toEqual(["failed", "completed"]);
  expect(new Set(work.map(({ parentSpanId }) => parentSpanId)).size).toBe(1);
  expect(new Set(work.map(({ attributes }) => attributes["gen_ai.conversation.id"])).size).toBe(2);
});

test("G17 TRACES-2 a call that reached no agent leaves its own span, with the error; the trace is complete", async () => {
  const conversation = await createConversation(manager);
  const { turnId } = await conversation.play({
    replies: [[{ call: "ask_nobody", input: { message: "Hello?" } }], [{ text: "Nobody." }]],
  });
  await conversation.ended(turnId);
  const { spans, partial } = await traceOf(conversation, turnId);
  expect(spans.find(({ name }) => name === "invoke_agent nobody-there")).toMatchObject({
    error: "NOT_FOUND",
  });
  expect(partial).toBe(false);
});

test("G17 a trace is only for readers of the conversation", async () => {
  const eve: Principal = { subject: "eve", tenant: "test", roles: ["member"] };
  const conversation = await createConversation(manager);
  const { turnId } = await conversation.play({ replies: [[{ text: "Hi." }]] });
  await conversation.ended(turnId);
  const path = `${conversation.path}/turns/${turnId}/trace`;
  expect((await request(path, {}, eve)).status).toBe(404);
  const other = await createConversation(manager);
  expect((await request(`${other.path}/turns/${turnId}/trace`)).status).toBe(404);
});
