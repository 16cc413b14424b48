/** The rules of `.dependency-cruiser.mjs`: a tree of files breaks every rule, and each break must be reported. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const CONFIG = join(ROOT, ".dependency-cruiser.mjs");
const CORE = "agents/conversation/core";

// SAFETY: the file's own shape; it has no types.
const {
  LAYERS,
  LIBRARY,
  default: config,
} = (await import(pathToFileURL(CONFIG).href)) as {
  LAYERS: string[][];
  LIBRARY: string[];
  default: { forbidden: { name: string }[] };
};

/** A rule, the file that breaks it, and the import of this file: a file of `src` or a module. */
type Break = readonly [rule: string, from: string, to: string];

/** Each layer imports the layer below it, or its neighbour. The last layer imports the client. */
const LAYER_BREAKS = LAYERS.flatMap((layer, index) =>
  layer.map((folder): Break => {
    const forbidden = layer.find((other) => other !== folder) ?? LAYERS[index + 1]?.[0] ?? "client";
    return [`layer-${folder.replace("/", "-")}`, `${folder}/above.ts`, `${forbidden}/below.ts`];
  }),
);

/** Each folder of the library imports the folder above it. The last folder imports a file beside the folders. */
const LIBRARY_BREAKS = LIBRARY.map((folder, index): Break => {
  const above = LIBRARY[index + 1] ?? ".";
  return [`library-${folder}`, `library/${folder}/below.ts`, join("library", above, "above.ts")];
});

const BROKEN: readonly Break[] = [
  ...LAYER_BREAKS,
  ...LIBRARY_BREAKS,
  ["not-in-a-layer", "tasks/plan.ts", "http/app.ts"],
  ["not-in-a-layer", "agents/workflow/run.ts", "http/app.ts"],
  ["not-in-a-layer", "agents/workflow/run.ts", `${CORE}/state.ts`],
  ["not-in-a-layer", "agents/conversation/queue/queue.ts", `${CORE}/state.ts`],
  ["not-in-a-layer", "agents/coordinator/queue/queue.ts", "agents/coordinator/core/state.ts"],
  ["not-in-a-layer", "agents/trigger/queue/queue.ts", "agents/trigger/core/record.ts"],
  ["not-in-a-layer", "loose.ts", "shared/errors.ts"],
  ["not-in-a-layer", "dramatis.ts", "silent/silent.ts"],
  ["layer-shared", "shared/errors.ts", "ports/clock.ts"],
  ["layer-agents-agent", "agents/agent/agent.ts", `${CORE}/state.ts`],
  ["layer-client", "client/session.ts", "memory/window.ts"],
  ["layer-client", "client/session.ts", "model/cost.ts"],
  ["layer-cli", "cli/main.ts", "http/app.ts"],
  ["root-is-on-top", "http/routes/health.ts", "dramatis.ts"],
  ["engine-is-a-leaf", "dramatis.ts", "engine/index.ts"],
  ["testing-is-a-leaf", "dramatis.ts", "testing/index.ts"],
  ["platform", `${CORE}/plan.ts`, "ports/system.ts"],
  ["platform", `${CORE}/plan.ts`, "ports/workers/durable-storage.ts"],
  ["platform", "protocol/envelope.ts", "ports/system.ts"],
  ["platform", "agents/conversation/inbound/connections.ts", "ports/system.ts"],
  ["pure", `${CORE}/plan.ts`, "d1/directory.ts"],
  ["pure", `${CORE}/plan.ts`, "adapters/gateway/gateway.ts"],
  ["pure", `${CORE}/plan.ts`, "agents"],
  ["pure", `${CORE}/plan.ts`, "agents/base/mailbox.ts"],
  ["pure", `${CORE}/plan.ts`, "agents/executor/run-tool.ts"],
  ["pure", `${CORE}/plan.ts`, "agents/agent/store.ts"],
  ["pure", `${CORE}/plan.ts`, "memory/session/session-store.ts"],
  ["pure", `${CORE}/plan.ts`, "memory/session/event-store.ts"],
  ["pure", `${CORE}/plan.ts`, "memory/session/long-text.ts"],
  ["pure", "adapters/formats/chat/decoder.ts", "adapters/gateway/gateway.ts"],
  ["pure", "compat/answer.ts", "d1/directory.ts"],
  ["pure", "compat/answer.ts", "hono"],
  ["pure", "compat/answer.ts", "agents/base/mailbox.ts"],
  ["pure", "compat/answer.ts", "memory/session/session-store.ts"],
  ["conversation-core", `${CORE}/plan.ts`, "agents/conversation/store/turns.ts"],
  ["conversation-core", `${CORE}/plan.ts`, "agents/conversation/runtime.ts"],
  ["conversation-effects", "agents/conversation/effects/run.ts", "agents/conversation/store/turns.ts"],
  ["conversation-effects", "agents/conversation/effects/run.ts", "agents/conversation/copies/usage.ts"],
  ["conversation-effects", "agents/conversation/effects/run.ts", "agents/conversation/reads/views.ts"],
  ["conversation-effects", "agents/conversation/effects/run.ts", "agents/conversation/inbound/access.ts"],
  ["conversation-store", "agents/conversation/store/journal.ts", "agents/conversation/reads/views.ts"],
  ["conversation-reads", "agents/conversation/reads/queries.ts", "agents/conversation/inbound/access.ts"],
  ["conversation-copies", "agents/conversation/copies/listing.ts", "agents/conversation/store/turns.ts"],
  ["conversation-results", "agents/conversation/results/ends.ts", "agents/conversation/data/fork.ts"],
  ["conversation-data", "agents/conversation/data/fork.ts", "agents/conversation/effects/run.ts"],
  ["conversation-context", "agents/conversation/context.ts", "agents/conversation/reads/views.ts"],
  ["coordinator-context", "agents/coordinator/context.ts", "agents/coordinator/reads/run-views.ts"],
  ["conversation-inbound", "agents/conversation/inbound/open.ts", "agents/conversation/effects/run.ts"],
  ["coordinator-core", "agents/coordinator/core/plan.ts", "agents/coordinator/store/run-journal.ts"],
  ["coordinator-core", "agents/coordinator/core/plan.ts", "agents/coordinator/run-runtime.ts"],
  ["coordinator-effects", "agents/coordinator/effects/run.ts", "agents/coordinator/store/run-journal.ts"],
  ["coordinator-store", "agents/coordinator/store/run-journal.ts", "agents/coordinator/reads/run-views.ts"],
  ["coordinator-reads", "agents/coordinator/reads/run-views.ts", "agents/coordinator/inbound/start-run.ts"],
  ["coordinator-inbound", "agents/coordinator/inbound/start-run.ts", "agents/coordinator/effects/run.ts"],
  ["channel-core", "agents/channel/core/posts.ts", "agents/channel/store.ts"],
  ["channel-adapters", "agents/channel/adapters/slack.ts", "agents/channel/store.ts"],
  ["trigger-core", "agents/trigger/core/firing.ts", "agents/trigger/runtime.ts"],
  ["workspace-core", "agents/workspace/core/diff.ts", "agents/workspace/workspace.ts"],
  ["workspace-shell", "agents/workspace/shell/shell.ts", "agents/workspace/workspace.ts"],
  ["trigger-effects", "agents/trigger/effects/start.ts", "agents/trigger/store/trigger-store.ts"],
  ["trigger-store", "agents/trigger/store/trigger-store.ts", "agents/trigger/inbound/requests.ts"],
  ["trigger-inbound", "agents/trigger/inbound/requests.ts", "agents/trigger/effects/start.ts"],
  ["actors-by-protocol", "http/routes/turns.ts", `${CORE}/state.ts`],
  ["actors-by-protocol", "engine/engine.ts", "agents/base/mailbox.ts"],
  ["node-ports", "agents/agent/agent.ts", "ports/node/virtual-clock.ts"],
  ["node-modules", "agents/agent/agent.ts", "node:fs"],
  ["agents-sdk", "http/app.ts", "agents"],
  ["no-file-cycle", "memory/session/window.ts", "memory/session/window.ts"],
];

/** Two folders that import each other, by files that do not. */
const FOLDER_CYCLE: readonly [from: string, to: string][] = [
  ["policy/left/one.ts", "policy/right/one.ts"],
  ["policy/right/two.ts", "policy/left/two.ts"],
];

/** An isolated file without a layer. */
const ALONE = "alone/alone.ts";

/** Imports that no rule forbids. */
const ALLOWED: readonly [from: string, to: string][] = [
  ["dramatis.ts", "agents/conversation/conversation.ts"],
  ["dramatis.ts", "ports/system.ts"],
  ["agents/conversation/conversation.ts", "agents/conversation/inbound/access.ts"],
  ["agents/trigger/trigger.ts", "ports/system.ts"],
  ["agents/conversation/conversation.ts", "agents"],
  ["agents/conversation/store/turns.ts", `${CORE}/state.ts`],
  ["agents/conversation/effects/model-call.ts", "agents/conversation/context.ts"],
  ["agents/conversation/data/fork.ts", "agents/conversation/runtime.ts"],
  [`${CORE}/plan.ts`, "memory/session/events.ts"],
  ["agents/coordinator/coordinator.ts", "agents/coordinator/inbound/start-run.ts"],
  ["agents/coordinator/reads/pages.ts", "agents/coordinator/store/run-tables.ts"],
  ["agents/trigger/trigger.ts", "agents/trigger/inbound/requests.ts"],
  ["ports/node/virtual-clock.ts", "node:timers"],
  ["http/routes/sockets.ts", "protocol/upgrade-request.ts"],
  ["client/session.ts", "protocol/frames.ts"],
  ["client/session.ts", "model/messages.ts"],
  ["cli/main.ts", "client/http.ts"],
  ["cli/main.ts", "node:fs"],
];

/** Runs a program of the project's packages in a folder; a finding is no exception. */
function run(program: string, args: readonly string[], cwd: string): Promise<string> {
  const path = join(ROOT, "node_modules", program);
  return new Promise((done) => {
    execFile(process.execPath, [path, ...args], { cwd, maxBuffer: 2 ** 26 }, (_error, out, log) =>
      done(out + log),
    );
  });
}

describe("the layers of src", () => {
  let folder: string;
  let found: string[];

  const write = async (file: string, text: string) => {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "layers-"));
    await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
    const imports = new Map<string, string[]>();
    const importsOf = (file: string) => imports.get(file) ?? imports.set(file, []).get(file) ?? [];
    importsOf(ALONE);
    const broken = BROKEN.map(([, from, to]) => [from, to] as const);
    for (const [from, to] of [...broken, ...FOLDER_CYCLE, ...ALLOWED]) {
      const path = relative(dirname(from), to);
      importsOf(from).push(to.endsWith(".ts") ? (path.startsWith(".") ? path : `./${path}`) : to);
      if (to.endsWith(".ts")) importsOf(to);
    }
    for (const [file, targets] of imports) {
      await write(`src/${file}`, `${targets.map((to) => `import "${to}";`).join("\n")}\nexport {};\n`);
    }
    const cruiser = "dependency-cruiser/bin/dependency-cruise.mjs";
    const report = await run(cruiser, ["src", "--config", CONFIG, "--output-type", "json"], folder);
    const { violations } = JSON.parse(report).summary as {
      violations: { rule: { name: string }; from: string; to: string }[];
    };
    found = violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${nameOf(to)}`);
  });

  afterAll(() => rm(folder, { recursive: true }));

  test.each(BROKEN)("%s: %s may not import %s", (rule, from, to) => {
    expect(found).toContain(`${rule}: ${edge(from, to)}`);
  });

  test("no-folder-cycle: folders may not import each other, even by different files", () => {
    for (const [from, to] of FOLDER_CYCLE) {
      expect(found).toContain(`no-folder-cycle: src/${dirname(from)} → src/${dirname(to)}`);
    }
  });

  test("not-in-a-layer: a file without imports needs a layer, too", () => {
    expect(found).toContain(`not-in-a-layer: ${edge(ALONE, ALONE)}`);
  });

  test("every rule is broken here", () => {
    const broken = new Set(["no-folder-cycle", ...BROKEN.map(([rule]) => rule)]);
    expect(config.forbidden.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
  });

  test.each(ALLOWED)("%s may import %s", (from, to) => {
    expect(found.filter((violation) => violation.endsWith(`: ${edge(from, to)}`))).toEqual([]);
  });

  test.each([
    ['import { Agent } from "agents";', "Agent"],
    ['import * as sdk from "agents";', "sdk.Agent"],
    ['import { McpAgent } from "agents/mcp";', "McpAgent"],
    ['import { DurableObject } from "cloudflare:workers";', "DurableObject"],
    ['import * as workers from "cloudflare:workers";', "workers.DurableObject"],
  ])("one class alone may use %s", async (statement, base) => {
    const text = `${statement}\n\nexport class Other extends ${base} {}\n`;
    const [other, own] = ["src/agents/base/other.ts", "src/agents/base/durable-actor.ts"];
    for (const file of [other, own]) await write(file, text);
    const options = ["lint", "--vcs-enabled=false", "--config-path", join(ROOT, "biome.json")];
    const lint = (file: string) => run("@biomejs/biome/bin/biome", [...options, file], folder);
    expect(await lint(other)).toContain("Actors extend DurableActor.");
    expect(await lint(own)).not.toContain("Actors extend DurableActor.");
  });
});

function edge(from: string, to: string): string {
  return `src/${from} → ${to.endsWith(".ts") ? `src/${to}` : nameOf(to)}`;
}

/** Returns the module of a resolved path; a file's path as it is. */
function nameOf(path: string): string {
  const inPackage = path.split("node_modules/").at(-1) ?? "";
  return /^(?:agents|hono)\b/.exec(inPackage)?.[0] ?? path.replace(/^node:/, "");
}
