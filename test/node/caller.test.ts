/** The caller of a call: its actor's address, and how telemetry shows it. */
import { describe, expect, test } from "vitest";
import { requestInfo } from "../../src/adapters/resilience/telemetry.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import { callerOf } from "../../src/protocol/caller.ts";
import type { CallContext } from "../../src/shared/identifiers.ts";
import { callOf, ofRun } from "../support/tools.ts";

const PROFILE: ModelProfile = { provider: "openai", modelId: "m" };

describe("the caller of a call", () => {
  test("is the actor of the turn's conversation, or of the run", () => {
    const { context } = callOf("add");
    expect(callerOf(context)).toEqual({ kind: "conversation", tenant: "acme", id: "conv_1" });
    expect(callerOf(ofRun())).toEqual({ kind: "coordinator", tenant: "acme", id: "run_1" });
  });

  test("one check of a context determines all of its members", () => {
    const caller = (context: CallContext): [string, string] => {
      if (context.conversationId === undefined) return [context.runId, context.node];
      return [context.agentId, context.turnId];
    };
    expect(caller(callOf("add").context)).toEqual(["agent", "turn_1"]);
    expect(caller(ofRun())).toEqual(["run_1", "review"]);
  });

  test("C15 metrics of a run's call have the run's id and its node, and no agent", () => {
    const trace = { metadata: { cohort: "b" } };
    const info = requestInfo({ profile: PROFILE, body: {}, context: ofRun(), trace }, "request");
    expect(info).toMatchObject({ requestId: "request", correlationId: "run_1", attempt: 1 });
    expect(info.agentContext).toEqual({
      runId: "run_1",
      labels: { runId: "run_1", node: "review", provider: "openai", model: "m" },
      metadata: { cohort: "b" },
    });
  });
});
