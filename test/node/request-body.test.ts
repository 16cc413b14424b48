/** Bodies of requests with media, on a server of this machine. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import { HTTP_PROVIDER_IDS } from "../../src/adapters/gateway/http-providers.ts";
import { PIECE_BYTES, requestBody } from "../../src/adapters/gateway/request-body.ts";
import { aiSdkFormat, collectReply } from "../../src/adapters/index.ts";
import type { DeferredMedia, ModelRequest } from "../../src/model/gateway.ts";
import type { ContextMessage, ContextPart } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { systemClock } from "../../src/ports/system.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { textPayloads } from "../support/chat-replies.ts";
import { contextHistory } from "../support/context-histories.ts";
import { context, user } from "../support/contexts.ts";

const PLACEHOLDER = "media_01ARZ3NDEKTSV4RRFFQ69G5FA";
const CALLER = { tenant: "t", projectId: "p", conversationId: "conv_1", turnId: "turn_1", agentId: "a" };

/** Base64, which the history of a context contains. */
const media: fc.Arbitrary<ContextPart> = fc
  .tuple(fc.uint8Array({ minLength: 1, maxLength: 60 }), fc.constantFrom("image/png", "application/pdf"))
  .map(([bytes, mediaType]): ContextPart => {
    const type = mediaType === "image/png" ? "image" : "file";
    return { type, mediaType, source: { base64: Buffer.from(bytes).toString("base64") } };
  });

/** Replaces media by placeholders. */
function deferred(messages: readonly ContextMessage[]) {
  const sources = new Map<string, DeferredMedia>();
  const defer = (part: ContextPart): ContextPart => {
    if (part.type === "text" || !("base64" in part.source)) return part;
    const placeholder = `${PLACEHOLDER}${String.fromCharCode(65 + sources.size)}`;
    const bytes = Uint8Array.from(Buffer.from(part.source.base64, "base64"));
    const read = async (offset: number, length: number) => bytes.slice(offset, offset + length);
    sources.set(placeholder, { size: bytes.byteLength, read });
    return { ...part, source: { base64: placeholder } };
  };
  const outlined = messages.map((message) =>
    message.parts === undefined ? message : { ...message, parts: message.parts.map(defer) },
  );
  return { outlined, sources };
}

describe("the body of a request with media", () => {
  it.each(HTTP_PROVIDER_IDS)(
    "SENDBODY-1 %s: is byte for byte the JSON with the media in it",
    async (provider) => {
      const profile: ModelProfile = { provider, modelId: "m" };
      const groups = fc
        .tuple(contextHistory(profile, { media }), fc.array(media, { minLength: 1, maxLength: 3 }))
        .map(([history, last]) => [...history.flat(), user(PLACEHOLDER, last)]);
      await fc.assert(
        fc.asyncProperty(groups, fc.integer({ min: 1, max: 25 }), async (messages, pieces) => {
          const { outlined, sources } = deferred(messages);
          fc.pre(sources.size <= 26);
          const adapter = adapterFor(provider);
          const build = (given: ContextMessage[]) =>
            adapter.buildRequest(profile, context({ messages: given }));
          const { init, headers } = requestBody(
            { body: build(outlined), media: sources },
            { pieceBytes: 3 * pieces },
          );
          const sent = await new Response(init.body).text();
          expect(sent).toBe(JSON.stringify(build(messages)));
          expect(headers).toEqual({ "content-length": String(Buffer.byteLength(sent)) });
        }),
      );
    },
  );

  it("SENDBODY-1 without media is a text", () => {
    const { init, headers } = requestBody({ body: { a: 1 }, media: new Map() });
    expect([init, headers]).toEqual([{ body: '{"a":1}' }, {}]);
  });
});

describe("a request with media", () => {
  const received: { text: string; headers: Record<string, unknown> }[] = [];
  const server = createServer(async (request, response) => {
    request.on("error", () => undefined);
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    if (request.url?.includes("impatient")) {
      response.writeHead(401).end("{}");
      return;
    }
    request.on("end", () => {
      received.push({ text: Buffer.concat(chunks).toString(), headers: request.headers });
      response.setHeader("content-type", "text/event-stream");
      response.end(
        textPayloads("Fine.")
          .map((data) => `data: ${data}\n\n`)
          .join(""),
      );
    });
  });
  let baseUrl = "";

  beforeAll(async () => {
    await once(server.listen(0, "127.0.0.1"), "listening");
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const gateway = createModelGateway({ secret: () => undefined, fetch, clock: systemClock });
  const size = 2_000_000;

  function send(read: DeferredMedia["read"], signal = new AbortController().signal, path = "/v1") {
    const request: ModelRequest = {
      profile: { provider: "openai", modelId: "m", baseUrl: baseUrl + path },
      body: { data: PLACEHOLDER },
      media: new Map([[PLACEHOLDER, { size, read }]]),
      context: CALLER,
    };
    return collectReply("openai", gateway.stream(request, signal));
  }

  it("SENDBODY-1 SENDBODY-2 has its length in a header, and is read again for every attempt", async () => {
    const read = vi.fn(async (_offset: number, length: number) => new Uint8Array(length));
    for (const attempt of [1, 2]) {
      expect(await send(read)).toMatchObject({ ok: true, reply: { text: "Fine." } });
      const text = JSON.stringify({ data: Buffer.alloc(size).toString("base64") });
      const { text: sent, headers } = received[attempt - 1] ?? { text: "", headers: {} };
      expect(sent === text).toBe(true);
      expect(headers).toMatchObject({ "content-length": String(text.length) });
      expect(headers).not.toHaveProperty("transfer-encoding");
      expect(read.mock.calls.filter(([offset]) => offset === 0)).toHaveLength(attempt);
    }
  });

  it("SENDBODY-2 reading ends with a stop, and an abort stops it", async () => {
    const read = vi.fn(async (_offset: number, length: number) => new Uint8Array(length));
    const media = new Map([[PLACEHOLDER, { size, read }]]);
    const { init, stop } = requestBody({ body: { data: PLACEHOLDER }, media });
    if (typeof init.body === "string") throw new Error("A body with media is a stream.");
    const reader = init.body.getReader();
    for (let piece = 0; piece < 2; piece++) await reader.read();
    const before = read.mock.calls.length;
    stop();
    while (!(await reader.read()).done);
    expect(before).toBeLessThan(4);
    expect(read.mock.calls.length).toBeLessThanOrEqual(before + 1);

    const controller = new AbortController();
    const outcome = await send(async (_offset, length) => {
      controller.abort(new DOMException("No.", "AbortError"));
      return new Uint8Array(length);
    }, controller.signal);
    expect(outcome).toMatchObject({ ok: false, error: { category: "canceled" } });
  });

  it("SENDBODY-2 a server that refuses early gets its say", async () => {
    const outcome = await send(async (_offset, length) => new Uint8Array(length), undefined, "/impatient");
    expect(outcome).toMatchObject({ ok: false });
  });

  it("a read that fails ends the attempt", async () => {
    const failing = async () => Promise.reject(new DramatisError("UNAVAILABLE", "Gone."));
    expect(await send(failing)).toMatchObject({ ok: false, error: { retriable: true } });
  });

  it("DEADLINE-4 the limit until the reply begins starts when the body is sent, and reading media does not count", async () => {
    const clock = new VirtualClock();
    let stalls = false;
    let isSent = false;
    const slow = createModelGateway({
      secret: () => undefined,
      clock,
      async fetch(_url, { body, signal }) {
        const silence = new Promise<never>((_, reject) =>
          signal?.addEventListener("abort", () => reject(signal.reason)),
        );
        if (stalls) return silence;
        await new Response(body).arrayBuffer();
        isSent = true;
        return silence;
      },
    });
    const read = async (_offset: number, length: number) => {
      await clock.sleep(12_000);
      return new Uint8Array(length);
    };
    const ends = async () => {
      const startedAt = clock.now();
      const request: ModelRequest = {
        profile: {
          provider: "openai",
          modelId: "m",
          baseUrl,
          executionConfig: { firstByteTimeoutMs: 10_000 },
        },
        body: { data: PLACEHOLDER },
        media: new Map([[PLACEHOLDER, { size: 3 * PIECE_BYTES, read }]]),
        context: CALLER,
      };
      const outcome = collectReply("openai", slow.stream(request, new AbortController().signal));
      let isOver = false;
      void outcome.then(() => {
        isOver = true;
      });
      while (!isOver) await clock.advance(1_000);
      expect(await outcome).toMatchObject({ ok: false, error: { category: "timeout" } });
      return Math.round((clock.now() - startedAt) / 1_000);
    };
    expect([await ends(), isSent]).toEqual([3 * 12 + 10, true]);
    stalls = true;
    expect(await ends(), "a server that reads no data").toBe(10);
    expect(clock.pending).toBe(0);
  });

  it("is refused for a provider with a transport that takes media only inline", async () => {
    const profile: ModelProfile = { provider: aiSdkFormat.provider, modelId: "m" };
    expect(gateway.streamsMedia?.(profile)).toBe(false);
    const media = new Map([[PLACEHOLDER, { size: 1, read: () => expect.unreachable() }]]);
    const request = { profile, body: { prompt: [] }, media, context: CALLER };
    expect(await collectReply("ai-sdk", gateway.stream(request, new AbortController().signal))).toMatchObject(
      {
        ok: false,
        error: { category: "validation", message: expect.stringContaining("inline in the body") },
      },
    );
  });
});
