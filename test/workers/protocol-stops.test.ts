/** Stops as the official clients of other protocols ask for them and see them, on the real Worker. */
import { exports } from "cloudflare:workers";
import { Chat } from "@ai-sdk/react";
import { type ChatTransport, DefaultChatTransport, type UIMessage } from "ai";
import OpenAI from "openai";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ConversationChatTransport } from "../../src/client/ai-sdk/index.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { get, post } from "./http-client.ts";
import { Play } from "./provider.ts";

const ADA: Principal = { subject: "ada", tenant: "protocol-stops", roles: ["admin"] };
const HEADER = "x-dramatis-conversation";
const HOST = "http://dramatis.test";

const fetchAsAda = (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
  const headers = new Headers(init.headers);
  headers.set("x-test-principal", JSON.stringify(ADA));
  return exports.default.fetch(new Request(input, { ...init, headers }));
};

beforeAll(async () => {
  for (const [id, persona] of [
    ["plain", "test/plain"],
    ["handy", "test/handy"],
  ]) {
    expect((await post("/api/agents", { id, persona }, ADA)).status).toBe(201);
  }
});

const half = () => new Play({ replies: [[{ text: "Half" }, { gate: "shown" }, { text: " and half." }]] });

/** The turns of a conversation, the newest first. */
async function turnsOf(conversation: string): Promise<TurnView[]> {
  const { body } = await get(`/api/conversations/${conversation}/turns?order=desc`, ADA);
  // SAFETY: the API answers turns; tests read their summaries only.
  return body.turns as unknown as TurnView[];
}

/** Stops the newest turn of a conversation, as somebody else may do. */
async function stopNewest(conversation: string): Promise<void> {
  const [turn] = await turnsOf(conversation);
  const { status } = await post(`/api/conversations/${conversation}/turns/${turn?.id}/cancel`, {}, ADA);
  expect(status).toBe(200);
}

describe("G18 useChat", () => {
  let conversation: string;
  let api: string;

  beforeEach(async () => {
    conversation = (await post("/api/conversations", { agentId: "handy" }, ADA)).body.id;
    api = `${HOST}/api/conversations/${conversation}/chat`;
  });

  const chatOf = (transport: ChatTransport<UIMessage>, messages: UIMessage[] = []) => {
    const errors: string[] = [];
    const onError = (error: Error) => void errors.push(error.message);
    return { chat: new Chat<UIMessage>({ transport, messages, onError }), errors };
  };
  const ours = (send: typeof fetch = fetchAsAda) =>
    new ConversationChatTransport({ conversationId: conversation, baseUrl: HOST, fetch: send });
  /** A transport with a `stop` that only leaves the stream. */
  const foreign = () => new DefaultChatTransport({ api, fetch: fetchAsAda });
  const textOf = (message: UIMessage | undefined) =>
    message?.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  const statusOf = async () =>
    (await turnsOf(conversation)).map(({ status, error }) => error?.code ?? status);

  test("UISTOP-1 stop() ends the turn, aborts its model call, and the chat is ready at once", async () => {
    const { chat, errors } = chatOf(ours());
    for (let stops = 1; stops <= 3; stops++) {
      const play = half();
      const sent = chat.sendMessage({ text: play.content });
      await expect.poll(() => [chat.messages.length, textOf(chat.lastMessage)]).toEqual([2 * stops, "Half"]);
      await chat.stop();
      expect(chat.status).toBe("ready");
      await sent;
      expect(await play.closes(1)).toEqual([{ reply: 0 }]);
      await expect.poll(statusOf).toEqual(Array(stops).fill("CANCELLED"));
      expect([textOf(chat.lastMessage), errors]).toEqual(["Half", []]);
    }

    const next = new Play({ replies: [[{ text: "Next." }]] });
    await chat.sendMessage({ text: next.content });
    expect([chat.status, textOf(chat.lastMessage)]).toEqual(["ready", "Next."]);
  });

  test("UISTOP-1 stop() before the answer begins ends the turn once its id is known", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let isHeld = false;
    const slow: typeof fetch = async (input, init) => {
      const response = await fetchAsAda(input, init);
      if (isHeld) await held;
      return response;
    };
    const play = half();
    const { chat, errors } = chatOf(ours(slow));
    isHeld = true;
    const sent = chat.sendMessage({ text: play.content });
    await play.reached("shown");
    expect(chat.status).toBe("submitted");
    await chat.stop();
    expect([chat.status, errors]).toEqual(["ready", []]);
    expect(await statusOf()).toEqual(["active"]);
    isHeld = false;
    release();
    await sent;
    await expect.poll(statusOf).toEqual(["CANCELLED"]);
  });

  test("UISTOP-1 reload, resume, stop(): the turn is CANCELLED", async () => {
    const play = half();
    const before = chatOf(foreign()).chat;
    void before.sendMessage({ text: play.content });
    await play.reached("shown");
    const { chat, errors } = chatOf(ours(), before.messages.slice(0, 1));
    const resumed = chat.resumeStream();
    await expect.poll(() => textOf(chat.lastMessage)).toBe("Half");
    await chat.stop();
    await resumed;
    expect([chat.status, errors]).toEqual(["ready", []]);
    await expect.poll(statusOf).toEqual(["CANCELLED"]);
  });

  test("UISTOP-2 two resumes at once show one text; a replaced resume, a broken stream and a closed page stop no turn", async () => {
    const play = half();
    const before = chatOf(foreign()).chat;
    void before.sendMessage({ text: play.content });
    await play.reached("shown");
    await before.stop();

    const broken = chatOf(
      ours(async (input, init) => {
        const response = await fetchAsAda(input, init);
        const [kept, left] = response.body?.tee() ?? [];
        await left?.cancel();
        const reader = kept?.getReader();
        const body = new ReadableStream({
          async pull(controller) {
            controller.enqueue((await reader?.read())?.value);
            controller.error(new TypeError("network error"));
          },
        });
        return new Response(body, response);
      }),
    );
    await broken.chat.resumeStream();
    expect(broken.errors).toHaveLength(1);

    const { chat, errors } = chatOf(ours());
    const resumes = [chat.resumeStream(), chat.resumeStream()];
    await expect.poll(() => textOf(chat.lastMessage)).toBe("Half");
    resumes.push(chat.resumeStream());
    await Promise.all(resumes.slice(0, 2));
    await play.open("shown");
    await Promise.all(resumes);
    expect([chat.messages.map(textOf), errors]).toEqual([["Half and half."], []]);
    expect(await statusOf()).toEqual(["completed"]);
  });

  test("UISTREAM-1 a page that shows a turn which somebody stops is ready, with its tools ended and no error", async () => {
    const play = new Play((key) => ({
      replies: [[{ text: "Let me see." }, { call: "patient", input: { key } }]],
    }));
    const { chat, errors } = chatOf(ours());
    const sent = chat.sendMessage({ text: play.content });
    await play.runs(1);
    await stopNewest(conversation);
    await sent;
    expect([chat.status, errors, textOf(chat.lastMessage)]).toEqual(["ready", [], "Let me see."]);
    const tool = chat.lastMessage?.parts.find(({ type }) => type === "dynamic-tool");
    expect(tool).toMatchObject({ state: "output-error", errorText: expect.stringContaining("stopped") });
  });

  test("UISTREAM-1 a message to a stopped conversation ends without an answer and without an error", async () => {
    await post(`/api/conversations/${conversation}/cancel`, {}, ADA);
    const { chat, errors } = chatOf(ours());
    await chat.sendMessage({ text: half().content });
    expect([chat.status, errors]).toEqual(["ready", []]);
    expect(await statusOf()).toEqual(["CANCELLED"]);
  });
});

describe("G18 the official OpenAI client", () => {
  const client = new OpenAI({ apiKey: "unused", baseURL: `${HOST}/v1`, fetch: fetchAsAda });
  const failure = async (promise: Promise<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> => {
    const error: unknown = await promise.then(
      () => null,
      (reason: unknown) => reason,
    );
    if (error instanceof OpenAI.APIError) return error;
    throw new Error(`No error of the API: ${String(error)}`);
  };

  test("ANSWER-3 a chat completion that is stopped is an error, complete and streamed, and is not sent again", async () => {
    const play = half();
    const request = { model: "plain", messages: [{ role: "user" as const, content: play.content }] };
    const options = { headers: { "Idempotency-Key": "stopped" } };
    const { data: stream, response } = await client.chat.completions
      .create({ ...request, stream: true }, options)
      .withResponse();
    const whole = failure(client.chat.completions.create(request, options));
    let text = "";
    const streamed = failure(
      (async () => {
        for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
      })(),
    );
    await play.reached("shown");
    await stopNewest(response.headers.get(HEADER) ?? "");
    expect([(await streamed).code, "Half".startsWith(text)]).toEqual(["cancelled", true]);
    const error = await whole;
    expect([error.status, error.code, error.headers?.get("x-should-retry")]).toEqual([
      409,
      "cancelled",
      "false",
    ]);
    expect(await play.requests()).toHaveLength(1);
  });

  test("ANSWER-3 OAI-6 a stopped response is cancelled, with the shown text", async () => {
    const play = half();
    const stream = client.responses.stream({ model: "plain", input: play.content });
    let id = "";
    stream.on("response.created", ({ response }) => {
      id = response.id;
    });
    await new Promise((resolve) => stream.once("response.output_text.delta", resolve));
    const cancelled = await client.responses.cancel(id);
    expect([cancelled.id, cancelled.status, cancelled.error]).toEqual([id, "cancelled", null]);
    const final = await stream.finalResponse();
    expect([final.status, final.output_text]).toEqual(["cancelled", "Half"]);
    expect(final.output).toMatchObject([{ type: "message", status: "incomplete" }]);
    expect((await client.responses.retrieve(id)).output).toEqual(cancelled.output);
    expect(await client.responses.cancel(id)).toEqual(cancelled);

    const next = new Play({ replies: [[{ text: "Next." }]] });
    const done = await client.responses.create({ previous_response_id: id, input: next.content });
    expect(done.output_text).toBe("Next.");
    const late = await failure(client.responses.cancel(done.id));
    expect([late.status, late.code]).toEqual([409, "conflict"]);
    expect((await failure(client.responses.cancel("resp_absent"))).status).toBe(404);
  });
});
