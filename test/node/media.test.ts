/** The media of a conversation: the media that content may name, and the model's input. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PIECE_BYTES } from "../../src/adapters/gateway/request-body.ts";
import type { ConversationMedia } from "../../src/agents/conversation/context.ts";
import {
  checkMedia,
  MAX_MEDIA_BYTES,
  MediaReads,
  mediaBytes,
  withMedia,
} from "../../src/agents/conversation/effects/media.ts";
import { addressIssue, mediaTypeOf } from "../../src/attachments/attachment.ts";
import { AttachmentStore } from "../../src/attachments/attachment-store.ts";
import { eventToMessage, messageToEvent } from "../../src/memory/session/events.ts";
import type { ContextMessage, ContextPart } from "../../src/model/messages.ts";
import { MemoryObjectStore } from "../../src/ports/node/memory-object-store.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { objectStoreContract } from "../support/object-store-contract.ts";

const MINE = { tenant: "acme", conversationId: "conv_01JD0000000000000000000000" };
const OTHERS = [
  { ...MINE, conversationId: "conv_01JD0000000000000000000001" },
  { ...MINE, tenant: "globex" },
];
const id = (n: number) => `att_01JD00000000000000000000${String(n).padStart(2, "0")}`;
const url = (n: number) => `attachment:${id(n)}`;

function mediaOf(store: AttachmentStore, owner = MINE): ConversationMedia {
  return { head: (id) => store.head(owner, id), read: (info, range) => store.read(owner, info, range) };
}

async function stored(sizes: readonly number[], mediaType = "image/png"): Promise<AttachmentStore> {
  const store = new AttachmentStore(new MemoryObjectStore());
  for (const [n, size] of sizes.entries()) {
    await store.put(MINE, { id: id(n), mediaType, name: `é${n}.png`, bytes: new Uint8Array(size).fill(n) });
  }
  return store;
}

const userMessage = (...parts: ContextPart[]): ContextMessage => ({ role: "user", content: "", parts });
const image = (url: string): ContextPart => ({ type: "image", source: { url } });

describe("objects in memory", () => objectStoreContract(() => new MemoryObjectStore()));

describe("media that content may name", () => {
  it("ATTACH-1 G12 an attachment is found by its own conversation only", async () => {
    const store = await stored([3]);
    const content = [{ type: "image" as const, url: url(0) }];
    await checkMedia(content, mediaOf(store));
    for (const owner of OTHERS) {
      await expect(checkMedia(content, mediaOf(store, owner))).rejects.toMatchObject({
        code: "INVALID_INPUT",
        options: {
          errors: [{ path: "/content/0/url", message: expect.stringContaining("Upload it here first") }],
        },
      });
    }
  });

  it("ATTACH-2 is an attachment, an https address or a data URL", () => {
    for (const good of [
      url(0),
      "https://example.com/a.png",
      "HTTPS://example.com/ä?a=1#b",
      "data:image/png;base64,AAAA",
    ]) {
      expect(addressIssue(good)).toBeUndefined();
    }
    const bad = ["", "attachment:", "attachment:../secret", "http://example.com/a.png", "file:///etc/passwd"];
    const alsoBad = [
      "javascript:alert(1)",
      "data:text/plain,hello",
      "data:;base64,AAAA",
      "data:a/b;base64,AAA",
      "//x",
      "https://ada:secret@example.com/a.png",
      "https://ada@example.com/a.png",
      " https://example.com/a.png",
      "https://example.com/a\n.png",
      "https://exa\u0000mple.com/a.png",
      "https:example.com/a.png",
    ];
    for (const address of [...bad, ...alsoBad])
      expect(addressIssue(address), address).toEqual(expect.any(String));
    fc.assert(
      fc.property(fc.string(), (text) => {
        const isKnown = /^(attachment:att_|https:|data:)/i.test(text.trim());
        return isKnown || addressIssue(text) !== undefined;
      }),
    );
  });

  it("MEDIA-1 an image must be one, and all parts that are wrong are named", async () => {
    const media = mediaOf(await stored([3], "application/pdf"));
    await checkMedia([{ type: "file", url: url(0) }], media);
    const content = [
      { type: "text" as const, text: "See" },
      { type: "image" as const, url: url(0) },
      { type: "file" as const, url: "http://localhost/" },
    ];
    await expect(checkMedia(content, media)).rejects.toMatchObject({
      code: "INVALID_INPUT",
      message: expect.stringMatching(/: \/content\/1\/url: .+[^.]; \/content\/2\/url: /),
      options: { errors: [{ path: "/content/1/url" }, { path: "/content/2/url" }] },
    });
  });

  it("MEDIA-1 without storage for attachments, the error names the binding to add", async () => {
    await checkMedia([{ type: "image", url: "https://example.com/a.png" }], undefined);
    await expect(checkMedia([{ type: "image", url: url(0) }], undefined)).rejects.toMatchObject({
      code: "UNAVAILABLE",
      message: expect.stringContaining("BUCKET"),
    });
  });

  it("a media type is read without its parameters, and invalid types are refused", () => {
    expect(mediaTypeOf("Text/Plain; charset=utf-8")).toBe("text/plain");
    for (const other of [null, "", "image", "a/b/c", "image/png\r\nx: y", "/png"]) {
      expect(mediaTypeOf(other)).toBeUndefined();
    }
  });
});

describe("media for a model", () => {
  it("MEDIA-2 G12 attachments and data URLs by value, with their own media type and name; addresses unchanged", async () => {
    const media = mediaOf(await stored([3]));
    const [message] = await withMedia(
      [userMessage(image(url(0)), image("https://example.com/a.png"), image("data:image/gif;base64,AAAA"))],
      media,
    );
    expect(message?.parts).toEqual([
      { type: "image", mediaType: "image/png", name: "é0.png", source: { base64: "AAAA" } },
      image("https://example.com/a.png"),
      { type: "image", mediaType: "image/gif", source: { base64: "AAAA" } },
    ]);
  });

  it("MEDIA-2 missing media and media beyond the limit become a text; the newest media have priority", async () => {
    const third = MAX_MEDIA_BYTES / 2 - 4;
    const media = mediaOf(await stored([third, third, third]));
    const messages = [
      userMessage(image(url(0))),
      userMessage(image(url(1)), image(url(9))),
      userMessage(image(url(2))),
    ];
    const given = (await withMedia(messages, media)).map(({ parts = [] }) =>
      parts.map((part) => (part.type === "text" ? part.text : part.name)),
    );
    expect(given).toEqual([
      ["[The image is not sent again, to save room.]"],
      ["é1.png", "[The image is no longer there.]"],
      ["é2.png"],
    ]);
  });

  it("MEDIA-2 bytes survive base64 exactly", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 100_000 }), async (bytes) => {
        const store = new AttachmentStore(new MemoryObjectStore());
        await store.put(MINE, { id: id(0), mediaType: "image/png", bytes });
        const [message] = await withMedia([userMessage(image(url(0)))], mediaOf(store));
        const [part] = message?.parts ?? [];
        if (part?.type !== "image" || !("base64" in part.source)) throw new Error("not by value");
        expect(Buffer.from(part.source.base64, "base64").equals(Buffer.from(bytes))).toBe(true);
      }),
      { numRuns: 20 },
    );
  });

  it("MEDIA-2 MEDIA-4 attachments other than texts are deferred, and read in the looked-up version, or not at all", async () => {
    const store = await stored([4, 5]);
    const text = { id: id(2), mediaType: "text/plain", bytes: new Uint8Array([65]) };
    await store.put(MINE, text);
    const media = mediaOf(store);
    const reads = new MediaReads(media, seededIds(1, { now: () => 1 }), () => undefined);
    const messages = [userMessage(image(url(0)), image(url(1)), { type: "file", source: { url: url(2) } })];
    const [message] = await withMedia(messages, media, reads);
    const [first, second] = [...reads.deferred].toReversed();
    expect(message?.parts).toMatchObject([
      { source: { base64: first?.[0] }, mediaType: "image/png", name: "é0.png" },
      { source: { base64: second?.[0] } },
      { source: { base64: "QQ==" } },
    ]);
    expect(first?.[0]).not.toBe(second?.[0]);
    expect(await first?.[1].read(1, 2)).toEqual(new Uint8Array(2));
    expect([first?.[1].size, second?.[1].size, reads.signal.aborted]).toEqual([4, 5, false]);
    await store.put(MINE, { id: id(0), mediaType: "image/png", bytes: new Uint8Array(4) });
    const changed = { code: "UNAVAILABLE", retriable: true, message: expect.stringContaining("replaced") };
    await expect(first?.[1].read(3, 1)).rejects.toMatchObject(changed);
    expect(reads.signal.reason).toMatchObject(changed);
  });

  it("MEDIABUDGET-1 a call that streams holds one piece of its deferred media, and its texts", async () => {
    const store = await stored([2 * PIECE_BYTES, 100]);
    await store.put(MINE, { id: id(2), mediaType: "text/plain", bytes: new Uint8Array(7) });
    const messages = [userMessage(image(url(0)), image(url(1)), { type: "file", source: { url: url(2) } })];
    expect(await mediaBytes(messages, mediaOf(store), false)).toBe(2 * PIECE_BYTES + 107);
    expect(await mediaBytes(messages, mediaOf(store), true)).toBe(PIECE_BYTES + 7);
  });

  it("EVENT-3 a message with media that becomes an event and a message again keeps them", () => {
    const message: ContextMessage = {
      role: "user",
      content: "Look",
      parts: [
        { type: "text", text: "Look" },
        { type: "image", source: { url: url(0) } },
        { type: "file", source: { base64: "AAAA" }, mediaType: "application/pdf", name: "a.pdf" },
      ],
    };
    const again = eventToMessage(messageToEvent("s", message));
    expect(again?.parts).toEqual([
      ...(message.parts ?? []).slice(0, 2),
      {
        type: "file",
        source: { url: "data:application/pdf;base64,AAAA" },
        mediaType: "application/pdf",
        name: "a.pdf",
      },
    ]);
  });
});
