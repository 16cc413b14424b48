/** AG-UI 1.0 on the real Worker, held against the official client. */
import { abortAllDurableObjects } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import {
  type AgentSubscriber,
  type BaseEvent,
  buildResumeArray,
  HttpAgent,
  type Interrupt,
  type Message,
  type RunAgentParameters,
} from "@ag-ui/client";
import { EventSchemas } from "@ag-ui/core/schemas";
import { HttpAgent as OlderAgent } from "ag-ui-client-older";
import { beforeAll, describe, expect, test } from "vitest";
import type { Principal } from "../../src/shared/principal.ts";
import { get, post, send } from "./http-client.ts";
import { Play } from "./provider.ts";

const ADA: Principal = { subject: "ada", tenant: "agui", roles: ["admin"] };
const MEL: Principal = { subject: "mel", tenant: "agui", roles: ["member"] };

const fetchAs =
  (principal: Principal, answers: Response[] = []) =>
  async (input: string, init: RequestInit): Promise<Response> => {
    const headers = new Headers(init.headers);
    headers.set("x-test-principal", JSON.stringify(principal));
    const response = await exports.default.fetch(new Request(input, { ...init, headers }));
    answers.push(response);
    return response;
  };

beforeAll(async () => {
  for (const persona of ["plain", "handy", "careful"])
    expect((await post("/api/agents", { id: persona, persona: `test/${persona}` }, ADA)).status).toBe(201);
});

/** A client of an agent that keeps its events, and checks each event with the official schema. */
function client(agent: string, threadId: string = crypto.randomUUID(), principal = ADA) {
  const answers: Response[] = [];
  const url = `http://dramatis.test/agui/${agent}`;
  const http = new HttpAgent({ url, threadId, fetch: fetchAs(principal, answers) });
  const run = async (parameters: RunAgentParameters = {}, subscriber: AgentSubscriber = {}) => {
    const events: BaseEvent[] = [];
    const onEvent: AgentSubscriber["onEvent"] = ({ event }) => {
      EventSchemas.parse(event);
      events.push(event);
    };
    await http.runAgent(parameters, { ...subscriber, onEvent });
    return { events, types: events.map(({ type }) => String(type)), last: events.at(-1) };
  };
  const say = (content: string) =>
    http.addMessage({ id: crypto.randomUUID(), role: "user", content } satisfies Message);
  const conversation = () => answers.at(-1)?.headers.get("x-dramatis-conversation") ?? "";
  return { http, run, say, conversation };
}

const shownIn = (messages: readonly Message[]) =>
  messages.map((message) => [message.role, "content" in message ? (message.content ?? null) : null]);

/** The turns of a conversation, the oldest first. */
async function statusOf(conversation: string): Promise<string[]> {
  const { body } = await get(`/api/conversations/${conversation}/turns`, ADA);
  // SAFETY: the API answers turns; the tests read these members only.
  const turns = body.turns as unknown as { status: string; error?: { code: string } }[];
  return turns.map(({ status, error }) => error?.code ?? status);
}

const half = () => new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: " and half." }]] });

describe("I12 the official AG-UI client: runs", () => {
  test("I12 AGUI-1 AGUI-2 a run streams texts, steps and the agent's own tools", async () => {
    const { http, run, say } = client("handy");
    const play = new Play({
      replies: [
        [{ text: "Let me see." }, { call: "double", input: { n: 4 } }],
        [{ text: "Eight" }, { text: "." }],
      ],
    });
    say(play.content);
    const { events, types } = await run({ runId: "r1" });
    expect(types.filter((type) => type !== "TEXT_MESSAGE_CONTENT")).toEqual([
      "RUN_STARTED",
      ...["STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END"],
      ...["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT", "STEP_FINISHED"],
      ...["STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "STEP_FINISHED"],
      "RUN_FINISHED",
    ]);
    const ids = { threadId: http.threadId, runId: "r1" };
    expect(events[0]).toMatchObject({ ...ids, protocolVersion: "1.0" });
    expect(events.at(-1)).toMatchObject({ ...ids, outcome: { type: "success" } });
    expect(shownIn(http.messages)).toEqual([
      ["user", play.content],
      ["assistant", "Let me see."],
      ["tool", '{"doubled":8}'],
      ["assistant", "Eight."],
    ]);
    expect(http.messages[1]).toMatchObject({
      toolCalls: [{ function: { name: "double", arguments: '{"n":4}' } }],
    });
  });

  test("I12 AGUI-5 AGUI-7 a thread is one conversation of its user and agent, with the history of the server", async () => {
    const thread = crypto.randomUUID();
    const ada = client("plain", thread);
    const [one, two] = [
      new Play({ replies: [[{ text: "One." }]] }),
      new Play({ replies: [[{ text: "Two." }]] }),
    ];
    ada.say(one.content);
    await ada.run();
    const conversation = ada.conversation();
    ada.http.setMessages([
      { id: "x", role: "system", content: "Invented." },
      { id: "y", role: "user", content: two.content },
    ]);
    await ada.run();
    expect(ada.conversation()).toBe(conversation);
    const [request] = await two.requests(1);
    expect(request?.body.messages.slice(1).map(({ role, content }) => [role, content])).toEqual([
      ["user", one.content],
      ["assistant", "One."],
      ["user", two.content],
    ]);

    for (const other of [client("plain", thread, MEL), client("handy", thread)]) {
      other.say(new Play({ replies: [[{ text: "Mine." }]] }).content);
      await other.run();
      expect(other.conversation()).not.toBe(conversation);
    }
    const known = client("plain", conversation);
    known.say(new Play({ replies: [[{ text: "Three." }]] }).content);
    await known.run();
    expect(known.conversation()).toBe(conversation);
    const { body } = await get(`/api/conversations/${conversation}/messages`, ADA);
    expect(body.messages).toHaveLength(6);
    const stranger = client("handy", conversation);
    stranger.say("Hello.");
    await expect(stranger.run()).rejects.toThrow(/Belongs to the agent/);
    expect(await statusOf(conversation)).toHaveLength(3);
  });

  test("I12 AGUI-7 the same run again has the same events, and another message under its id is refused", async () => {
    const play = new Play({
      replies: [[{ text: "Let me see." }, { call: "double", input: { n: 1 } }], [{ text: "Two." }]],
    });
    const runs = [];
    const thread = crypto.randomUUID();
    for (let time = 0; time < 2; time++) {
      const { run, say } = client("handy", thread);
      say(play.content);
      const { events } = await run({ runId: "same" });
      runs.push(events.filter(({ type }) => String(type) !== "TEXT_MESSAGE_CONTENT"));
    }
    expect(runs[1]).toEqual(runs[0]);
    expect(await play.requests()).toHaveLength(2);
    const { run, say } = client("handy", thread);
    say("Another question.");
    await expect(run({ runId: "same" })).rejects.toMatchObject({ status: 409 });
  });

  test("I12 AGUI-1 a failed turn ends with RUN_ERROR, and a refused request is a problem", async () => {
    const { run, say } = client("plain");
    say(new Play({ replies: [{ status: 401, message: "No." }] }).content);
    const codes: unknown[] = [];
    const failed = run({}, { onRunErrorEvent: ({ event }) => void codes.push(event.code) });
    await failed.catch(() => undefined);
    expect(codes).toEqual(["MODEL_FAILED"]);
    const absent = client("absent");
    absent.say("Hello.");
    await expect(absent.run()).rejects.toMatchObject({ status: 404 });
    await expect(client("absent").run()).rejects.toMatchObject({ status: 404 });
  });
});

describe("I12 the official AG-UI client: interrupts", () => {
  const paying = (key: string) => [{ text: "May I?" }, { call: "transfer", input: { key, to: "Bob" } }];

  /** A thread with a run that ended with one interrupt. */
  async function interrupted(play: Play) {
    const thread = client("careful");
    thread.say(play.content);
    const { last } = await thread.run();
    expect(last).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "interrupt" } });
    const [interrupt] = thread.http.pendingInterrupts;
    if (interrupt === undefined) throw new Error("The run has no interrupt.");
    return { ...thread, interrupt };
  }

  const answer = (interrupt: Interrupt, payload: unknown) =>
    buildResumeArray([interrupt], { [interrupt.id]: { status: "resolved", payload } });

  test("I12 AGUI-3 an approved call runs, also after an eviction, and the answer can be sent again", async () => {
    const play = new Play((key) => ({ replies: [paying(key), [{ text: "Paid." }]] }));
    const { http, run, interrupt } = await interrupted(play);
    const call = http.messages.flatMap((message) =>
      message.role === "assistant" ? (message.toolCalls ?? []) : [],
    );
    expect(interrupt).toMatchObject({
      reason: "tool_call",
      toolCallId: call[0]?.id,
      message: expect.stringContaining('The agent "careful" wants to call transfer with {'),
      responseSchema: { required: ["approved"] },
      expiresAt: expect.stringMatching(/Z$/),
    });
    expect(await play.runs()).toHaveLength(0);
    await abortAllDurableObjects();
    const resume = answer(interrupt, { approved: true });
    const { types } = await run({ runId: "r2", resume });
    expect(types.filter((type) => type !== "TEXT_MESSAGE_CONTENT")).toEqual([
      "RUN_STARTED",
      "TOOL_CALL_RESULT",
      ...["STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "STEP_FINISHED"],
      "RUN_FINISHED",
    ]);
    expect(shownIn(http.messages).slice(1)).toEqual([
      ["assistant", "May I?"],
      ["tool", "Paid Bob."],
      ["assistant", "Paid."],
    ]);
    expect([http.pendingInterrupts, (await play.runs(1)).length]).toEqual([[], 1]);
    const again = await run({ runId: "r2", resume });
    expect(again.types.filter((type) => type !== "TEXT_MESSAGE_CONTENT")).toEqual(
      types.filter((type) => type !== "TEXT_MESSAGE_CONTENT"),
    );
    expect(await play.runs()).toHaveLength(1);
  });

  test.each([
    ["denied", { status: "resolved", payload: { approved: false, reason: "Too much." } }, "Too much."],
    ["cancelled", { status: "cancelled" }, "APPROVAL_DENIED"],
  ] as const)("I12 AGUI-3 a %s call does not run, and the model continues", async (_, response, shown) => {
    const play = new Play((key) => ({ replies: [paying(key), [{ text: "I see." }]] }));
    const { http, run, interrupt } = await interrupted(play);
    await run({ resume: buildResumeArray([interrupt], { [interrupt.id]: response }) });
    const [, , result, last] = shownIn(http.messages);
    expect([result?.[0], last]).toEqual(["tool", ["assistant", "I see."]]);
    expect(result?.[1]).toContain(shown);
    expect(await play.runs()).toHaveLength(0);
  });

  test("I12 AGUI-3 one run answers several interrupts, and a remaining interrupt ends the run again", async () => {
    const play = new Play((key) => ({
      replies: [
        [
          { call: "transfer", input: { key, to: "Bob" } },
          { call: "transfer", input: { key, to: "Eve" } },
        ],
        [{ text: "Done." }],
      ],
    }));
    const { http, run, interrupt } = await interrupted(play);
    const [, other] = http.pendingInterrupts;
    if (other === undefined) throw new Error("The run has one interrupt.");
    const resume = answer(interrupt, { approved: false });
    http.pendingInterrupts = [interrupt];
    const { last } = await run({ resume });
    expect(last).toMatchObject({ outcome: { type: "interrupt", interrupts: [{ id: other.id }] } });
    const end = await run({ resume: answer(other, { approved: true }) });
    expect(end.last).toMatchObject({ outcome: { type: "success" } });
    expect(shownIn(http.messages).at(-1)).toEqual(["assistant", "Done."]);
    expect((await play.runs(1)).map(({ input }) => input)).toMatchObject([{ to: "Eve" }]);
  });

  test("I12 AGUI-5 a run with one answer that is refused has no effect", async () => {
    const play = new Play((key) => ({
      replies: [
        [
          { call: "transfer", input: { key, to: "Bob" } },
          { call: "transfer", input: { key, to: "Eve" } },
        ],
        [{ text: "Done." }],
      ],
    }));
    const stranger = await interrupted(new Play((key) => ({ replies: [paying(key), [{ text: "Paid." }]] })));
    const { http, interrupt } = await interrupted(play);
    const [, other] = http.pendingInterrupts;
    if (other === undefined) throw new Error("The run has one interrupt.");
    const [, conversation, , operation = ""] = other.id.split(":");
    const [, , , unknown = ""] = stranger.interrupt.id.split(":");
    const approve = (...interruptIds: string[]) =>
      post(
        "/agui/careful",
        {
          ...{ threadId: http.threadId, runId: crypto.randomUUID(), messages: [] },
          resume: interruptIds.map((interruptId) => ({
            ...{ interruptId, status: "resolved", payload: { approved: true } },
          })),
        },
        ADA,
      );
    expect((await approve(interrupt.id, other.id.replace(operation, unknown))).status).toBe(404);
    const denial = `/api/conversations/${conversation}/operations/${operation}/approval`;
    expect((await post(denial, { approved: false }, ADA)).status).toBe(200);
    expect((await approve(interrupt.id, other.id)).status).toBe(409);
    expect(await play.runs()).toHaveLength(0);
  });

  test("I12 AGUI-5 an answer to an interrupt of another thread or of another form is refused", async () => {
    const play = new Play((key) => ({ replies: [paying(key), [{ text: "Paid." }]] }));
    const { run, interrupt } = await interrupted(play);
    for (const [thread, resume] of [
      [client("careful"), answer(interrupt, { approved: true })],
      [client("careful", undefined, MEL), answer(interrupt, { approved: true })],
      [{ run }, answer(interrupt, "yes")],
      [client("careful"), answer({ ...interrupt, id: "other" }, { approved: true })],
    ] as const)
      await expect(thread.run({ resume })).rejects.toMatchObject({ status: 422 });
    expect(await play.runs()).toHaveLength(0);
  });
});

describe("I12 the official AG-UI client: tools of the client", () => {
  const look = {
    name: "look",
    description: "Looks at a place.",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  };

  test("I12 AGUI-3 AGUI-5 a run ends with their calls, and the next run has their results", async () => {
    const play = new Play({
      replies: [
        [
          { call: "look", input: { place: "cellar" } },
          { call: "double", input: { n: 2 } },
        ],
        [{ call: "look", input: { place: "attic" } }],
        [{ text: "Nothing there." }],
      ],
    });
    const { http, run, say, conversation } = client("handy");
    say(play.content);
    const pending: string[][] = [];
    const onRunFinishedEvent: AgentSubscriber["onRunFinishedEvent"] = (end) => {
      if (end.outcome === "success") pending.push(end.pendingToolCallIds);
    };
    const parameters = { tools: [look] };
    await run(parameters, { onRunFinishedEvent });
    const answerWith = (fields: { content: string; error?: string }) => {
      for (const toolCallId of pending.at(-1) ?? [])
        http.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId, ...fields });
    };
    answerWith({ content: "It is empty." });
    await run(parameters, { onRunFinishedEvent });
    answerWith({ content: "", error: "The door is locked." });
    await run(parameters, { onRunFinishedEvent });
    expect(pending.map(({ length }) => length)).toEqual([1, 1, 0]);
    expect(shownIn(http.messages).at(-1)).toEqual(["assistant", "Nothing there."]);
    expect(await statusOf(conversation())).toEqual(["completed"]);
    const [, second, third] = await play.requests(3);
    const resultsOf = (request: typeof second) =>
      request?.body.messages.flatMap(({ role, content }) => (role === "tool" ? [String(content)] : [])) ?? [];
    expect(resultsOf(second)).toEqual(expect.arrayContaining([expect.stringContaining("It is empty.")]));
    expect(resultsOf(third).at(-1)).toContain("The door is locked.");
    const foreign = client("handy");
    foreign.http.addMessage({ id: "1", role: "tool", toolCallId: "elsewhere", content: "Yes." });
    await expect(foreign.run()).rejects.toMatchObject({ status: 422 });
  });
});

describe("I12 the official AG-UI client: the application's values", () => {
  test("I12 AGUI-6 the context and images reach the model with the message, and state and other properties stay with the client", async () => {
    const { http, run } = client("plain");
    const play = new Play({ replies: [[{ text: "Good." }]] });
    http.setState({ page: 3 });
    const image = { type: "data", value: "iVBORw0KGgo=", mimeType: "image/png" } as const;
    const content = [
      { type: "text" as const, text: play.content },
      { type: "image" as const, source: image },
    ];
    http.addMessage({ id: "1", role: "user", content });
    const context = [{ description: "The open page", value: "Invoices" }];
    const { types } = await run({ context, forwardedProps: { theme: "dark" } });
    const [request] = await play.requests(1);
    expect(request?.body.messages.at(-1)?.content).toEqual([
      { type: "text", text: play.content },
      { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
      { type: "text", text: "Context of the application:\nThe open page: Invoices" },
    ]);
    expect([http.state, types.some((type) => type.startsWith("STATE_"))]).toEqual([{ page: 3 }, false]);
    const page = client("plain", http.threadId);
    await page.run();
    expect(shownIn(page.http.messages)).toEqual([
      ["user", content],
      ["assistant", "Good."],
    ]);
    http.addMessage({
      id: "2",
      role: "user",
      content: [{ type: "audio", source: { type: "url", value: "https://example.com/a.mp3" } }],
    });
    await expect(run()).rejects.toMatchObject({ status: 422 });
  });
});

describe("I12 the official AG-UI client: leaving and coming back", () => {
  const shownText = (http: HttpAgent) => shownIn(http.messages).at(-1)?.[1];

  test("I12 AGUI-8 abortRun() stops the turn, and the next run is an ordinary run", async () => {
    const { http, run, say, conversation } = client("plain");
    const play = half();
    say(play.content);
    const running = run();
    await expect.poll(() => shownText(http)).toBe("Half");
    http.abortRun();
    await running;
    expect(await play.closes(1)).toEqual([{ reply: 0 }]);
    await expect.poll(() => statusOf(conversation())).toEqual(["CANCELLED"]);
    say(new Play({ replies: [[{ text: "Next." }]] }).content);
    const { last } = await run();
    expect([shownText(http), last]).toMatchObject(["Next.", { outcome: { type: "success" } }]);
  });

  test("I12 AGUI-1 a turn that somebody stops ends its run with the outcome cancelled", async () => {
    const { http, run, say, conversation } = client("plain");
    const play = half();
    say(play.content);
    const running = run();
    await expect.poll(() => shownText(http)).toBe("Half");
    expect((await post(`/api/conversations/${conversation()}/cancel`, {}, ADA)).status).toBe(200);
    expect((await running).last).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "cancelled" } });
  });

  test("I12 AGUI-5 AGUI-8 a run that keeps running is read again, with the messages of its thread", async () => {
    const { http, run, say, conversation } = client("plain");
    const first = new Play({ replies: [[{ text: "First." }]] });
    say(first.content);
    await run();
    const play = half();
    say(play.content);
    const running = run({ forwardedProps: { dramatis: { keepRunning: true } } });
    await expect.poll(() => shownText(http)).toBe("Half");
    http.abortRun();
    await running;
    expect(await statusOf(conversation())).toEqual(["completed", "active"]);

    const leaving = client("plain", http.threadId);
    const left = leaving.run();
    await expect.poll(() => shownText(leaving.http)).toBe("Half");
    leaving.http.abortRun();
    await left;

    const page = client("plain", http.threadId);
    const read = page.run();
    await expect.poll(() => shownText(page.http)).toBe("Half");
    await play.open("shown");
    const { types } = await read;
    expect(types.slice(0, 2)).toEqual(["RUN_STARTED", "MESSAGES_SNAPSHOT"]);
    expect(shownIn(page.http.messages)).toEqual([
      ["user", first.content],
      ["assistant", "First."],
      ["user", play.content],
      ["assistant", "Half and half."],
    ]);
    expect(await statusOf(conversation())).toEqual(["completed", "completed"]);
    const empty = client("plain");
    expect((await empty.run()).types).toEqual(["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]);
  });

  test("I12 AGUI-8 leaving a run without an effect leaves the turn of another run", async () => {
    const { http, run, say, conversation } = client("handy");
    const play = new Play({
      replies: [[{ call: "double", input: { n: 4 } }], [{ text: "Half" }, { gate: "shown" }, { text: "." }]],
    });
    say(play.content);
    const running = run();
    await expect.poll(() => shownText(http)).toBe("Half");
    const other = client("handy", http.threadId);
    other.http.setMessages(http.messages.slice(0, 3));
    const left = other.run();
    await expect.poll(() => shownText(other.http)).toBe("Half");
    other.http.abortRun();
    await left;
    expect(await statusOf(conversation())).toEqual(["active"]);
    await play.open("shown");
    expect((await running).last).toMatchObject({ outcome: { type: "success" } });
  });

  test.each(["cancels", "repeats"])(
    "I12 AGUI-8 leaving a run that %s an answer leaves the turn of the run that gave it",
    async (act) => {
      const play = new Play((key) => ({
        replies: [
          [{ text: "May I?" }, { call: "transfer", input: { key, to: "Bob" } }],
          [{ text: "Half" }, { gate: "shown" }, { text: "." }],
        ],
      }));
      const { http, run, say } = client("careful");
      say(play.content);
      await run();
      const page = client("careful", http.threadId);
      await page.run();
      const [{ id: interruptId } = { id: "" }] = http.pendingInterrupts;
      const yes = { interruptId, status: "resolved" as const, payload: { approved: true } };
      const running = run({ resume: [yes] });
      await expect.poll(() => shownText(http)).toBe("Half");
      const left = page.run({ resume: [act === "repeats" ? yes : { interruptId, status: "cancelled" }] });
      await expect.poll(() => shownText(page.http)).toBe("Half");
      page.http.abortRun();
      await left;
      await play.open("shown");
      expect((await running).last).toMatchObject({ outcome: { type: "success" } });
    },
  );

  test("I12 AGUI-3 AGUI-5 a page that is loaded again shows the open interrupt, and answers it", async () => {
    const play = new Play((key) => ({
      replies: [[{ text: "May I?" }, { call: "transfer", input: { key, to: "Bob" } }], [{ text: "Paid." }]],
    }));
    const before = client("careful");
    before.say(play.content);
    await before.run();
    const page = client("careful", before.http.threadId);
    await page.run();
    expect(page.http.pendingInterrupts).toEqual(before.http.pendingInterrupts);
    expect(shownIn(page.http.messages)).toEqual(shownIn(before.http.messages));
    const [{ id } = { id: "" }] = page.http.pendingInterrupts;
    await page.run({ resume: [{ interruptId: id, status: "resolved", payload: { approved: true } }] });
    expect(shownText(page.http)).toBe("Paid.");
    expect(await play.runs(1)).toHaveLength(1);
  });
});

describe("I12 the official AG-UI client: questions of workflows", () => {
  beforeAll(async () => {
    const prompts = ["Send it?", "To whom?"];
    const tasks = prompts.map((prompt, index) => ({
      id: `agui-ask-${index}`,
      inputSchema: { type: "object" },
      steps: [{ ref: "ask", action: { kind: "human.approve", prompt } }],
    }));
    const flow = {
      id: "agui-asks",
      inputSchema: { type: "object" },
      contextSchema: { type: "object", properties: { answer: {} } },
      outputMapping: { answer: "state.answer" },
      initialNode: "first",
      nodes: ["first", "second"].map((ref, index) => ({
        ...{ ref, task: `agui-ask-${index}`, outputMapping: { "state.answer": "result" } },
      })),
      transitions: [{ from: "first", to: "second" }],
    };
    const both = {
      ...flow,
      id: "agui-both",
      nodes: [...flow.nodes, { ...flow.nodes[1], ref: "third", outputMapping: {} }],
      transitions: [...flow.transitions, { from: "first", to: "third" }],
    };
    const tool = {
      ...{ id: "agui-asks", name: "asks", description: "Asks a person." },
      target: { workflow: "agui-flows/agui-asks" },
    };
    const second = {
      ...{ id: "agui-both", name: "both", description: "Asks a person twice." },
      target: { workflow: "agui-flows/agui-both" },
    };
    const persona = {
      id: "agui-asker",
      identity: { systemPrompt: "You ask.", modelProfileId: "test/scripted" },
      tools: { toolIds: ["agui-flows/agui-asks", "agui-flows/agui-both"] },
    };
    for (const [kind, body] of [
      ...tasks.map((task) => ["tasks", task] as const),
      ["workflows", flow],
      ["workflows", both],
      ["tools", tool],
      ["tools", second],
      ["personas", persona],
    ] as const) {
      const posted = await post(`/api/libraries/agui-flows/${kind}`, body, ADA);
      expect(posted.status, JSON.stringify(posted.body)).toBe(201);
    }
    const agent = { id: "agui-asker", persona: "agui-flows/agui-asker" };
    expect((await post("/api/agents", agent, ADA)).status).toBe(201);
  });

  const asking = () => new Play({ replies: [[{ call: "asks", input: {} }], [{ text: "I asked." }]] });

  test("I12 AGUI-3 AGUI-5 the person at the client answers one question after another, also twice and after an eviction", async () => {
    const thread = client("agui-asker");
    thread.say(asking().content);
    const first = await thread.run();
    const [interrupt] = thread.http.pendingInterrupts;
    if (interrupt === undefined) throw new Error("The run has no interrupt.");
    expect(first.last).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "interrupt" } });
    expect(interrupt).toMatchObject({ reason: "input_required", message: "Send it?" });
    await abortAllDurableObjects();
    const page = client("agui-asker", thread.http.threadId);
    await page.run();
    expect(page.http.pendingInterrupts).toEqual([interrupt]);
    const resume = [{ interruptId: interrupt.id, status: "resolved" as const, payload: { approved: true } }];
    const second = await page.run({ runId: "second", resume });
    expect(second.last).toMatchObject({
      outcome: { type: "interrupt", interrupts: [{ message: "To whom?", reason: "input_required" }] },
    });
    const [{ id } = { id: "" }] = page.http.pendingInterrupts;
    const answer = { interruptId: id, status: "resolved" as const, payload: { approved: false } };
    const last = await page.run({ runId: "third", resume: [answer] });
    expect(last.last).toMatchObject({ outcome: { type: "success" } });
    expect(shownIn(page.http.messages).at(-1)).toEqual(["assistant", "I asked."]);
    const again = await page.run({ runId: "third", resume: [answer] });
    expect(again.types).toEqual(last.types);
  });

  test("I12 AGUI-3 a cancellation of an answered question ends the run with the next question", async () => {
    const thread = client("agui-asker");
    thread.say(asking().content);
    await thread.run();
    const [{ id } = { id: "" }] = thread.http.pendingInterrupts;
    await thread.run({ resume: [{ interruptId: id, status: "resolved", payload: { approved: true } }] });
    const late = client("agui-asker", thread.http.threadId);
    const { last } = await late.run({ resume: [{ interruptId: id, status: "cancelled" }] });
    expect(last).toMatchObject({ outcome: { type: "interrupt", interrupts: [{ message: "To whom?" }] } });
  });

  test("I12 AGUI-5 of two answers to questions, both count or none", async () => {
    const thread = client("agui-asker");
    const calls = [1, 2].map(() => ({ call: "asks", input: {} }));
    thread.say(new Play({ replies: [calls, [{ text: "I asked." }]] }).content);
    await thread.run();
    const before = thread.http.pendingInterrupts;
    expect(before.map(({ message }) => message)).toEqual(["Send it?", "Send it?"]);
    const [first, second] = before.map(({ id }) => id);
    const answer = (id = "", approved: unknown = true) => ({
      ...{ interruptId: id, status: "resolved" as const, payload: { approved } },
    });
    const wrong = client("agui-asker", thread.http.threadId);
    await expect(wrong.run({ resume: [answer(first), answer(second, "perhaps")] })).rejects.toMatchObject({
      status: 422,
      message: expect.stringContaining("/resume/1/payload"),
    });
    const page = client("agui-asker", thread.http.threadId);
    await page.run();
    expect(page.http.pendingInterrupts).toEqual(before);
    const { last } = await page.run({ resume: [answer(first), answer(second)] });
    expect(last).toMatchObject({
      outcome: { interrupts: [{ message: "To whom?" }, { message: "To whom?" }] },
    });
  });

  test("I12 AGUI-5 an answer to a question that has another answer already, and all answers beside it, have no effect", async () => {
    const thread = client("agui-asker");
    const calls = [1, 2].map(() => ({ call: "asks", input: {} }));
    thread.say(new Play({ replies: [calls, [{ text: "I asked." }]] }).content);
    await thread.run();
    const [first, second] = thread.http.pendingInterrupts.map(({ id }) => id);
    const answer = (id = "", approved = true) => ({
      ...{ interruptId: id, status: "resolved" as const, payload: { approved } },
    });
    await client("agui-asker", thread.http.threadId).run({ resume: [answer(first)] });
    const shown = async () => {
      const page = client("agui-asker", thread.http.threadId);
      await page.run();
      return page.http.pendingInterrupts;
    };
    const before = await shown();
    const late = client("agui-asker", thread.http.threadId);
    await expect(late.run({ resume: [answer(second), answer(first, false)] })).rejects.toMatchObject({
      status: 409,
    });
    expect(await shown()).toEqual(before);
    const page = client("agui-asker", thread.http.threadId);
    const { last } = await page.run({ resume: [answer(second), answer(first)] });
    expect(last).toMatchObject({
      outcome: { interrupts: [{ message: "To whom?" }, { message: "To whom?" }] },
    });
  });

  test("I12 AGUI-3 answers to two questions of one workflow end with the answer of the agent", async () => {
    const thread = client("agui-asker");
    thread.say(new Play({ replies: [[{ call: "both", input: {} }], [{ text: "I asked." }]] }).content);
    await thread.run();
    const resume = () =>
      thread.http.pendingInterrupts.map(({ id }) => ({
        ...{ interruptId: id, status: "resolved" as const, payload: { approved: true } },
      }));
    await thread.run({ resume: resume() });
    const questions = thread.http.pendingInterrupts;
    expect(questions.map(({ message }) => message)).toEqual(["To whom?", "To whom?"]);
    const [first, second] = resume();
    const wrong = client("agui-asker", thread.http.threadId);
    const mixed = [
      { interruptId: first?.interruptId ?? "", status: "cancelled" as const },
      second ?? expect.fail(),
    ];
    await expect(wrong.run({ resume: mixed })).rejects.toMatchObject({ status: 422 });
    const page = client("agui-asker", thread.http.threadId);
    await page.run();
    expect(page.http.pendingInterrupts).toEqual(questions);
    const { last } = await thread.run({ resume: resume() });
    expect(last).toMatchObject({ outcome: { type: "success" } });
    expect(shownIn(thread.http.messages).at(-1)).toEqual(["assistant", "I asked."]);
  });

  test("I12 AGUI-5 a cancelled question cancels its workflow, and the model continues", async () => {
    const thread = client("agui-asker");
    thread.say(asking().content);
    await thread.run();
    const [{ id } = { id: "" }] = thread.http.pendingInterrupts;
    await thread.run({ resume: [{ interruptId: id, status: "cancelled" }] });
    const [, , result, last] = shownIn(thread.http.messages);
    expect(result?.[1]).toContain("CANCELLED");
    expect(last).toEqual(["assistant", "I asked."]);
  });

  test("I12 AGUI-5 an answer that does not fit, or that is for a question of another thread, has no effect", async () => {
    const [thread, other] = [client("agui-asker"), client("agui-asker")];
    for (const { say, run } of [thread, other]) {
      say(asking().content);
      await run();
    }
    const [{ id } = { id: "" }] = thread.http.pendingInterrupts;
    const [{ id: foreign } = { id: "" }] = other.http.pendingInterrupts;
    const mixed = `${id.split("|")[0]}|${foreign.split("|")[1]}`;
    for (const [interruptId, payload] of [
      [`${id}|x`, { approved: true }],
      [`${id.split("|")[0]}|${id.split("|")[0]}`, { approved: true }],
      [foreign, { approved: true }],
      [mixed, { approved: true }],
      [id, { approved: "perhaps" }],
      [id, undefined],
    ])
      await expect(
        client("agui-asker", thread.http.threadId).run({
          resume: [{ interruptId: String(interruptId), status: "resolved", payload }],
        }),
      ).rejects.toMatchObject({ status: 422 });
    const page = client("agui-asker", thread.http.threadId);
    await page.run();
    expect(page.http.pendingInterrupts).toEqual(thread.http.pendingInterrupts);
  });
});

describe("I12 the official AG-UI client: threads that do not begin", () => {
  const withImage = (url: string): Message => ({
    ...{ id: crypto.randomUUID(), role: "user" },
    content: [{ type: "image", source: { type: "url", value: url } }],
  });

  test("I12 AGUI-5 a refused first message leaves no conversation, and the thread begins later", async () => {
    const { http, run, say, conversation } = client("plain");
    http.setMessages([withImage(`attachment:att_${"0".repeat(26)}`)]);
    await expect(run()).rejects.toMatchObject({ status: 422 });
    const refusedAt = new Date().toISOString();
    http.setMessages([]);
    say(new Play({ replies: [[{ text: "Hello." }]] }).content);
    await run();
    expect(shownIn(http.messages).at(-1)).toEqual(["assistant", "Hello."]);
    const { body } = await get(`/api/conversations/${conversation()}`, ADA);
    expect(body.createdAt >= refusedAt).toBe(true);
  });

  test("I12 AGUI-5 the thread of a deleted conversation is neither read nor continued", async () => {
    const { http, run, say, conversation } = client("plain");
    say(new Play({ replies: [[{ text: "Hello." }]] }).content);
    await run();
    expect((await send(`/api/conversations/${conversation()}`, { method: "DELETE" }, ADA)).status).toBe(204);
    const again = client("plain", http.threadId);
    const refusal = { status: 409, message: expect.stringContaining("Use a new threadId.") };
    await expect(again.run()).rejects.toMatchObject(refusal);
    again.say("Hello?");
    await expect(again.run()).rejects.toMatchObject(refusal);
  });
});

describe("I12 an AG-UI client older than 1.0, as in CopilotKit", () => {
  test("I12 AGUI-9 approves a call, runs its own tools, and sees a stop", async () => {
    const url = "http://dramatis.test/agui/careful";
    const answers: Response[] = [];
    const http = new OlderAgent({ url, threadId: crypto.randomUUID(), fetch: fetchAs(ADA, answers) });
    const say = (content: string) => http.addMessage({ id: crypto.randomUUID(), role: "user", content });
    const tools = [{ name: "look", description: "Looks.", parameters: { type: "object" } }];
    const play = new Play((key) => ({
      replies: [
        [{ text: "May I?" }, { call: "transfer", input: { key, to: "Bob" } }],
        [{ call: "look", input: {} }],
        [{ text: "Done." }],
      ],
    }));
    say(play.content);
    await http.runAgent({ tools });
    const [{ id } = { id: "" }] = http.pendingInterrupts;
    const resume = [{ interruptId: id, status: "resolved" as const, payload: { approved: true } }];
    const { newMessages } = await http.runAgent({ tools, resume });
    const calls = newMessages.flatMap((message) =>
      message.role === "assistant" ? (message.toolCalls ?? []) : [],
    );
    expect(calls).toMatchObject([{ function: { name: "look" } }]);
    http.addMessage({ id: "1", role: "tool", toolCallId: calls[0]?.id ?? "", content: "Nothing." });
    await http.runAgent({ tools });
    expect(http.messages.map(({ content = null }) => content)).toEqual([
      ...[play.content, "May I?", "Paid Bob.", null, "Nothing.", "Done."],
    ]);

    const stopped = half();
    say(stopped.content);
    const running = http.runAgent();
    await expect.poll(() => http.messages.at(-1)?.content).toBe("Half");
    const conversation = answers.at(-1)?.headers.get("x-dramatis-conversation");
    expect((await post(`/api/conversations/${conversation}/cancel`, {}, ADA)).status).toBe(200);
    await running;
    expect(await statusOf(conversation ?? "")).toEqual(["completed", "CANCELLED"]);
  });
});
