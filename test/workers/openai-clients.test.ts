/**
 * Requests of programs that speak OpenAI's protocols, as the programs send them. Recorded from Codex CLI 0.171, Cline CLI 3.0.65,
 * Continue CLI 1.5.47 and LangChain's `ChatOpenAI`, the client of LibreChat. The requests of Open WebUI follow its source.
 */
import { exports } from "cloudflare:workers";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { beforeAll, describe, expect, test } from "vitest";
import type { Principal } from "../../src/shared/principal.ts";
import { openItem, openResponse, openResponseEvent } from "../support/open-responses.ts";
import { get, post } from "./http-client.ts";
import { Play } from "./provider.ts";

const ADA: Principal = { subject: "ada", tenant: "clients", roles: ["admin"] };
const IMAGE = "data:image/png;base64,iVBORw0KGgo=";
const USAGE = { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 };

beforeAll(async () => {
  expect((await post("/api/agents", { id: "plain", persona: "test/plain" }, ADA)).status).toBe(201);
});

/** Sends a body to an operation of `/v1`. */
function send(path: string, body: object): Promise<Response> {
  const headers = {
    "content-type": "application/json",
    authorization: "Bearer local",
    "x-test-principal": JSON.stringify(ADA),
  };
  const request = { method: "POST", headers, body: JSON.stringify(body) };
  return exports.default.fetch(new Request(`http://dramatis.test/v1${path}`, request));
}

/** Reads the data of the events of a stream. */
async function dataOf(response: Response): Promise<string[]> {
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  const events = (response.body ?? expect.fail("no body"))
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  const data: string[] = [];
  for await (const event of events) data.push(event.data);
  return data;
}

/** Reads a streamed completion as clients do. */
async function completionOf(response: Response) {
  const data = await dataOf(response);
  expect(data.pop()).toBe("[DONE]");
  const chunks = data.map((text) => JSON.parse(text));
  const choices = chunks.flatMap((chunk) => chunk.choices);
  return {
    text: choices.map(({ delta }) => delta.content ?? "").join(""),
    calls: choices.flatMap(({ delta }) => delta.tool_calls ?? []),
    finish: choices.flatMap(({ finish_reason: reason }) => reason ?? []),
    usage: chunks.at(-1).usage,
  };
}

/** Reads a streamed response. Checks each event against Open Responses. */
async function responseOf(response: Response) {
  const events = (await dataOf(response)).map((text) => openResponseEvent.parse(JSON.parse(text)));
  const last = events.at(-1);
  if (last?.type !== "response.completed") throw new Error(`The last event is ${JSON.stringify(last)}.`);
  const items = events.flatMap((event) =>
    event.type === "response.output_item.done" ? [openItem.parse(event.item)] : [],
  );
  const deltas = events.flatMap((event) => (event.type === "response.output_text.delta" ? event.delta : []));
  return { items, text: deltas.join(""), whole: openResponse.parse(last.response) };
}

/** The texts of the messages that the model got after the persona's. */
async function seenBy(play: Play, reply: number): Promise<unknown[]> {
  const request = (await play.requests(reply + 1))[reply];
  return request?.body.messages.slice(1).map(({ role, content }) => [role, content]) ?? [];
}

const tool = (name: string) => ({
  name,
  description: "A tool of the client.",
  parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
});
const chatTool = (name: string) => ({ type: "function", function: tool(name) });
const responseTool = (name: string) => ({ type: "function", strict: false, ...tool(name) });
/** A play that calls a tool of the client, and then answers. */
const toolPlay = (name: string) =>
  new Play({ replies: [[{ call: name, input: { path: "a.txt" } }, { usage: USAGE }], [{ text: "Done." }]] });

describe("I13 Open Responses", () => {
  const message = (role: string, content: unknown, more = {}) => ({
    type: "message",
    role,
    content,
    ...more,
  });

  test.each<[string, (play: string) => object]>([
    ["text", (play) => ({ input: [message("user", play)] })],
    ["a system message", (play) => ({ input: [message("system", "Be brief."), message("user", play)] })],
    [
      "a history with phases",
      (play) => ({
        input: [
          message("assistant", "I look.", { phase: "commentary" }),
          message("assistant", "Four.", { phase: "final_answer" }),
          message("user", play),
        ],
      }),
    ],
    [
      "an image",
      (play) => ({
        input: [
          message("user", [
            { type: "input_text", text: play },
            { type: "input_image", image_url: IMAGE },
          ]),
        ],
      }),
    ],
  ])("I13 %s: the response has all required members, whole and streamed", async (_, body) => {
    const play = new Play({ replies: [[{ text: "Hello " }, { text: "you." }, { usage: USAGE }]] });
    const request = { model: "plain", ...body(play.content) };
    const answered = await send("/responses", request);
    const whole = openResponse.parse(await answered.json());
    expect(whole).toMatchObject({ status: "completed", usage: { total_tokens: 10 }, output: [{}] });
    // The time of an id never goes back, and other files of the runtime advance the clock.
    expect(whole.completed_at).toBeTypeOf("number");
    const streamed = await responseOf(await send("/responses", { ...request, stream: true }));
    expect([streamed.text, streamed.items]).toEqual(["Hello you.", streamed.whole.output]);
    const { body: again } = await get(`/v1/responses/${streamed.whole.id}`, ADA);
    expect(again).toEqual(streamed.whole);
  });

  test("I13 a failed response and its events have all required members", async () => {
    const play = new Play({ replies: [{ status: 401, message: "No." }] });
    const request = { model: "plain", input: play.content };
    const whole = openResponse.parse(await (await send("/responses", request)).json());
    expect(whole).toMatchObject({ status: "failed", completed_at: null, error: { code: "server_error" } });
    const data = await dataOf(await send("/responses", { ...request, stream: true }));
    const events = data.map((text) => openResponseEvent.parse(JSON.parse(text)));
    expect(events.at(-1)?.type).toBe("response.failed");
  });
});

describe("I13 clients of Responses", () => {
  const message = (role: string, text: string) => ({
    type: "message",
    id: `msg_${crypto.randomUUID()}`,
    role,
    content: [{ type: "input_text", text }],
  });

  test("I13 OAI-14 Codex CLI runs its tools, sends the whole history each time, and keeps its other tools to itself", async () => {
    const play = toolPlay("exec_command");
    const input: object[] = [
      message("developer", "You are a coding agent."),
      message("user", "<environment_context>bash</environment_context>"),
      message("user", play.content),
    ];
    const request = {
      model: "plain",
      stream: true,
      store: false,
      tools: [
        responseTool("exec_command"),
        responseTool("view_image"),
        {
          type: "namespace",
          name: "multi_agent",
          description: "Agents.",
          tools: [responseTool("spawn_agent")],
        },
        { type: "custom", name: "apply_patch", description: "Edits files.", format: { type: "text" } },
        { type: "local_shell" },
        { type: "web_search", external_web_access: false },
      ],
      tool_choice: "auto",
      parallel_tool_calls: true,
      reasoning: { summary: "auto" },
      include: ["reasoning.encrypted_content"],
      prompt_cache_key: crypto.randomUUID(),
      client_metadata: { turn_id: "one" },
    };
    const answered = await send("/responses", { ...request, input });
    expect(answered.headers.get("x-dramatis-ignored")).toBe(
      "tools[2], tools[3], tools[4], tools[5], include, reasoning, store, prompt_cache_key, client_metadata",
    );
    const first = await responseOf(answered);
    const [call] = first.items;
    if (call?.type !== "function_call") throw new Error("The first item must be a call.");
    expect([call.name, call.arguments]).toEqual(["exec_command", '{"path":"a.txt"}']);
    expect(first.whole.usage).toMatchObject({ input_tokens: 8, output_tokens: 2, total_tokens: 10 });
    const output = [
      { type: "input_text", text: "It is empty." },
      { type: "input_image", image_url: IMAGE, detail: "high" },
    ];
    const result = { type: "function_call_output", id: "fco_1", call_id: call.call_id, output };
    const second = await responseOf(
      await send("/responses", { ...request, input: [...input, call, result] }),
    );
    expect([second.text, second.whole.output]).toEqual(["Done.", second.items]);
    const [one] = await play.requests(2);
    expect(one?.body.tools?.map(({ function: { name } }) => name)).toEqual(["exec_command", "view_image"]);
    expect((await seenBy(play, 1)).at(-1)).toEqual(["tool", JSON.stringify("It is empty.\n\n[image]")]);

    const later = new Play({ replies: [[{ text: "Yes." }]] });
    const reasoning = { type: "reasoning", summary: [], content: null, encrypted_content: null };
    const history = [...input, reasoning, call, result, ...second.items, message("user", later.content)];
    expect((await responseOf(await send("/responses", { ...request, input: history }))).text).toBe("Yes.");
    expect((await seenBy(later, 0)).slice(2)).toEqual([
      ["user", play.content],
      ["assistant", null],
      ["tool", "It is empty.\n\n[image]"],
      ["assistant", "Done."],
      ["user", later.content],
    ]);
  });

  test.each([
    ["tools[0].type", [{ type: "web_search" }]],
    ["tools[1].type", [responseTool("look"), { type: "unheard_of" }]],
    ["tools[0].name", [{ ...responseTool("look"), name: "two words" }, { type: "web_search" }]],
  ])(
    "I13 OAI-14 tools without a function, of unknown types and with invalid names are refused: %s",
    async (param, tools) => {
      const refused = await send("/responses", { model: "plain", input: "Hello", tools });
      expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param } }]);
    },
  );
});

describe("I13 clients of Chat Completions", () => {
  test("I13 Open WebUI lists models, chats with an image and sampling options, and asks for a title", async () => {
    const { body: models } = await get("/v1/models", ADA);
    expect(models).toMatchObject({ object: "list", data: [{ id: "plain", object: "model" }] });
    const play = new Play({ replies: [[{ text: "A dot." }, { usage: USAGE }]] });
    const answered = await send("/chat/completions", {
      model: "plain",
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0.7,
      top_p: 0.9,
      frequency_penalty: 0,
      seed: 42,
      max_tokens: 900,
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
        { role: "assistant", content: "Hello!" },
        {
          role: "user",
          content: [
            { type: "text", text: play.content },
            { type: "image_url", image_url: { url: IMAGE } },
          ],
        },
      ],
    });
    const ignored = "frequency_penalty, seed, temperature, top_p";
    expect(answered.headers.get("x-dramatis-ignored")).toBe(ignored);
    expect(await completionOf(answered)).toMatchObject({ text: "A dot.", finish: ["stop"], usage: USAGE });
    const titled = new Play({ replies: [[{ text: '{"title": "A dot"}' }]] });
    const title = await send("/chat/completions", {
      model: "plain",
      stream: false,
      max_completion_tokens: 1000,
      messages: [{ role: "user", content: titled.content }],
    });
    const choices = [{ message: { role: "assistant", content: '{"title": "A dot"}' } }];
    expect(await title.json()).toMatchObject({ choices });
  });

  test("I13 LibreChat streams with its options, an image and tools", async () => {
    const play = new Play({ replies: [[{ text: "A dot." }, { usage: USAGE }]] });
    const answered = await send("/chat/completions", {
      model: "plain",
      temperature: 0.7,
      top_p: 0.9,
      frequency_penalty: 0.1,
      presence_penalty: 0.1,
      user: "u1",
      stream: true,
      tools: [chatTool("calculator")],
      stream_options: { include_usage: true },
      max_tokens: 900,
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: play.content },
            { type: "image_url", image_url: { url: IMAGE, detail: "auto" } },
          ],
        },
      ],
    });
    const { text, finish, usage } = await completionOf(answered);
    expect([text, finish, usage]).toMatchObject(["A dot.", ["stop"], USAGE]);
    const [request] = await play.requests(1);
    expect(request?.body.tools?.map(({ function: { name } }) => name)).toEqual(["calculator"]);
  });

  test.each([
    ["Cline", null, { tool_choice: "auto" }],
    ["Continue", "", {}],
  ])("I13 %s runs its tools, and sends the call back with the content %j", async (_, content, more) => {
    const play = toolPlay("read_file");
    const request = {
      model: "plain",
      stream: true,
      stream_options: { include_usage: true },
      tools: [chatTool("read_file"), chatTool("run_command")],
      ...more,
    };
    const messages = [
      { role: "system", content: "You are a coding agent." },
      { role: "user", content: play.content },
    ];
    const first = await completionOf(await send("/chat/completions", { ...request, messages }));
    expect([first.finish, first.usage]).toMatchObject([["tool_calls"], USAGE]);
    const [{ index, ...call }] = first.calls;
    expect([index, call.function]).toEqual([0, { name: "read_file", arguments: '{"path":"a.txt"}' }]);
    const followed = [
      ...messages,
      { role: "assistant", content, tool_calls: [call] },
      { role: "tool", tool_call_id: call.id, content: "It is empty." },
    ];
    const second = await completionOf(await send("/chat/completions", { ...request, messages: followed }));
    expect([second.text, second.finish]).toEqual(["Done.", ["stop"]]);
    expect((await seenBy(play, 1)).at(-1)).toEqual(["tool", '"It is empty."']);
  });
});
