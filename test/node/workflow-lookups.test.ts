/** The reads of the database for definitions that name others. */
import { describe, expect, test, vi } from "vitest";
import { checkedWorkflow } from "../../src/library/authoring/author-workflows.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import type { TaskDefinition } from "../../src/protocol/task-definition.ts";
import type { WorkflowDefinition } from "../../src/protocol/workflow-definition.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { author, library, workflow } from "../support/authored-library.ts";

const posting = ({ registry }: ReturnType<typeof library>, id: string, definition: WorkflowDefinition) =>
  checkedWorkflow(
    { registry: registry(), mayReach: () => true, mayReceiveKey: () => true },
    { library: "own", id },
    definition,
  );

const embedding = { kind: "llm.embed", profile: "m" } as const;
const taskOf = (count: number): TaskDefinition => ({
  inputSchema: { type: "object" },
  timeoutMs: 1_000,
  steps: Array.from({ length: count }, (_, index) => ({
    ...{ ref: `s${index}`, ordinal: index, action: "a", onFailure: "abort" as const },
  })),
});

async function withTask(count: number) {
  const own = library();
  await own.add("model-profile", "m", { provider: "offline", modelId: "offline-1" });
  await own.add("action", "a", embedding);
  await own.add("task", "work", taskOf(count));
  return own;
}

describe("a reference is read once", () => {
  test("PIN-1 by a task of 64 steps that name one action, and by six tools over it", async () => {
    const own = await withTask(64);
    const reference = { library: "own", id: "work" };
    // The task, the action and its profile.
    expect(await own.finds(() => own.registry().runnable(reference))).toBe(3);
    const registry = own.registry();
    const pinned = () => Promise.all(Array.from({ length: 6 }, () => registry.runnable(reference)));
    expect(await own.finds(pinned)).toBe(3);
    const [one, other] = await pinned();
    expect(one).toEqual(other);
    expect(one?.task?.steps[0], "REG-2").not.toBe(other?.task?.steps[0]);
  });

  test("AUTHOR-6 by a workflow of 100 nodes with one task, which is not pinned", async () => {
    const own = await withTask(64);
    const nodes = Array(100).fill({ task: "work" });
    expect(await own.finds(() => posting(own, "flow", workflow(nodes)))).toBe(1);
  });

  test("AUTHOR-6 by a workflow over four levels of six nodes each", async () => {
    const own = library();
    await own.add("workflow", "w0", workflow([{}]));
    for (let level = 1; level < 4; level++)
      await own.add("workflow", `w${level}`, workflow(Array(6).fill({ workflow: `w${level - 1}` })));
    const posted = () => posting(own, "w4", workflow(Array(6).fill({ workflow: "w3" })));
    expect(await own.finds(posted)).toBe(4);
  });

  test("AUTHOR-6 by workflows that all name each other, which are copied twice each at most", async () => {
    const own = library();
    const below = (count: number) => Array.from({ length: count }, (_, n) => ({ workflow: `w${n}` }));
    await own.add("workflow", "w0", workflow([{}]));
    for (let n = 1; n < 9; n++) await own.add("workflow", `w${n}`, workflow(below(n)));
    const copies = vi.spyOn(Registry.prototype, "workflow");
    await posting(own, "flow", workflow(below(9)));
    expect(copies.mock.calls.length).toBeLessThanOrEqual(18);
    copies.mockRestore();
  });

  test("a database that does not answer is asked again, and additions are found", async () => {
    const own = await withTask(1);
    const registry = own.registry();
    own.find.mockRejectedValueOnce(new DramatisError("UNAVAILABLE", "The database is away."));
    const work = () => registry.find("task", { library: "own", id: "work" });
    await expect(work()).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(await work()).toMatchObject({ version: 1 });
    const key = { library: "own", id: "late" };
    await expect(registry.find("task", key)).rejects.toMatchObject({ code: "NOT_FOUND" });
    await registry.add(author, "task", key, taskOf(1));
    expect(await registry.find("task", key)).toMatchObject({ version: 1 });
  });
});

describe("a posted workflow is refused", () => {
  test("NEST-2 with more than 200 tasks and workflows, and the rest is not read", async () => {
    const own = library();
    await own.add("workflow", "leaf", workflow([{}]));
    for (let n = 0; n < 201; n++) await own.add("workflow", `w${n}`, workflow([{}]));
    const named = (count: number) =>
      workflow(Array.from({ length: count }, (_, n) => ({ workflow: `w${n}` })));
    expect(await own.finds(() => posting(own, "flow", named(200)))).toBe(200);
    const tooMany = () =>
      expect(posting(own, "flow", named(201))).rejects.toMatchObject({
        options: {
          errors: [
            {
              path: "/nodes/200/workflow",
              message: expect.stringMatching(/^A workflow may name 200/),
            },
          ],
        },
      });
    expect(await own.finds(tooMany)).toBe(200);
  });

  test("NEST-1 NEST-2 that contains itself, or nests deeper than ten levels", async () => {
    const own = library();
    await own.add("workflow", "w0", workflow([{}]));
    for (let level = 1; level < 10; level++)
      await own.add("workflow", `w${level}`, workflow(Array(2).fill({ workflow: `w${level - 1}` })));
    await posting(own, "top", workflow([{ workflow: "w8" }]));
    await expect(posting(own, "top", workflow([{ workflow: "w9" }]))).rejects.toThrow(
      "Workflows may nest 10 levels deep: own/top > own/w9 > own/w8",
    );
    // The second way to `w7` is longer than the first.
    const twice = workflow([{ workflow: "w7" }, { workflow: "w9" }]);
    await expect(posting(own, "top", twice)).rejects.toThrow("nest 10 levels deep: own/top > own/w9");
    await expect(posting(own, "w1", workflow([{ workflow: "w3" }]))).rejects.toThrow(
      "A workflow contains itself: own/w1 > own/w3 > own/w2 > own/w1.",
    );
  });
});
