/** The operations that conversations hand over to the memory of their agent, by envelopes. */
import { exports } from "cloudflare:workers";
import { ulid } from "ulid";
import { describe, expect, test } from "vitest";
import type { AgentApi } from "../../src/protocol/agent-api.ts";
import type { Envelope } from "../../src/protocol/envelope.ts";
import type { MailboxPeer } from "../../src/protocol/mailbox-api.ts";
import {
  type ExtractedMemories,
  MEMORY_EXTRACTED,
  MEMORY_SOURCES_ERASED,
  type MemoryReader,
  type MemoryWriter,
} from "../../src/protocol/memory.ts";
import { unwrap } from "../../src/shared/errors.ts";
import type { Json } from "../../src/shared/json.ts";
import { ADA, createAgent } from "./world.ts";

const READER: MemoryReader = { principal: ADA };

async function newAgent(given?: string) {
  const id = given ?? (await createAgent("test/careful"));
  // SAFETY: the class of the export has both interfaces.
  const stub = exports.Agent.getByName(`${ADA.tenant}:${id}`) as unknown as AgentApi & MailboxPeer;
  const send = (type: string, from: string, body: object, operationId = `op_${ulid()}`) => {
    const envelope: Envelope = {
      operationId,
      from: { kind: "conversation", tenant: ADA.tenant, id: from },
      to: { kind: "agent", tenant: ADA.tenant, id },
      type,
      // SAFETY: the bodies of these tests are plain data.
      body: body as Json,
      sentAt: Date.now(),
    };
    return stub.receive(envelope, { number: 1, last: false });
  };
  return { stub, send };
}

function extracted(conversationId: string, content: string): ExtractedMemories {
  return {
    operationId: `op_${ulid()}`,
    scope: "user",
    subject: { userId: "ada", conversationId },
    source: { conversationId, turnId: `turn_${ulid()}` },
    time: "2025-06-01T10:00:00.000Z",
    used: [],
    operations: [{ op: "write", content }],
  };
}

describe("extractions of conversations", () => {
  test("A41 EXTRACTED-3 twenty at once: each conversation's own fact is there, and the common fact is one row with twenty sources", async () => {
    const { stub, send } = await newAgent();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => {
        const conversationId = `conv_${ulid()}`;
        const body = extracted(conversationId, "Ada is allergic to nuts.");
        body.operations.push({ op: "write", content: `Ada's note number ${index}.` });
        return send(MEMORY_EXTRACTED, conversationId, body);
      }),
    );
    for (const answer of answers)
      expect(answer).toMatchObject({ type: "done", result: { outcomes: [{}, { status: "applied" }] } });
    const { items } = unwrap(await stub.listMemories(READER, { limit: 200 }));
    expect(items).toHaveLength(21);
    const [shared] = items.filter(({ content }) => content.includes("nuts"));
    expect(unwrap(await stub.whyMemory(READER, shared?.id ?? "")).sources).toHaveLength(20);
  });

  test("EXTRACTED-1 a repeated envelope applies once", async () => {
    const { stub, send } = await newAgent();
    const conversationId = `conv_${ulid()}`;
    const body = extracted(conversationId, "Ada has a boat.");
    const operationId = `op_${ulid()}`;
    const first = await send(MEMORY_EXTRACTED, conversationId, body, operationId);
    expect(await send(MEMORY_EXTRACTED, conversationId, body, operationId)).toEqual(first);
    expect(await send(MEMORY_EXTRACTED, conversationId, body)).toEqual(first);
    expect(unwrap(await stub.listMemories(READER)).items).toMatchObject([{ version: 1 }]);
  });

  test("a conversation cannot send an extraction in the name of another, and an extraction for an unknown agent is refused", async () => {
    const { stub, send } = await newAgent();
    const [own, other] = [`conv_${ulid()}`, `conv_${ulid()}`];
    expect(await send(MEMORY_EXTRACTED, own, extracted(other, "Forged."))).toMatchObject({
      type: "refused",
      error: { code: "INVALID_INPUT" },
    });
    await send(MEMORY_EXTRACTED, other, extracted(other, "True."));
    expect(await send(MEMORY_SOURCES_ERASED, own, { conversationId: other })).toMatchObject({
      type: "refused",
    });
    const nobody = await newAgent(`nobody-${ulid().toLowerCase()}`);
    expect(await nobody.send(MEMORY_EXTRACTED, own, extracted(own, "Lost."))).toMatchObject({
      type: "refused",
      error: { code: "NOT_FOUND" },
    });
    expect(unwrap(await stub.listMemories(READER)).items).toMatchObject([{ content: "True." }]);
  });

  test("H6 MEMSRC-1 memories that were learned only from one conversation are removed with it", async () => {
    const { stub, send } = await newAgent();
    const [one, two] = [`conv_${ulid()}`, `conv_${ulid()}`];
    await send(MEMORY_EXTRACTED, one, extracted(one, "Ada plays the cello."));
    await send(MEMORY_EXTRACTED, two, extracted(two, "Ada plays chess."));
    expect(await send(MEMORY_SOURCES_ERASED, one, { conversationId: one })).toMatchObject({
      type: "done",
      result: null,
    });
    expect(unwrap(await stub.listMemories(READER)).items.map(({ content }) => content)).toEqual([
      "Ada plays chess.",
    ]);
    const { matches } = unwrap(await stub.searchMemories(READER, { query: "What does Ada play?" }));
    expect(matches.map(({ memory }) => memory.content)).toEqual(["Ada plays chess."]);
  });

  test("MEMSRC-5 MEMSRC-4 deleting a conversation removes all that it taught, and it teaches no more", async () => {
    const { stub, send } = await newAgent();
    const [one, two] = [`conv_${ulid()}`, `conv_${ulid()}`];
    const writer: MemoryWriter = {
      reader: READER,
      author: { kind: "principal", subject: ADA.subject },
      sources: [{ conversationId: one, turnId: `turn_${ulid()}` }],
    };
    for (let batch = 0; batch < 3; batch++) {
      const inputs = Array.from({ length: 100 }, (_, n) => ({ content: `Ada's note number ${batch}.${n}.` }));
      unwrap(await stub.writeMemories(writer, inputs));
    }
    await send(MEMORY_EXTRACTED, two, extracted(two, "Ada plays chess."));
    await send(MEMORY_SOURCES_ERASED, one, { conversationId: one });
    const texts = async () => unwrap(await stub.listMemories(READER)).items.map(({ content }) => content);
    expect(await texts()).toEqual(["Ada plays chess."]);
    await expect
      .poll(async () => unwrap(await stub.memoryStatus()))
      .toMatchObject({ memories: 1, pending: { records: 0 } });
    expect(await send(MEMORY_EXTRACTED, one, extracted(one, "Ada plays the cello."))).toMatchObject({
      type: "done",
      result: { outcomes: [{ status: "refused", code: "CONFLICT" }] },
    });
    expect(await stub.writeMemories(writer, [{ content: "Ada sings." }])).toMatchObject({
      error: { code: "CONFLICT" },
    });
    expect(await texts()).toEqual(["Ada plays chess."]);
  });
});
