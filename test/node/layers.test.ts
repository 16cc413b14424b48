/** The rules that `npm run check` keeps: each is broken in a tree of its own, and has to be reported. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const CORE = "agents/conversation/core";

/** A rule, the file that breaks it, and what this file imports: a file of `src` or a module. */
const BROKEN: readonly [rule: string, from: string, to: string][] = [
  ["not-in-a-layer", "tasks/plan.ts", "http/app.ts"],
  ["not-in-a-layer", "agents/workflow/run.ts", "http/app.ts"],
  ["not-in-a-layer", "agents/workflow/run.ts", `${CORE}/state.ts`],
  ["not-in-a-layer", "agents/conversation/queue/queue.ts", `${CORE}/state.ts`],
  ["not-in-a-layer", "loose.ts", "shared/errors.ts"],
  ["not-in-a-layer", "dramatis.ts", "silent/silent.ts"],
  ["layer-shared", "shared/errors.ts", "ports/clock.ts"],
  ["layer-agents-agent", "agents/agent/agent.ts", `${CORE}/state.ts`],
  ["layer-client", "client/session.ts", "memory/window.ts"],
  ["root-is-on-top", "http/routes/health.ts", "dramatis.ts"],
  ["engine-is-a-leaf", "dramatis.ts", "engine/index.ts"],
  ["platform", `${CORE}/plan.ts`, "ports/system.ts"],
  ["platform", `${CORE}/plan.ts`, "ports/workers/durable-storage.ts"],
  ["platform", "protocol/envelope.ts", "ports/system.ts"],
  ["platform", "agents/conversation/door/connections.ts", "ports/system.ts"],
  ["pure", `${CORE}/plan.ts`, "d1/directory.ts"],
  ["pure", `${CORE}/plan.ts`, "adapters/gateway/gateway.ts"],
  ["pure", `${CORE}/plan.ts`, "agents"],
  ["pure", "adapters/formats/chat/decoder.ts", "adapters/gateway/gateway.ts"],
  ["pure", "compat/answer.ts", "d1/directory.ts"],
  ["pure", "compat/answer.ts", "hono"],
  ["conversation-core", `${CORE}/plan.ts`, "agents/conversation/store/turns.ts"],
  ["conversation-core", `${CORE}/plan.ts`, "agents/conversation/runtime.ts"],
  ["conversation-effects", "agents/conversation/effects/run.ts", "agents/conversation/store/turns.ts"],
  ["conversation-effects", "agents/conversation/effects/run.ts", "agents/conversation/mirror/usage.ts"],
  ["conversation-effects", "agents/conversation/effects/run.ts", "agents/conversation/reads/views.ts"],
  ["conversation-effects", "agents/conversation/effects/run.ts", "agents/conversation/door/access.ts"],
  ["conversation-store", "agents/conversation/store/journal.ts", "agents/conversation/reads/views.ts"],
  ["conversation-reads", "agents/conversation/reads/queries.ts", "agents/conversation/door/access.ts"],
  ["conversation-mirror", "agents/conversation/mirror/listing.ts", "agents/conversation/store/turns.ts"],
  ["conversation-door", "agents/conversation/door/open.ts", "agents/conversation/effects/run.ts"],
  ["actors-by-protocol", "http/routes/turns.ts", `${CORE}/state.ts`],
  ["actors-by-protocol", "engine/engine.ts", "agents/base/mailbox.ts"],
  ["node-ports", "agents/agent/agent.ts", "ports/node/virtual-clock.ts"],
  ["node-modules", "agents/agent/agent.ts", "node:fs"],
  ["agents-sdk", "http/app.ts", "agents"],
  ["no-file-cycle", "memory/session/window.ts", "memory/session/window.ts"],
];

/** Imports that no rule forbids. */
const ALLOWED: readonly [from: string, to: string][] = [
  ["dramatis.ts", "agents/conversation/conversation.ts"],
  ["dramatis.ts", "ports/system.ts"],
  ["agents/conversation/conversation.ts", "agents/conversation/door/access.ts"],
  ["agents/conversation/conversation.ts", "ports/system.ts"],
  ["agents/conversation/conversation.ts", "agents"],
  ["agents/conversation/store/turns.ts", `${CORE}/state.ts`],
  ["ports/node/virtual-clock.ts", "node:timers"],
  ["http/routes/sockets.ts", "protocol/upgrade-request.ts"],
  ["client/session.ts", "protocol/frames.ts"],
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
    for (const [from, to] of [...BROKEN.map(([, from, to]) => [from, to] as const), ...ALLOWED]) {
      const path = relative(dirname(from), to);
      importsOf(from).push(to.endsWith(".ts") ? (path.startsWith(".") ? path : `./${path}`) : to);
      if (to.endsWith(".ts")) importsOf(to);
    }
    for (const [file, targets] of imports) {
      await write(`src/${file}`, `${targets.map((to) => `import "${to}";`).join("\n")}\nexport {};\n`);
    }
    const config = join(ROOT, ".dependency-cruiser.mjs");
    const cruiser = "dependency-cruiser/bin/dependency-cruise.mjs";
    const report = await run(cruiser, ["src", "--config", config, "--output-type", "json"], folder);
    const { violations } = JSON.parse(report).summary as {
      violations: { rule: { name: string }; from: string; to: string }[];
    };
    found = violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${nameOf(to)}`);
  });

  afterAll(() => rm(folder, { recursive: true }));

  test.each(BROKEN)("%s: %s may not import %s", (rule, from, to) => {
    expect(found).toContain(`${rule}: ${edge(from, to)}`);
  });

  test.each(ALLOWED)("%s may import %s", (from, to) => {
    expect(found.filter((violation) => violation.endsWith(`: ${edge(from, to)}`))).toEqual([]);
  });

  test("one class extends the SDK's Agent", async () => {
    const text = 'import { Agent } from "agents";\n\nexport class Other extends Agent {}\n';
    const [other, own] = ["src/agents/base/other.ts", "src/agents/base/session-agent.ts"];
    for (const file of [other, own]) await write(file, text);
    const options = ["lint", "--vcs-enabled=false", "--config-path", join(ROOT, "biome.json")];
    const lint = (file: string) => run("@biomejs/biome/bin/biome", [...options, file], folder);
    expect(await lint(other)).toContain("Actors extend SessionAgent.");
    expect(await lint(own)).not.toContain("Actors extend SessionAgent.");
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
