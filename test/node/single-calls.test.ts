/** The ban of parallel tool calls, for every format. */
import { expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import type { ModelContext } from "../../src/model/context.ts";
import { PROVIDERS, type ProviderId } from "../../src/model/profile.ts";
import { requestWithSingleCalls, withSingleCalls } from "../../src/model/single-calls.ts";

const BANS: { [Provider in ProviderId]?: object } = {
  openai: { parallel_tool_calls: false },
  "openai-responses": { parallel_tool_calls: false },
  anthropic: { tool_choice: { type: "auto", disable_parallel_tool_use: true } },
};
const ship = { name: "ship", description: "Ships.", inputSchema: { type: "object", properties: {} } };
const context = (tools: ModelContext["tools"], toolChoice: ModelContext["toolChoice"] = "auto") => ({
  ...{ systemInstructions: [], tools, toolChoice },
  messages: [{ role: "user" as const, content: "Go." }],
});

test.each(PROVIDERS)("SINGLECALL-1 a request of %s has the ban if it offers tools", (provider) => {
  const { buildRequest } = adapterFor(provider);
  const profile = { provider, modelId: "gemini-3" };
  for (const tools of [[ship], []]) {
    const plain = buildRequest(profile, context(tools));
    const expected = { ...plain, ...(tools.length === 0 ? {} : BANS[provider]) };
    expect(buildRequest(withSingleCalls(profile), context(tools))).toEqual(expected);
    expect(requestWithSingleCalls(plain, profile)).toEqual(expected);
  }
});

test("SINGLECALL-1 the ban applies beside a forced call of Anthropic, and is not part of the choice `none`", () => {
  const { buildRequest } = adapterFor("anthropic");
  const profile = withSingleCalls({ provider: "anthropic", modelId: "m" });
  const choiceOf = (choice: ModelContext["toolChoice"]) =>
    buildRequest(profile, context([ship], choice)).tool_choice;
  expect(choiceOf("required")).toEqual({ type: "any", disable_parallel_tool_use: true });
  expect(choiceOf("none")).toEqual({ type: "none" });
  const request = { tools: [{ name: "ship" }], tool_choice: { type: "none" } };
  expect(requestWithSingleCalls(request, profile)).toEqual(request);
});
