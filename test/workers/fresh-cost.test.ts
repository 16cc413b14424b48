/** The storage operations of a fresh conversation and its first turn, that a bare agent of the SDK does not have. */
import { exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { expect, test } from "vitest";
import { newConversationId } from "../../src/agents/base/lookup/conversation-id.ts";
import { unwrap } from "../../src/shared/errors.ts";
import { ADA, createAgent } from "./world.ts";

const CONVERSATIONS = 3;

test("H5 a fresh conversation and its first turn cost 19 statements and 19 rows beyond the SDK's own", async () => {
  const agentId = await createAgent({ identity: { systemPrompt: "Be brief." } });
  const costs: { statements: number; rows: number }[] = [];
  for (let n = 0; n < CONVERSATIONS; n++) {
    const id = newConversationId();
    const conversation = await getAgentByName(exports.MeteredConversation, `test:${id}`);
    unwrap(await conversation.create(ADA, { id, agentId }));
    unwrap(await conversation.runTurn(ADA, { content: "!say Hello.", idempotencyKey: "first" }));
    costs.push(await conversation.counts());
  }
  const bare = await (await getAgentByName(exports.MeteredAgent, crypto.randomUUID())).counts();
  // The wake-up that publishes to the log of events costs one statement and no row. On a slow machine a turn has heartbeats.
  const least = (of: "statements" | "rows") => Math.min(...costs.map((cost) => cost[of])) - bare[of];
  expect(least("statements")).toBeLessThanOrEqual(19);
  expect(least("rows")).toBeLessThanOrEqual(19);
});
