/** Frames on their way to readers: text in pieces, and connections that cannot be opened. */
import { describe, expect, test } from "vitest";
import type { Client } from "../../src/agents/base/sockets/client.ts";
import { DeltaBuffer } from "../../src/agents/conversation/effects/delta-buffer.ts";
import { type ConnectionContext, openConnection } from "../../src/agents/conversation/inbound/connections.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";

const ADA: Principal = { tenant: "test", subject: "ada", roles: ["member"] };

test("DELTA-1 the pieces of a text, joined, are its beginning, and their offsets count UTF-16 units", () => {
  const pieces: unknown[] = [];
  const clock = new VirtualClock();
  const publish = (frames: Frame[]) => void pieces.push(...frames.map(({ data }) => data));
  const deltas = new DeltaBuffer({ clock, publish });
  for (const text of ["Hi \u{1f44b}", "! How are", " you"]) {
    deltas.append("turn_1", "msg_1", text);
    if (text !== " you") deltas.flush();
  }
  expect(pieces).toEqual([
    { offset: 0, text: "Hi \u{1f44b}" },
    { offset: 5, text: "! How are" },
  ]);
});

test("DELTA-2 a surrogate pair that arrives in halves is published as one", () => {
  const pieces: unknown[] = [];
  const clock = new VirtualClock();
  const publish = (frames: Frame[]) => void pieces.push(...frames.map(({ data }) => data));
  const deltas = new DeltaBuffer({ clock, publish });
  deltas.append("turn_1", "msg_1", "Hi \ud83d");
  deltas.flush();
  deltas.append("turn_1", "msg_1", "\udc4b!");
  deltas.flush();
  expect(pieces).toEqual([
    { offset: 0, text: "Hi " },
    { offset: 3, text: "\ud83d\udc4b!" },
  ]);
});

describe("CONN-5 a connection that fails to open", () => {
  test.each([
    ["for now", new DramatisError("UNAVAILABLE", "A newer release stored it.", { retriable: true }), 1013],
    ["for good", new DramatisError("NOT_FOUND", "There is no conversation."), 4404],
  ])("%s is closed with its code", (_, error, code) => {
    const closed: [number, string][] = [];
    const sent: string[] = [];
    // SAFETY: an opening that fails uses these members of a connection only.
    const client = {
      send: (text: string) => void sent.push(text),
      close: (closeCode: number, reason: string) => void closed.push([closeCode, reason]),
    } as unknown as Client;
    // SAFETY: an opening that fails uses these ports only.
    const ports = {
      cursor: () => {
        throw error;
      },
      readers: { closed: () => undefined },
      connections: () => 1,
      clock: new VirtualClock(),
    } as unknown as ConnectionContext;
    openConnection(ports, client, ADA);
    expect(closed).toEqual([[code, error.code]]);
    expect(sent.map((text) => JSON.parse(text).data.code)).toEqual([error.code]);
  });
});
