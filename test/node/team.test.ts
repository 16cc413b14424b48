/** The built-in team of agents, as the package exports it. */
import { describe, expect, test } from "vitest";
import * as team from "../../src/library/agents/team.ts";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { checkAgents } from "../../src/startup.ts";

const PROFILE = { provider: "offline", modelId: "offline-1" } as const;

describe("the built-in team", () => {
  test("is five agents: the manager and the four agents that it calls", async () => {
    const code = new DeployedCode([team.library]);
    checkAgents(team.agents, code);
    expect(team.agents.map(({ id }) => id)).toEqual([
      "manager",
      "architect",
      "developer",
      "reviewer",
      "researcher",
    ]);
    const called = await Promise.all(
      team.agents.map(async ({ persona }) => {
        const chain = await resolveChain(new Registry(code), persona, PROFILE);
        return chain.tools.map(({ definition }) => definition.target);
      }),
    );
    const colleagues = ["architect", "developer", "reviewer", "researcher"].map((agent) => ({ agent }));
    expect(called).toEqual([colleagues, [], [], [], []]);
  });

  test("has no persona without a name, a description, instructions and examples", () => {
    for (const { definition } of team.library.personas) {
      expect(definition).toMatchObject({ name: expect.any(String), description: expect.any(String) });
      expect(definition.identity.instructions).not.toEqual([]);
      expect(definition.examples).not.toEqual([]);
    }
  });

  test("can be changed: another developer under the same manager", async () => {
    const developer = definePersona("developer", {
      ...team.developer.definition,
      identity: { systemPrompt: "You write Rust." },
    });
    const mine = defineLibrary("mine", {
      personas: [team.manager, developer],
      tools: [...team.library.tools],
    });
    const registry = new Registry(new DeployedCode([mine]));
    const chain = await resolveChain(registry, "mine/developer", PROFILE);
    expect(chain.persona.definition.identity.systemPrompt).toBe("You write Rust.");
    expect((await resolveChain(registry, "mine/manager", PROFILE)).tools).toHaveLength(4);
  });
});
