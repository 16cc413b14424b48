/** Protocols that others speak, each held against its own official client on the real Worker. */
import { abortAllDurableObjects } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { Chat } from "@ai-sdk/react";
import { type ChatTransport, DefaultChatTransport, readUIMessageStream, type UIMessage } from "ai";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import type { RunnableToolFunctionWithParse } from "openai/lib/RunnableFunction";
import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { ConversationChatTransport, toUIMessages } from "../../src/client/ai-sdk/index.ts";
import type { MessageView } from "../../src/protocol/conversation-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { get, post, send } from "./http-client.ts";
import { Play } from "./provider.ts";

const TENANT = "protocols";
const ADA: Principal = { subject: "ada", tenant: TENANT, roles: ["admin"] };
const MEL: Principal = { subject: "mel", tenant: TENANT, roles: ["member"] };
const HEADER = "x-dramatis-conversation";

/** A `fetch` of this Worker as somebody. */
const fetchAs =
  (principal: Principal | null) =>
  (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers);
    if (principal !== null) headers.set("x-test-principal", JSON.stringify(principal));
    return exports.default.fetch(new Request(input, { ...init, headers }));
  };

const openai = (principal: Principal | null = ADA) =>
  new OpenAI({
    apiKey: "unused",
    baseURL: "http://dramatis.test/v1",
    maxRetries: 0,
    fetch: fetchAs(principal),
  });

const client = openai();

beforeAll(async () => {
  for (const [id, persona] of [
    ["plain", "test/plain"],
    ["handy", "test/handy"],
  ]) {
    expect((await post("/api/agents", { id, persona }, ADA)).status).toBe(201);
  }
});

/** A tool that the client runs. */
const look = {
  type: "function",
  function: {
    name: "look",
    description: "Looks at a place.",
    parameters: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  },
} as const;

const userMessage = (content: string) => ({ role: "user", content }) as const;

async function failure(promise: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error: unknown = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error instanceof OpenAI.APIError) return error;
  throw new Error(`No error of the API: ${String(error)}`);
}

/** The text of a streamed completion, and how it ended. */
async function read(stream: AsyncIterable<OpenAI.ChatCompletionChunk>) {
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  const choices = chunks.flatMap((chunk) => chunk.choices);
  return {
    chunks,
    text: choices.map(({ delta }) => delta.content ?? "").join(""),
    finish: choices.flatMap(({ finish_reason: reason }) => reason ?? []),
    calls: choices.flatMap(({ delta }) => delta.tool_calls ?? []),
    usage: chunks.at(-1)?.usage,
  };
}

describe("H9 the official OpenAI client: models", () => {
  test("are the tenant's agents", async () => {
    const models = [];
    for await (const model of client.models.list()) models.push(model);
    expect(models.map(({ id }) => id)).toEqual(["plain", "handy"]);
    expect(await client.models.retrieve("handy")).toEqual(models[1]);
    expect(models[0]).toEqual({
      id: "plain",
      object: "model",
      created: expect.any(Number),
      owned_by: TENANT,
    });
    const missing = await failure(client.models.retrieve("absent"));
    expect([missing.status, missing.code, missing.param]).toEqual([404, "model_not_found", "model"]);
  });
});

describe("H9 the official OpenAI client: chat completions", () => {
  test("answer with the full history of the request, and appear in no list", async () => {
    const usage = { prompt_tokens: 20, completion_tokens: 3, total_tokens: 23 };
    const play = new Play({ replies: [[{ text: "Forty" }, { text: "-two." }, { usage }]] });
    const { data, response } = await client.chat.completions
      .create({
        model: "plain",
        temperature: 0,
        messages: [
          { role: "system", content: "Be brief." },
          userMessage("Six?"),
          {
            role: "assistant",
            content: null,
            tool_calls: [
              { id: "elsewhere", type: "function", function: { name: "f", arguments: '{"n":6}' } },
            ],
          },
          { role: "tool", tool_call_id: "elsewhere", content: "six" },
          { role: "assistant", content: "Six." },
          { role: "user", content: [{ type: "text", text: play.content }] },
        ],
      })
      .withResponse();
    expect(data).toMatchObject({ object: "chat.completion", model: "plain", usage });
    expect(data.choices).toEqual([
      {
        index: 0,
        message: { role: "assistant", content: "Forty-two.", refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ]);
    const [request] = await play.requests(1);
    expect(request?.body.messages.map(({ role, content }) => [role, content])).toEqual([
      ["system", "You are a test."],
      ["system", "Be brief."],
      ["user", "Six?"],
      ["assistant", null],
      ["tool", "six"],
      ["assistant", "Six."],
      ["user", play.content],
    ]);
    const id = response.headers.get(HEADER);
    const { body } = await get(`/api/conversations/${id}/messages`, ADA);
    expect(body.messages.map(({ role }) => role)).toEqual(["user", "agent"]);
    const listed = await get("/api/conversations?limit=200", ADA);
    expect(JSON.stringify(listed.body)).not.toContain(id);
  });

  test("OAI-7 may follow a history as clients keep it: blanks, repeated ids, results in any order", async () => {
    const calling = (...ids: string[]) => ({
      role: "assistant" as const,
      content: "",
      tool_calls: ids.map((id) => ({
        id,
        type: "function" as const,
        function: { name: "f", arguments: "" },
      })),
    });
    const result = (id: string, content: string) => ({ role: "tool" as const, tool_call_id: id, content });
    const play = new Play({ replies: [[{ text: "Yes." }]] });
    await client.chat.completions.create({
      model: "plain",
      messages: [
        { role: "system", content: "" },
        { role: "developer", content: [{ type: "text", text: "Be brief." }] },
        userMessage(" "),
        { role: "assistant", content: "" },
        userMessage("One?"),
        calling("c0", "c1"),
        result("c1", "one"),
        result("c0", ""),
        calling("c0"),
        result("c0", "again"),
        { role: "assistant", content: [{ type: "text", text: "" }] },
        userMessage(play.content),
      ],
    });
    const [request] = await play.requests(1);
    const seen = request?.body.messages.slice(1) ?? [];
    expect(seen.map((message) => [message.role, message.tool_call_id ?? message.content])).toEqual([
      ["system", "Be brief."],
      ["user", "One?"],
      ["assistant", null],
      ["tool", "c1"],
      ["tool", "c0"],
      ["assistant", null],
      ["tool", "c0_2"],
      ["user", play.content],
    ]);
    const dangling = { model: "plain", messages: [calling("c0"), userMessage(play.content)] };
    const error = await failure(client.chat.completions.create(dangling));
    expect([error.param, error.message]).toEqual([
      "messages",
      expect.stringContaining("/messages: This call"),
    ]);
  });

  test("show the model the images of the last message", async () => {
    const url = "data:image/png;base64,iVBORw0KGgo=";
    const [one, two] = [new Play({ replies: [[{ text: "A" }]] }), new Play({ replies: [[{ text: "B" }]] })];
    await client.chat.completions.create({
      model: "plain",
      messages: [
        { role: "user", content: [{ type: "image_url", image_url: { url } }] },
        { role: "assistant", content: "An image." },
        {
          role: "user",
          content: [
            { type: "text", text: one.content },
            { type: "image_url", image_url: { url, detail: "low" } },
          ],
        },
      ],
    });
    await client.responses.create({
      model: "plain",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: two.content },
            { type: "input_image", image_url: url, detail: "auto" },
          ],
        },
      ],
    });
    for (const play of [one, two]) {
      const [request] = await play.requests(1);
      expect(request?.body.messages.at(-1)?.content).toEqual([
        { type: "text", text: play.content },
        { type: "image_url", image_url: { url } },
      ]);
    }
    const [request] = await one.requests(1);
    expect(request?.body.messages[1]).toEqual({ role: "user", content: "[image]" });
  });

  test("OAI-10 the client does not resend a request that has begun work", async () => {
    let sent = 0;
    const eager = new OpenAI({
      apiKey: "unused",
      baseURL: "http://dramatis.test/v1",
      maxRetries: 2,
      fetch: (url, init) => {
        sent += 1;
        return fetchAs(ADA)(url, init);
      },
    });
    const play = new Play({ replies: [{ status: 401, message: "No." }] });
    const request = { model: "plain", messages: [userMessage(play.content)] };
    const failed = await failure(eager.chat.completions.create(request));
    expect([failed.status, sent, await play.requests()]).toMatchObject([502, 1, { length: 1 }]);
    const { body } = await get(`/api/conversations/${failed.headers?.get(HEADER)}`, ADA);
    expect(body.id).toBe(failed.headers?.get(HEADER));
    const options = { headers: { "Idempotency-Key": "not again" } };
    await failure(eager.chat.completions.create(request, options));
    sent = 0;
    const other = { ...request, messages: [userMessage("Other")] };
    expect([(await failure(eager.chat.completions.create(other, options))).status, sent]).toEqual([409, 1]);
  });

  test("stream, with the agent's own tools hidden and the texts of its moves separated", async () => {
    const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
    const play = new Play({
      replies: [
        [{ text: "Let me see." }, { call: "double", input: { n: 21 } }, { usage }],
        [{ text: "It is " }, { text: "42." }, { usage }],
      ],
    });
    const {
      text,
      finish,
      calls,
      usage: counted,
      chunks,
    } = await read(
      await client.chat.completions.create({
        model: "handy",
        messages: [userMessage(play.content)],
        stream: true,
        stream_options: { include_usage: true },
      }),
    );
    expect([text, finish, calls]).toEqual(["Let me see.\n\nIt is 42.", ["stop"], []]);
    expect(counted).toMatchObject({ prompt_tokens: 20, completion_tokens: 4, total_tokens: 24 });
    expect(new Set(chunks.map(({ id }) => id)).size).toBe(1);
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
  });

  test("OAI-7 OAI-9 tools that the client runs: the same turn continues, also after a crash, and each call runs once", async () => {
    const play = new Play((key) => ({
      replies: [
        [
          { text: "I look." },
          { call: "look", input: { place: "here" } },
          { call: "save", input: { key, n: 1 } },
          { call: "look", input: { place: "there" } },
        ],
        [{ text: "Nothing." }],
      ],
    }));
    const question = {
      model: "handy",
      messages: [userMessage(play.content)] as OpenAI.ChatCompletionMessageParam[],
      tools: [look],
    };
    const first = await read(await client.chat.completions.create({ ...question, stream: true }));
    expect([first.text, first.finish]).toEqual(["I look.", ["tool_calls"]]);
    expect(first.calls.map((call) => [call.index, call.function?.name, call.function?.arguments])).toEqual([
      [0, "look", '{"place":"here"}'],
      [1, "look", '{"place":"there"}'],
    ]);
    const ids = first.calls.map(({ id }) => id ?? "");
    const calls = first.calls.map((call, index) => ({
      id: ids[index] ?? "",
      type: "function" as const,
      function: { name: call.function?.name ?? "", arguments: call.function?.arguments ?? "" },
    }));
    const results = ids.map((id) => ({ role: "tool" as const, tool_call_id: id, content: "an empty room" }));
    const next = (messages: typeof results) => ({
      ...question,
      messages: [
        ...question.messages,
        { role: "assistant" as const, content: "I look.", tool_calls: calls },
        ...messages,
      ],
    });
    const incomplete = await failure(client.chat.completions.create(next(results.slice(0, 1))));
    expect([incomplete.status, incomplete.param]).toEqual([400, "messages"]);
    expect(incomplete.message).toContain(ids[1]);

    await abortAllDurableObjects();
    const { data, response } = await client.chat.completions.create(next(results)).withResponse();
    expect(data.choices[0]).toMatchObject({ message: { content: "Nothing." }, finish_reason: "stop" });
    const again = await read(await client.chat.completions.create({ ...next(results), stream: true }));
    expect([again.text, again.chunks[0]?.id]).toEqual(["Nothing.", data.id]);
    expect(await play.requests()).toHaveLength(2);
    expect(await play.runs()).toHaveLength(1);
    const { body } = await get(`/api/conversations/${response.headers.get(HEADER)}/turns`, ADA);
    expect(body.turns).toHaveLength(1);

    const other = results.map((result) => ({ ...result, content: "something else" }));
    expect((await failure(client.chat.completions.create(next(other)))).status).toBe(409);
    const stranger = await failure(openai(MEL).chat.completions.create(next(results)));
    const nobody = results.map((result) => ({ ...result, tool_call_id: `call_${"0".repeat(52)}` }));
    const unknown = await failure(client.chat.completions.create(next(nobody)));
    const own = (sent: typeof results) => `conv_${sent[0]?.tool_call_id.slice("call_".length, -26)}`;
    const masked = ({ message }: Error, sent: typeof results) => message.replaceAll(own(sent), "conv_…");
    expect([stranger.status, masked(stranger, results)]).toEqual([404, masked(unknown, nobody)]);
    const foreign = results.map((result, n) => ({ ...result, tool_call_id: `elsewhere_${n}` }));
    expect((await failure(client.chat.completions.create(next(foreign)))).param).toBe(
      "messages[2].tool_call_id",
    );
  });

  test("the client's own loop over tools completes", async () => {
    const play = new Play({
      replies: [
        [{ call: "look", input: { place: "here" } }],
        [{ call: "look", input: { place: "there" } }],
        [{ text: "Both are empty." }],
      ],
    });
    const places: string[] = [];
    const runnable: RunnableToolFunctionWithParse<{ place: string }> = {
      type: "function",
      function: {
        ...look.function,
        parameters: { ...look.function.parameters, required: ["place"] },
        parse: JSON.parse,
        function: ({ place }) => {
          places.push(place);
          return "empty";
        },
      },
    };
    const runner = client.chat.completions.runTools({
      model: "plain",
      messages: [userMessage(play.content)],
      stream: true,
      tools: [runnable],
    });
    expect(await runner.finalContent()).toBe("Both are empty.");
    expect(places).toEqual(["here", "there"]);
    expect(await play.requests()).toHaveLength(3);
  });

  test("PREFIX-2 a restarted reply continues at its position, or ends the stream with an error", async () => {
    const same = new Play({
      replies: [
        {
          attempts: [
            [{ text: "Once upon" }, { gate: "shown" }, { cut: true }],
            [{ text: "Once upon a time." }],
          ],
        },
      ],
    });
    const stream = await client.chat.completions.create({
      model: "plain",
      messages: [userMessage(same.content)],
      stream: true,
    });
    const texts: string[] = [];
    for await (const { choices } of stream) {
      texts.push(choices[0]?.delta.content ?? "");
      if (choices[0]?.delta.content === "Once upon") await same.open("shown");
    }
    expect(texts).toEqual(["", "Once upon", " a time.", ""]);

    const other = new Play({
      replies: [
        { attempts: [[{ text: "Once upon" }, { gate: "shown" }, { cut: true }], [{ text: "Long ago." }]] },
      ],
    });
    const request = { model: "plain", messages: [userMessage(other.content)] };
    const options = { headers: { "Idempotency-Key": "restarted" } };
    const broken = await client.chat.completions.create({ ...request, stream: true }, options);
    let shown = "";
    const ended = await failure(
      (async () => {
        for await (const { choices } of broken) {
          shown += choices[0]?.delta.content ?? "";
          if (shown === "Once upon") await other.open("shown");
        }
      })(),
    );
    expect([ended.code, shown]).toEqual(["reply_restarted", "Once upon"]);
    const whole = await client.chat.completions.create(request, options);
    expect(whole.choices[0]?.message.content).toBe("Long ago.");
    expect(await other.requests()).toHaveLength(2);
  });

  test("FOLLOW-1 a stream outlives its actor", async () => {
    const quiet = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const play = new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: " and half." }]] });
    const stream = await client.chat.completions.create({
      model: "plain",
      messages: [userMessage(play.content)],
      stream: true,
    });
    let text = "";
    for await (const { choices } of stream) {
      text += choices[0]?.delta.content ?? "";
      if (text !== "Half" || (await play.requests()).length > 1) continue;
      await abortAllDurableObjects();
      await play.open("shown");
    }
    expect(text).toBe("Half and half.");
    quiet.mockRestore();
  });

  test("OAI-8 a key identifies one request of one subject", async () => {
    const play = new Play({ replies: [[{ text: "Once." }]] });
    const request = { model: "plain", messages: [userMessage(play.content)] };
    const options = { headers: { "Idempotency-Key": "a key" } };
    const ask = (as = client, more = {}) => as.chat.completions.create({ ...request, ...more }, options);
    const [one, two] = await Promise.all([ask(), ask()]);
    expect(two.id).toBe(one.id);
    expect(
      (await read(await client.chat.completions.create({ ...request, stream: true }, options))).text,
    ).toBe("Once.");
    expect(await play.requests()).toHaveLength(1);
    const differs = await failure(
      ask(client, { messages: [userMessage("Before."), userMessage(play.content)] }),
    );
    expect([differs.status, differs.code]).toEqual([409, "idempotency_conflict"]);
    expect((await ask(openai(MEL))).id).not.toBe(one.id);
  });

  test("leaving a stream does not stop the turn", async () => {
    const play = new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: " and half." }]] });
    const request = { model: "plain", messages: [userMessage(play.content)] };
    const options = { headers: { "Idempotency-Key": "left" } };
    const stream = await client.chat.completions.create({ ...request, stream: true }, options);
    for await (const { choices } of stream) if (choices[0]?.delta.content === "Half") break;
    await play.open("shown");
    const whole = await client.chat.completions.create(request, options);
    expect(whole.choices[0]?.message.content).toBe("Half and half.");
    expect(await play.requests()).toHaveLength(1);
  });

  test("SINGLECALL-1 OAI-11 `parallel_tool_calls: false` reaches the provider, and of several calls the first runs", async () => {
    const call = (n: number) => ({ call: "double", input: { n } });
    const play = new Play({ replies: [[call(1), call(2)], [{ text: "Two." }]] });
    const request = { model: "handy", messages: [userMessage(play.content)], parallel_tool_calls: false };
    const { data, response } = await client.chat.completions.create(request).withResponse();
    expect(data.choices[0]?.message.content).toBe("Two.");
    expect(response.headers.get("x-dramatis-ignored")).toBeNull();
    const [first, second] = await play.requests();
    expect(first?.body).toMatchObject({ parallel_tool_calls: false });
    const results = second?.body.messages.flatMap(({ role, content }) => (role === "tool" ? [content] : []));
    expect(results).toEqual(['{"doubled":2}', expect.stringContaining("One call at a time")]);
  });

  test.each([
    ["n", { n: 2 }],
    ["logprobs", { logprobs: true }],
    ["audio", { audio: { voice: "ash", format: "mp3" } }],
    ["modalities[1]", { modalities: ["text", "audio"] }],
    ["stop", { stop: "." }],
    ["response_format.type", { response_format: { type: "json_object" } }],
    ["unheard_of", { unheard_of: 1 }],
    ["messages", { messages: [{ role: "assistant", content: "And then" }] }],
    ["messages[0].content[0].type", { messages: [{ role: "user", content: [{ type: "input_audio" }] }] }],
    ["messages", { messages: [{ role: "user", content: " " }] }],
    [
      "tools[0].name",
      { tools: [{ ...look, function: { ...look.function, name: "double" } }], model: "handy" },
    ],
    ["tool_choice", { tool_choice: { type: "function", function: { name: "absent" } } }],
  ])("OAI-2 a field that cannot be honoured is named: %s", async (param, fields) => {
    const body = { model: "plain", messages: [userMessage("Hello")], ...fields };
    // SAFETY: that it is no such request is the point.
    const request = body as OpenAI.ChatCompletionCreateParamsNonStreaming;
    const error = await failure(client.chat.completions.create(request));
    expect([error.status, error.param, error.type]).toEqual([400, param, "invalid_request_error"]);
  });

  test("OAI-2 errors have the client's own classes", async () => {
    const request = { model: "plain", messages: [userMessage("Hello")] };
    const unauthenticated = new OpenAI({
      apiKey: "unused",
      baseURL: "http://elsewhere.test/v1",
      maxRetries: 0,
      fetch: fetchAs(null),
    });
    const denied = await failure(unauthenticated.chat.completions.create(request));
    expect(denied).toBeInstanceOf(OpenAI.AuthenticationError);
    expect([denied.type, denied.code]).toEqual(["authentication_error", "unauthenticated"]);
    for (const model of ["absent", "gpt-4.1", "No Such Model"]) {
      const missing = await failure(client.chat.completions.create({ ...request, model }));
      expect([missing.status, missing.code, missing.param]).toEqual([404, "model_not_found", "model"]);
    }
    const play = new Play({ replies: [{ status: 401, message: "No." }] });
    const failed = { model: "plain", messages: [userMessage(play.content)] };
    const whole = await failure(client.chat.completions.create(failed));
    expect([whole.status, whole.code]).toEqual([502, "model_failed"]);
    const streamed = await failure(client.chat.completions.create({ ...failed, stream: true }).then(read));
    expect([streamed.type, streamed.code]).toEqual(["server_error", "model_failed"]);
    const elsewhere = await send("/v1/embeddings", { method: "POST" }, ADA);
    expect(await elsewhere.json()).toMatchObject({ error: { code: "not_found", param: null } });
    const method = await send("/v1/chat/completions", {}, ADA);
    expect([method.status, method.headers.get("allow")]).toEqual([405, "POST"]);
    expect(await method.json()).toMatchObject({ error: { code: "method_not_allowed" } });
  });
});

describe("H9 the official OpenAI client: responses", () => {
  const place = {
    type: "function" as const,
    name: "look",
    description: "Looks at a place.",
    parameters: look.function.parameters,
    strict: false,
  };

  test("continue each other, and are read again", async () => {
    const usage = { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 };
    const first = new Play({ replies: [[{ text: "Good day." }, { usage }]] });
    const { data: one, response } = await client.responses
      .create({ model: "plain", instructions: "Be polite.", input: first.content, store: false })
      .withResponse();
    expect(one).toMatchObject({ object: "response", status: "completed", model: "plain", error: null });
    expect([one.output_text, one.usage?.total_tokens]).toEqual(["Good day.", 10]);
    expect(one.conversation?.id).toBe(response.headers.get(HEADER));
    const second = new Play({ replies: [[{ text: "Good bye." }]] });
    const two = await client.responses.create({
      model: "plain",
      previous_response_id: one.id,
      input: [{ role: "user", content: [{ type: "input_text", text: second.content }] }],
    });
    expect([two.output_text, two.conversation]).toEqual(["Good bye.", one.conversation]);
    const [request] = await second.requests(1);
    expect(request?.body.messages.map(({ content }) => content)).toEqual([
      "You are a test.",
      "Be polite.",
      first.content,
      "Good day.",
      second.content,
    ]);
    const third = new Play({ replies: [[{ text: "Still here." }]] });
    const three = await client.responses.create({
      conversation: one.conversation?.id ?? "",
      input: third.content,
    });
    expect([three.output_text, three.model]).toEqual(["Still here.", "plain"]);
    expect(await client.responses.retrieve(one.id)).toEqual(one);
    expect(await client.responses.retrieve(two.id)).toEqual(two);
    const replayed = await client.responses.stream({ response_id: two.id }).finalResponse();
    expect(replayed.output_text).toBe("Good bye.");
    const listed = await get("/api/conversations?limit=200", ADA);
    expect(JSON.stringify(listed.body)).toContain(one.conversation?.id);

    const branch = await failure(client.responses.create({ previous_response_id: one.id, input: "And?" }));
    expect([branch.status, branch.param]).toEqual([400, "previous_response_id"]);
    const agent = await failure(
      client.responses.create({ model: "handy", previous_response_id: three.id, input: "And?" }),
    );
    expect([agent.status, agent.param]).toEqual([400, "model"]);
    for (const as of [openai(MEL), openai({ ...ADA, tenant: "elsewhere" })]) {
      expect((await failure(as.responses.retrieve(one.id))).status).toBe(404);
      const stolen = await failure(as.responses.create({ previous_response_id: three.id, input: "And?" }));
      expect(stolen.status).toBe(404);
    }
  });

  test("OAI-8 under a key are one, whether they begin a conversation or continue it", async () => {
    const [first, second] = [
      new Play({ replies: [[{ text: "One." }]] }),
      new Play({ replies: [[{ text: "Two." }]] }),
    ];
    const under = (key: string) => ({ headers: { "Idempotency-Key": key } });
    const begin = () => client.responses.create({ model: "plain", input: first.content }, under("begin"));
    const one = await begin();
    expect(await begin()).toEqual(one);
    const next = { previous_response_id: one.id, input: second.content };
    const two = await client.responses.create(next, under("continue"));
    expect(await client.responses.create(next, under("continue"))).toEqual(two);
    const third = new Play({ replies: [[{ text: "Three." }]] });
    await client.responses.create({ previous_response_id: two.id, input: third.content });
    expect(await client.responses.create(next, under("continue"))).toEqual(two);
    const other = await failure(client.responses.create({ ...next, input: "Other" }, under("continue")));
    expect([other.status, other.code]).toEqual([409, "idempotency_conflict"]);
    expect([await first.requests(), await second.requests()].map(({ length }) => length)).toEqual([1, 1]);
  });

  test("stream every event that the client expects, around function calls and a crash", async () => {
    const play = new Play({
      replies: [
        [
          { text: "I look." },
          { call: "look", input: { place: "here" } },
          { call: "look", input: { place: "there" } },
        ],
        [{ text: "Nothing " }, { text: "there." }],
      ],
    });
    const types: string[] = [];
    const numbers: number[] = [];
    const stream = client.responses.stream({ model: "plain", input: play.content, tools: [place] });
    stream.on("event", ({ type, sequence_number: number }) => {
      types.push(type);
      numbers.push(number);
    });
    const one = await stream.finalResponse();
    expect(numbers).toEqual(numbers.map((_, index) => index));
    const message = ["output_item.added", "content_part.added", "output_text.delta", "output_text.done"];
    const call = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done"];
    expect(types.map((type) => type.replace("response.", ""))).toEqual([
      ...["created", "in_progress"],
      ...[...message, "content_part.done", "output_item.done"],
      ...[...call, "output_item.done", ...call, "output_item.done"],
      "completed",
    ]);
    expect(one.output.map(({ type }) => type)).toEqual(["message", "function_call", "function_call"]);
    expect(one.output[0]).toMatchObject({ phase: "commentary" });
    const outputs = one.output.flatMap((item) =>
      item.type === "function_call"
        ? [{ type: "function_call_output" as const, call_id: item.call_id, output: "empty" }]
        : [],
    );
    const well = { role: "user" as const, content: "Well?" };
    for (const input of ["Well?", [well, ...outputs], [...outputs, well]]) {
      const unanswered = await failure(client.responses.create({ previous_response_id: one.id, input }));
      expect([unanswered.status, unanswered.param]).toEqual([400, "input"]);
    }
    await abortAllDurableObjects();
    const two = await client.responses
      .stream({ model: "plain", previous_response_id: one.id, input: outputs })
      .finalResponse();
    expect([two.output_text, two.previous_response_id]).toEqual(["Nothing there.", one.id]);
    expect(two.output[0]).toMatchObject({ phase: "final_answer" });
    const again = await client.responses.create({ previous_response_id: one.id, input: outputs });
    expect([again.id, again.output]).toMatchObject([two.id, [{ content: [{ text: "Nothing there." }] }]]);
    expect(await play.requests()).toHaveLength(2);
    const read = await client.responses.retrieve(one.id);
    expect(read.output.map(({ id }) => id)).toEqual(one.output.map(({ id }) => id));
  });

  test("can be read while they are written, by a client that had left", async () => {
    const play = new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: " and half." }]] });
    let id = "";
    const stream = await client.responses.create({ model: "plain", input: play.content, stream: true });
    for await (const event of stream) {
      if (event.type === "response.created") id = event.response.id;
      if (event.type === "response.output_text.delta") break;
    }
    expect(await client.responses.retrieve(id)).toMatchObject({ id, status: "in_progress", output: [] });
    const read = client.responses.stream({ response_id: id });
    await new Promise((resolve) => read.once("response.output_text.delta", resolve));
    await play.open("shown");
    expect((await read.finalResponse()).output_text).toBe("Half and half.");
    expect(await client.responses.retrieve(id)).toMatchObject({ status: "completed" });
    expect(await play.requests()).toHaveLength(1);
  });

  test("that fail return the error, and unsupported parameters are named", async () => {
    const play = new Play({ replies: [{ status: 401, message: "No." }] });
    const failed = await client.responses.create({ model: "plain", input: play.content });
    expect([failed.status, failed.error?.code]).toEqual(["failed", "server_error"]);
    expect(await client.responses.retrieve(failed.id)).toEqual(failed);
    const better = new Play({ replies: [[{ text: "Now." }]] });
    const next = await client.responses.create({ previous_response_id: failed.id, input: better.content });
    expect(next.output_text).toBe("Now.");
    const events: string[] = [];
    for await (const event of await client.responses.create({
      model: "plain",
      input: play.content,
      stream: true,
    }))
      events.push(event.type);
    expect(events).toEqual(["response.created", "response.in_progress", "response.failed"]);
    for (const [param, fields] of [
      ["tools[0].type", { tools: [{ type: "web_search" }] }],
      ["background", { background: true }],
      ["model", { model: null }],
      ["text.format.type", { text: { format: { type: "json_object" } } }],
    ] as const) {
      const body = { model: "plain", input: "Hello", ...fields };
      // SAFETY: that it is no such request is the point.
      const request = body as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming;
      const error = await failure(client.responses.create(request));
      expect([error.status, error.param]).toEqual([400, param]);
    }
    expect((await failure(client.responses.retrieve("resp_absent"))).status).toBe(404);
    const later = await failure(client.responses.retrieve(next.id, { stream: true, starting_after: 1 }));
    expect([later.status, later.param]).toEqual([400, "starting_after"]);
  });
});

describe("H9 the official OpenAI client: answers that are data", () => {
  const answer = z.object({ city: z.string(), people: z.number() });
  const ROME = { city: "Rome", people: 3 };
  const play = () =>
    new Play({
      replies: [
        [{ text: "Let me see." }, { call: "double", input: { n: 1 } }],
        [{ text: '{"city":"Rome",' }, { text: '"people":3}' }],
      ],
    });

  test("are the last message alone, complete and streamed", async () => {
    const request = {
      model: "handy",
      messages: [userMessage(play().content)],
      response_format: zodResponseFormat(answer, "answer"),
    };
    const whole = await client.chat.completions.parse(request);
    const streamed = await client.chat.completions.stream(request).finalChatCompletion();
    for (const { choices } of [whole, streamed]) expect(choices[0]?.message.parsed).toEqual(ROME);
    const question = {
      model: "handy",
      input: play().content,
      text: { format: zodTextFormat(answer, "answer") },
    };
    const response = await client.responses.parse(question);
    const read = await client.responses.stream(question).finalResponse();
    expect([response.output_parsed, read.output_parsed]).toEqual([ROME, ROME]);
    expect((await client.responses.retrieve(response.id)).output_text).toBe(response.output_text);
  });
});

describe("H9 the AI SDK", () => {
  let conversation: string;
  let api: string;

  beforeEach(async () => {
    conversation = (await post("/api/conversations", { agentId: "handy" }, ADA)).body.id;
    api = `http://dramatis.test/api/conversations/${conversation}/chat`;
  });

  const message = (text: string, id = crypto.randomUUID()): UIMessage => ({
    id,
    role: "user",
    parts: [{ type: "text", text }],
  });

  /** A chat as `useChat` keeps one. */
  const chatOf = (transport: ChatTransport<UIMessage>, messages: UIMessage[] = []) => {
    const errors: string[] = [];
    const onError = (error: Error) => void errors.push(error.message);
    return { chat: new Chat<UIMessage>({ transport, messages, onError }), errors };
  };
  const ours = (principal = ADA) =>
    new ConversationChatTransport({
      conversationId: conversation,
      baseUrl: "http://dramatis.test",
      fetch: fetchAs(principal),
    });

  /** A turn that calls tools. One of them fails. */
  const busy = () =>
    new Play((key) => ({
      replies: [
        [
          { text: "Let me see." },
          { call: "double", input: { n: 21 } },
          { call: "fails", input: { key, retriable: false } },
        ],
        [{ text: "It is " }, { text: "42." }],
      ],
    }));
  const shown = ({ parts }: UIMessage) =>
    parts.map((part) => {
      if (part.type === "text") return part.text;
      if (part.type !== "dynamic-tool") return part.type;
      return [part.toolName, part.state, part.input, part.output ?? part.errorText];
    });
  const storyOf = (key: string) => [
    "step-start",
    "Let me see.",
    ["double", "output-available", { n: 21 }, { doubled: 42 }],
    ["fails", "output-error", { key, retriable: false }, "The shelf is empty."],
    "step-start",
    "It is 42.",
  ];

  test("its own transport and its reader of streams understand a turn; a repeated message gets the same answer", async () => {
    const transport = new DefaultChatTransport({ api, fetch: fetchAs(ADA) });
    const play = busy();
    const options = {
      trigger: "submit-message" as const,
      chatId: "page",
      messageId: undefined,
      messages: [message("Earlier"), message(play.content)],
      abortSignal: undefined,
    };
    const read = async () => {
      let last: UIMessage | undefined;
      const stream = await transport.sendMessages(options);
      for await (const state of readUIMessageStream({ stream, terminateOnError: true })) last = state;
      return last;
    };
    const first = await read();
    expect(first && shown(first)).toEqual(storyOf(play.key));
    expect(await read()).toEqual(first);
    expect(await play.requests()).toHaveLength(2);
    const { body } = await get(`/api/conversations/${conversation}/messages`, ADA);
    expect(body.messages).toHaveLength(2);
    expect(first?.id).toBe(Reflect.get(Object(body.messages[1]), "turnId"));
  });

  test("UISTREAM-4 a chat continues over our transport from the messages of the transcript", async () => {
    const { chat, errors } = chatOf(ours());
    const [first, second] = [busy(), new Play({ replies: [[{ text: "You are welcome." }]] })];
    await chat.sendMessage({ text: first.content });
    await chat.sendMessage({ text: second.content });
    expect([chat.status, errors]).toEqual(["ready", []]);
    expect(chat.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    const { body } = await get(`/api/conversations/${conversation}/messages`, ADA);
    // SAFETY: the API answers messages.
    const initial = toUIMessages(body.messages as unknown as MessageView[]);
    expect(initial.map(({ id, role }) => [id, role])).toEqual(
      chat.messages.map(({ id, role }) => [id, role]),
    );
    const later = chatOf(ours(), initial);
    const third = new Play({ replies: [[{ text: "Still here." }]] });
    await later.chat.sendMessage({ text: third.content });
    expect(later.chat.messages.map((item) => shown(item).at(-1)).slice(1)).toEqual([
      "It is 42.",
      second.content,
      "You are welcome.",
      third.content,
      "Still here.",
    ]);
  });

  test("UISTREAM-1 a chat that resumes shows the turn in progress, if there is any", async () => {
    const play = new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: " and half." }]] });
    // Its `stop` leaves the stream, and the turn continues.
    const first = chatOf(new DefaultChatTransport({ api, fetch: fetchAs(ADA) })).chat;
    const sent = first.sendMessage({ text: play.content });
    await play.reached("shown");
    await first.stop();
    await sent;
    const { chat, errors } = chatOf(ours(), first.messages.slice(0, 1));
    const resumed = chat.resumeStream();
    await expect.poll(() => chat.lastMessage && shown(chat.lastMessage)).toEqual(["step-start", "Half"]);
    await play.open("shown");
    await resumed;
    expect([chat.messages.map(shown), errors]).toEqual([
      [[play.content], ["step-start", "Half and half."]],
      [],
    ]);
    await chat.resumeStream();
    expect([chat.status, chat.messages.length]).toEqual(["ready", 2]);
    expect((await send(new URL(api).pathname, {}, ADA)).status).toBe(204);
  });

  test("two pages show one conversation, each with its own messages and an image", async () => {
    const play = new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: " and half." }]] });
    const [one, two] = [chatOf(ours()), chatOf(ours())];
    const sent = one.chat.sendMessage({ text: play.content });
    await play.reached("shown");
    const resumed = two.chat.resumeStream();
    await expect.poll(() => two.chat.lastMessage?.parts.length).toBe(2);
    const third = chatOf(ours());
    const seen = new Play({ replies: [[{ text: "I see." }]] });
    const url = "data:image/png;base64,iVBORw0KGgo=";
    await third.chat.sendMessage({
      text: seen.content,
      files: [{ type: "file", mediaType: "image/png", url, filename: "dot.png" }],
    });
    await play.open("shown");
    await Promise.all([sent, resumed]);
    expect(one.chat.lastMessage).toEqual(two.chat.lastMessage);
    expect([third.chat.lastMessage && shown(third.chat.lastMessage), third.errors]).toEqual([
      ["step-start", "I see."],
      [],
    ]);
    const [request] = await seen.requests(1);
    expect(JSON.stringify(request?.body.messages.at(-1)?.content)).toContain(url);
  });

  test("UISTREAM-3 a restarted reply replaces the text shown before", async () => {
    const attempts = [
      [{ text: "Once upon" }, { gate: "shown" }, { cut: true as const }],
      [{ text: "Long ago." }],
    ];
    const play = new Play({ replies: [[{ call: "double", input: { n: 1 } }], { attempts }] });
    const { chat, errors } = chatOf(ours());
    const sent = chat.sendMessage({ text: play.content });
    await expect.poll(() => chat.lastMessage && shown(chat.lastMessage).at(-1)).toEqual("Once upon");
    await play.open("shown");
    await sent;
    expect(errors).toEqual([]);
    expect(chat.lastMessage && shown(chat.lastMessage)).toEqual([
      "step-start",
      ["double", "output-available", { n: 1 }, { doubled: 2 }],
      "step-start",
      "Long ago.",
    ]);
  });

  test("G9 CHATREGENERATE-1 answers a message again, without running its calls again", async () => {
    const play = new Play((key) => ({
      replies: [
        [{ call: "charge", input: { key } }],
        { attempts: [[{ text: "One." }], [{ text: "Two." }], [{ text: "Three." }]] },
      ],
    }));
    const { chat, errors } = chatOf(ours());
    await chat.sendMessage({ text: play.content });
    expect(chat.lastMessage && shown(chat.lastMessage).at(-1)).toBe("One.");
    await chat.regenerate();
    expect(chat.lastMessage && shown(chat.lastMessage)).toEqual(["step-start", "Two."]);
    await chat.regenerate({ messageId: chat.lastMessage?.id ?? expect.fail("no message") });
    expect(chat.lastMessage && shown(chat.lastMessage)).toEqual(["step-start", "Three."]);
    expect(chat.messages).toHaveLength(2);
    expect(errors).toEqual([]);
    const { body } = await get(`/api/conversations/${conversation}/messages?limit=200`, ADA);
    // SAFETY: the API answers messages.
    const loaded = toUIMessages(body.messages as unknown as MessageView[]).slice(-2);
    expect(loaded.map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
    expect(await play.runs()).toHaveLength(1);
  });

  test("errors reach the chat", async () => {
    const no = { status: 401, message: "No." };
    const play = new Play({ replies: [{ attempts: [no, [{ text: "Now." }]] }] });
    const failing = chatOf(ours());
    await failing.chat.sendMessage({ text: play.content });
    expect([failing.chat.status, failing.errors.length]).toEqual(["error", 1]);
    expect(failing.errors[0]).toContain("MODEL_FAILED");
    const stranger = chatOf(ours(MEL));
    await stranger.chat.sendMessage({ text: "Hello" });
    expect(stranger.errors.join()).toContain("NOT_FOUND");
    await failing.chat.regenerate();
    expect(failing.chat.lastMessage && shown(failing.chat.lastMessage)).toEqual(["step-start", "Now."]);
    await failing.chat.sendMessage({ text: new Play({ replies: [[{ text: "Now." }]] }).content });
    expect(failing.chat.status).toBe("ready");
  });
});
