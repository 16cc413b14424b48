/** The examples of `examples`, with a scripted model. `templates.test.ts` runs the templates, and `browser.test.ts` the demo. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { agents as approval } from "../../examples/approval/agents.ts";
import { agents as courier } from "../../examples/courier/agents.ts";
import { agents as critics } from "../../examples/critics/agents.ts";
import { library } from "../../examples/word-count/workflow.ts";
import { call, createTestApp } from "../../src/testing/index.ts";

const root = join(import.meta.dirname, "../..");

test("G26 the example `approval` refunds after a person has approved it", async () => {
  const app = createTestApp({ agents: approval });
  app.model.script(call("refund", { order: "B", cents: 5_000 }), "Refunded.");
  const turn = await app.send("clerk", "Refund B");
  expect([turn.status, app.effects]).toEqual(["waiting", []]);
  for (const asked of app.approvals()) await app.approve(asked);
  expect((await app.settle(turn)).text).toBe("Refunded.");
  expect(app.effects).toMatchObject([{ tool: "refund", output: { receipt: "receipt-B" } }]);
});

test("G26 the example `courier` answers again when the parcel arrives, also after a crash", async () => {
  const log = vi.spyOn(console, "log").mockReturnValue();
  const app = createTestApp({ agents: courier });
  app.model.script(call("ship", { to: "Ada" }), "It is on its way.", "It has arrived.");
  const turn = await app.send("shop", "Send it to Ada");
  expect(turn.status).toBe("waiting");
  const [, handle = ""] = /operations\/([^/]+)\/result/.exec(String(log.mock.calls[0]?.[0])) ?? [];
  log.mockRestore();
  app.crash();
  await app.complete(handle, { result: { door: "green" } });
  expect((await app.settle(turn)).text).toContain("It has arrived.");
});

test("G26 the example `critics` asks two agents in one reply", async () => {
  const app = createTestApp({ agents: critics });
  const ask = (critic: string) => ({ name: `ask_${critic}`, input: { message: "All swans are white." } });
  app.model.of("style").reply("It is short.");
  app.model.of("facts").reply("The colour needs a source.");
  app.model.of("editor").script({ calls: [ask("style"), ask("facts")] }, "One point.");
  const turn = await app.send("editor", "All swans are white.");
  expect(turn.text).toBe("One point.");
  expect(turn.calls.map(({ output }) => output)).toEqual(["It is short.", "The colour needs a source."]);
});

test("G26 the example `word-count` adds the words of all texts", async () => {
  const app = createTestApp({ libraries: [library] });
  const run = await app.run("texts/words", { texts: ["One two three", "Four  five", ""] });
  expect(run).toMatchObject({ status: "completed", output: { total: 5 } });
});

test("G26 the gallery lists each example and each template, and each listed folder exists", () => {
  const gallery = readFileSync(join(root, "docs/examples.md"), "utf8");
  const folders = globSync(["examples/*", "templates/*"], { cwd: root, exclude: ["templates/base"] });
  const listed = [...gallery.matchAll(/\]\(\.\.\/((?:examples|templates)\/[\w-]+)\)/g)].map(
    ([, path = ""]) => path,
  );
  expect(listed.toSorted()).toEqual(folders.map((path) => path.replaceAll("\\", "/")).toSorted());
  for (const path of listed) expect(existsSync(join(root, path)), path).toBe(true);
});
