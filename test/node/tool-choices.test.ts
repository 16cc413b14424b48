/** The choice of tools in requests that context hooks made, for every format. */
import { describe, expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import type { ModelContext } from "../../src/model/context.ts";
import { type ModelProfile, PROVIDERS } from "../../src/model/profile.ts";

const CHOICES = ["auto", "none", "required", { name: "ship" }] as const;
const schema = { type: "object", properties: {} };
const tools = ["order", "ship"].map((name) => ({ name, description: "Acts.", inputSchema: schema }));

describe.each(PROVIDERS)("TOOLCHOICE-1 the format of %s", (provider) => {
  const adapter = adapterFor(provider);
  const profile: ModelProfile = { provider, modelId: "gemini-3" };
  const context = (toolChoice: ModelContext["toolChoice"], offered = tools): ModelContext => ({
    ...{ systemInstructions: ["Be brief."], tools: offered, toolChoice },
    messages: [{ role: "user", content: "Go." }],
  });

  test("writes each choice into a request with another choice, as it builds it", () => {
    for (const before of CHOICES)
      for (const after of CHOICES) {
        const request = adapter.buildRequest(profile, context(before));
        // Workers AI leaves the tools out.
        if (provider === "workers-ai" && before === "none") continue;
        expect(adapter.choose(request, after)).toEqual(adapter.buildRequest(profile, context(after)));
      }
  });

  test("keeps a request without tools, and refuses to force a tool that the request does not offer", () => {
    const plain = adapter.buildRequest(profile, context("auto", []));
    for (const choice of ["auto", "none"] as const) expect(adapter.choose(plain, choice)).toEqual(plain);
    const offered = adapter.buildRequest(profile, context("auto", tools.slice(0, 1)));
    for (const [request, choice] of [
      [plain, "required"],
      [offered, { name: "ship" }],
    ] as const)
      expect(() => adapter.choose(request, choice)).toThrow(/does not accept a forced/);
  });
});

test("TOOLCHOICE-1 Anthropic's ban of parallel calls stays", () => {
  const { choose } = adapterFor("anthropic");
  const request = {
    tools: [{ name: "ship", input_schema: schema }],
    tool_choice: { type: "auto", disable_parallel_tool_use: true },
  };
  expect(choose(request, { name: "ship" }).tool_choice).toEqual({
    ...{ type: "tool", name: "ship", disable_parallel_tool_use: true },
  });
  expect(() => choose({ ...request, thinking: { type: "enabled" } }, "required")).toThrow(/`thinking`/);
});
