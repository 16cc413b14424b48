/** The notes of a conversation on the answers to its extractions. */
import { expect, test } from "vitest";
import { z } from "zod";
import type { OutcomeHandler } from "../../src/agents/base/mailbox/handlers.ts";
import { takeAnswers } from "../../src/agents/conversation/mailbox-handlers.ts";
import { defineLibrary } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { SteeredConversation } from "../support/steered-model.ts";

test("LEARNED-2 a refusal by the agent is recorded, and the turn stays completed", async () => {
  const extract = defineTask({
    id: "extract",
    input: z.looseObject({}),
    effect: "pure",
    execute: () => [{ op: "write", content: "Ada keeps bees." }],
  });
  const room = await SteeredConversation.create(
    defineLibrary("lib", { tasks: [extract] }),
    {},
    { scope: "user", recall: false, memoryTools: false, memoryExtraction: { task: "lib/extract" } },
  );
  const id = await room.say("Hello");
  (await room.request()).answer("Hi.");
  await room.until(({ type }) => type === "turn.finalized");
  const { memoryExtractionRunId: operationId } = room.turn(id);
  const handlers = new Map<string, OutcomeHandler>();
  takeAnswers({ outcomes: (type, handler) => void handlers.set(type, handler) }, room.runtime);
  const released: (void | Promise<void>)[] = [];
  handlers.get("memory.extracted")?.({
    envelope: {
      operationId: operationId ?? "",
      from: { kind: "conversation", tenant: "acme", id: room.runtime.state.record.id },
      to: { kind: "agent", tenant: "acme", id: "tester" },
      type: "memory.extracted",
      body: null,
      sentAt: 0,
    },
    outcome: { status: "failed", error: { code: "NOT_FOUND", message: "Gone.", retriable: false } },
    late: false,
    afterCommit: (effect) => void released.push(effect()),
  });
  await Promise.all(released);
  const { items } = room.queries.journal(room.runtime.state, { limit: 200 });
  expect(items.at(-1)).toMatchObject({
    type: "memory_extraction.refused",
    turnId: id,
    operationId,
    data: { code: "NOT_FOUND", message: "Gone." },
  });
  expect(room.turn(id)).toMatchObject({ status: "completed", issues: { memoryExtractionFailed: true } });
});
