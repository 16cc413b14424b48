/**
 * The types that code in the same Worker gets from actors, checked by the compiler: a value that RPC types reject would be
 * `never`, or missing from the answer.
 */
import { exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { describe, expect, expectTypeOf, it } from "vitest";
import { newConversationId } from "../../src/agents/base/lookup/conversation-id.ts";
import type { AgentIdentity } from "../../src/protocol/agent-api.ts";
import type {
  ConversationView,
  DeadLetterView,
  JournalEntryView,
  MessageView,
  ResolvedApproval,
  SubmittedResult,
  TurnSummary,
  TurnView,
} from "../../src/protocol/conversation-schemas.ts";
import type { StartedTurn } from "../../src/protocol/signals.ts";
import type { Page } from "../../src/shared/page.ts";
import type { Conversation } from "./worker.ts";
import { createAgent, createConversation } from "./world.ts";

const principal = { subject: "ada", tenant: "test", roles: ["admin"] };

describe("RPC by typed exports", () => {
  it("returns the declared views, and takes a principal that is a plain literal", async () => {
    const { id } = await createConversation(await createAgent({ identity: { systemPrompt: "Be brief." } }));
    const conversation = await getAgentByName(exports.Conversation, `test:${id}`);

    const answer = await conversation.runTurn(principal, { content: "!say Hello.", idempotencyKey: "first" });
    if (!answer.ok) throw new Error(answer.error.message);
    expectTypeOf(answer.value).toExtend<TurnView>();
    expectTypeOf<TurnView>().toExtend<typeof answer.value>();
    expect(answer.value).toMatchObject({ status: "completed", answer: "Hello." });
    const bound: DurableObjectNamespace<InstanceType<typeof Conversation>> = exports.Conversation;
    const byBinding = await (await getAgentByName(bound, `test:${id}`)).runTurn(principal, {
      content: "!say Hi.",
    });
    if (byBinding.ok) expectTypeOf(byBinding.value).toExtend<TurnView>();
    const turn = await conversation.turn(principal, answer.value.id);
    if (!turn.ok) throw new Error(turn.error.message);
    expectTypeOf(turn.value).toExtend<TurnView>();
    expectTypeOf<TurnView>().toExtend<typeof turn.value>();
    const journal = await conversation.journal(principal, { limit: 1 });
    if (!journal.ok) throw new Error(journal.error.message);
    expectTypeOf(journal.value).toExtend<Page<JournalEntryView>>();
    expectTypeOf<Page<JournalEntryView>>().toExtend<typeof journal.value>();
    const turns = await conversation.turns(principal);
    if (turns.ok) expectTypeOf(turns.value).toExtend<Page<TurnSummary>>();
    const messages = await conversation.messages(principal);
    if (messages.ok) expectTypeOf(messages.value).toExtend<Page<MessageView>>();
    const view = await conversation.view(principal);
    if (view.ok) expectTypeOf(view.value).toExtend<ConversationView>();
    const results = await conversation.submitToolResults(principal, [
      { operationId: "op_1", result: { a: [1] } },
    ]);
    if (results.ok) expectTypeOf(results.value).toExtend<SubmittedResult[]>();
    const answered = await conversation.resolveApproval(principal, "op_1", { approved: true });
    if (answered.ok) expectTypeOf(answered.value).toExtend<ResolvedApproval>();
    const letters = await conversation.deadLetters(principal);
    if (letters.ok) expectTypeOf(letters.value).toExtend<Page<DeadLetterView>>();
    const stream = await conversation.streamTurn(principal, { content: "!say Hi." }, "sse");
    if (stream.ok) {
      expectTypeOf(stream.value).toExtend<StartedTurn>();
      await stream.value.frames.cancel();
    }
    const frames = await conversation.subscribe(principal, { encoding: "sse" });
    if (frames.ok) await frames.value.cancel();
    const agent = await getAgentByName(exports.Agent, "test:nobody");
    const identity = await agent.identity();
    if (identity.ok) expectTypeOf(identity.value).toExtend<AgentIdentity>();
    const made = await conversation.create(principal, {
      id,
      agentId: "x",
      history: [{ role: "user", content: "Hi" }],
    });
    if (made.ok) expectTypeOf(made.value).toExtend<ConversationView>();
  });

  it("creates a conversation under a new id, and names the form of an id and of an actor's name", async () => {
    const agentId = await createAgent({ identity: { systemPrompt: "Be brief." } });
    const id = newConversationId();
    const conversation = await getAgentByName(exports.Conversation, `test:${id}`);
    expect(await conversation.create(principal, { id, agentId, listed: false })).toMatchObject({
      ok: true,
      value: { id, agentId },
    });
    const answer = await conversation.runTurn(principal, { content: "!say Hello." });
    expect(answer).toMatchObject({ ok: true, value: { answer: "Hello." } });

    const bad = await conversation.create(principal, { id: "mine", agentId });
    expect(bad).toMatchObject({
      error: { code: "INVALID_INPUT", message: expect.stringContaining("`conv_` and a ULID") },
    });
    const bare = await getAgentByName(exports.Conversation, id);
    for (const call of [bare.view(principal), bare.runTurn(principal, { content: "Hello" })])
      expect(await call).toMatchObject({
        error: { code: "NOT_FOUND", message: expect.stringContaining("`<tenant>:<id>`") },
      });
    const elsewhere = await getAgentByName(exports.Conversation, newConversationId());
    expect(await elsewhere.create(principal, { id: newConversationId(), agentId })).toMatchObject({
      error: { code: "INVALID_INPUT", message: expect.stringContaining("`<tenant>:<id>`") },
    });
  });
});
