/** Stored mailboxes and leases of every released version under today's code. */
import { expect, test } from "vitest";
import { LeaseStore } from "../../src/agents/agent/lease-store.ts";
import { AgentStore } from "../../src/agents/agent/store.ts";
import { recorded, staged } from "../support/releases/recordings.ts";

test.each(recorded("agent").filter(({ name }) => name === "agent-with-leases"))(
  "G4 LEASE-2 leases of $release: a repeated request is a no-op, and a new request counts once",
  (recording) => {
    const stage = staged(recording);
    const store = new LeaseStore(stage);
    const { budget = {} } = new AgentStore(stage, () => "recorded").identity();
    const rows = recording.storage.tables.find(({ name }) => name === "budget_leases")?.rows ?? [];
    expect(rows.length).toBeGreaterThan(1);
    for (const [id, body] of rows) {
      const { seq, spent, granted } = JSON.parse(String(body));
      const request = { seq, spent, keeps: granted, needs: granted, wants: granted };
      const before = store.view();
      expect(store.apply(String(id), budget, request)).toEqual({ granted });
      expect(store.view()).toEqual(before);
      store.apply(String(id), budget, { ...request, seq: seq + 1, keeps: spent, needs: spent, wants: spent });
    }
    const { spent } = recording.views.budget as ReturnType<LeaseStore["view"]>;
    expect(store.view()).toEqual({ spent, leased: { tokens: 0, usd: 0, modelCalls: 0 } });
  },
);

test.each(recorded("conversation").filter(({ name }) => name === "undelivered"))(
  "G4 MAIL-16 dead letters of $release: shown, and delivered again",
  async (recording) => {
    const stage = staged(recording);
    const { mailbox } = stage.begin();
    const [letter, ...more] = mailbox.deadLetters().items;
    expect([[letter, ...more]]).toEqual([recording.views.deadLetters]);
    const received: string[] = [];
    stage.route = () => ({
      receive: async ({ operationId }) => {
        received.push(operationId);
        return { type: "done", result: null };
      },
    });
    await mailbox.redeliver(letter?.id ?? "");
    await stage.until(() => received.length > 0);
    expect(received).toEqual([letter?.id]);
    expect(mailbox.deadLetters()).toEqual({ items: [] });
  },
);

test.each(recorded("conversation").filter(({ name }) => name === "calling-helper"))(
  "G4 MAIL-14 receipts of $release: a repeated envelope gets its answer again, and the actor does not act",
  async (recording) => {
    const stage = staged(recording);
    const { mailbox, runtime } = stage.begin();
    const { seq } = runtime.state;
    const rows = recording.storage.tables.find(({ name }) => name === "mailbox_inbox")?.rows ?? [];
    const { id, tenant } = runtime.state.record;
    const answers = rows.map(([operationId]) =>
      mailbox.receive(
        {
          ...{ operationId: String(operationId), type: "agent.cancel", sentAt: recording.now, body: null },
          ...{ from: { kind: "conversation", tenant, id }, to: { kind: "conversation", tenant, id } },
        },
        { number: 1, last: false },
      ),
    );
    expect(await Promise.all(answers)).toEqual([
      { type: "done", result: null },
      { type: "refused", recorded: true, error: expect.objectContaining({ code: "FORBIDDEN" }) },
    ]);
    expect(runtime.state.seq).toBe(seq);
  },
);
