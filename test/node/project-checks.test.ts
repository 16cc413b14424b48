/** The doctor of a project: each broken configuration has a message that says what to change. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { checkDefinitions } from "../../src/cli/definition-check.ts";
import { DOCTOR_COMMANDS } from "../../src/cli/doctor.ts";
import { writeProject } from "../../src/cli/new-project.ts";
import { checkProject } from "../../src/cli/project-checks.ts";
import { requester } from "../../src/cli/request.ts";
import { createClient } from "../../src/client/http.ts";

const root = mkdtempSync(join(tmpdir(), "dramatis-doctor-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const NODE = "24.0.0";

const sound = join(root, "sound");
writeProject({ folder: sound, version: "0.4.0" });
mkdirSync(join(sound, "node_modules/dramatis/console"), { recursive: true });
for (const [name, version] of [
  ["wrangler", "4.155.0"],
  ["zod", "4.6.7"],
] as const)
  write(sound, `node_modules/${name}/package.json`, JSON.stringify({ version }));

function write(project: string, path: string, text: string): void {
  mkdirSync(dirname(join(project, path)), { recursive: true });
  writeFileSync(join(project, path), text);
}

const projectProblems = (folder: string, node: string) => checkProject(folder, node)?.problems ?? null;

let count = 0;
/** Returns a copy of the sound project. */
function copy(): string {
  count += 1;
  const project = join(root, `project-${count}`);
  cpSync(sound, project, { recursive: true });
  return project;
}

interface Parts {
  main?: string | undefined;
  compatibility_date?: string;
  migrations: Record<string, unknown>[];
  d1_databases: object[];
  assets: Record<string, unknown>;
  [name: string]: unknown;
}

const CLASSES = ["Conversation", "Agent", "Coordinator", "Trigger", "EventLog", "Workspace"];

/** Changes the configuration of the sound project. */
const configured = (change: (parts: Parts) => Parts) => (project: string) => {
  const parts: Parts = {
    name: "sound",
    main: "src/worker.ts",
    compatibility_date: "2026-08-15",
    migrations: [{ tag: "v1", new_sqlite_classes: CLASSES }],
    d1_databases: [{ binding: "DB" }],
    r2_buckets: [{ binding: "BUCKET" }],
    assets: { directory: "node_modules/dramatis/console", binding: "ASSETS" },
  };
  write(project, "wrangler.jsonc", JSON.stringify(change(parts)));
};

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");
const DOCTOR = ["--experimental-transform-types", "--disable-warning=ExperimentalWarning", MAIN, "doctor"];

/** Runs the command in a folder. */
function doctor(cwd: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...DOCTOR, ...args], {
    cwd,
    encoding: "utf8",
    env: { ...process.env, DRAMATIS_URL: undefined },
  });
  return { status, text: stdout + stderr };
}

/** Writes the module of the Worker, with this call. */
function writeWorker(project: string, call: string, before = ""): void {
  const source = JSON.stringify(join(import.meta.dirname, "../../src/node.ts"));
  const library = `import { defineLibrary, definePersona } from ${source};
export const my = defineLibrary("my", { personas: [definePersona("guide", { identity: { systemPrompt: "Hi." } })] });
export const broken = (id) => defineLibrary(id, {});`;
  write(project, "src/library.ts", library);
  const worker = `import { dramatis } from ${source};
import { broken, my } from "./library";
${before}
const app = ${call};
export const { ${CLASSES.join(", ")}, Executor } = app;`;
  write(project, "src/worker.ts", worker);
}

test("G20 DOCTOR-1 finds no problem in a new project, and no project in other folders", () => {
  expect(projectProblems(sound, NODE)).toEqual([]);
  expect(projectProblems(root, NODE)).toBeNull();
});

test("G20 DOCTOR-1 a later migration renames or deletes a class", () => {
  const project = copy();
  const typed = ["Convesation", "Shelf", ...CLASSES.slice(1)];
  const migrations = [
    { tag: "v1", new_sqlite_classes: typed },
    { tag: "v2", renamed_classes: [{ from: "Convesation", to: "Conversation" }] },
    { tag: "v3", deleted_classes: ["Shelf"] },
  ];
  configured((parts) => ({ ...parts, migrations }))(project);
  expect(projectProblems(project, NODE)).toEqual([]);
  configured((parts) => ({ ...parts, migrations: migrations.slice(0, 2) }))(project);
  expect(projectProblems(project, NODE)).toMatchObject([
    { message: expect.stringContaining("does not export Shelf") },
  ]);
});

test("G20 DOCTOR-1 reads comments and trailing commas as wrangler does", () => {
  const project = copy();
  write(
    project,
    "wrangler.jsonc",
    `{ // "main": "no.ts"
      /* , */ "main": "src/worker.ts", "compatibility_date": "2026-08-15", "vars": { "URL": "http://a//b,}" },
      "migrations": [{ "tag": "v1", "new_sqlite_classes": ["${CLASSES.join('","')}",] },],
      "d1_databases": [{ "binding": "DB" }], "r2_buckets": [{ "binding": "BUCKET" }], }`,
  );
  expect(projectProblems(project, NODE)).toEqual([]);
});

test.each<[string, (project: string) => void, "failed" | "warning", string]>([
  [
    "channels without their class",
    (project) => {
      const code =
        "const app = dramatis({ channels: {} });\nexport const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;\n";
      write(project, "src/worker.ts", code);
    },
    "failed",
    "src/worker.ts has `channels` and does not export Channel",
  ],
  ["no configuration", (project) => rmSync(join(project, "wrangler.jsonc")), "failed", "npx dramatis init"],
  [
    "a configuration in TOML",
    (project) => {
      rmSync(join(project, "wrangler.jsonc"));
      write(project, "wrangler.toml", "");
    },
    "warning",
    "Write the configuration as wrangler.jsonc.",
  ],
  [
    "broken JSON",
    (project) => write(project, "wrangler.jsonc", '{ "main" "x" }'),
    "failed",
    "Correct this place.",
  ],
  [
    "a value of another type",
    configured((parts) => ({ ...parts, main: 7 as never })),
    "failed",
    "wrangler.jsonc is not valid: /main:",
  ],
  [
    "no main",
    configured((parts) => ({ ...parts, main: undefined })),
    "failed",
    'Add "main": "src/worker.ts"',
  ],
  [
    "a wrong main",
    configured((parts) => ({ ...parts, main: "src/index.ts" })),
    "failed",
    '"main" is src/index.ts, but this file does not exist.',
  ],
  [
    "no compatibility date",
    configured(({ compatibility_date: _, ...parts }) => parts),
    "failed",
    '"compatibility_date" is missing. Set "compatibility_date": "2026-08-15".',
  ],
  [
    "an old compatibility date",
    configured((parts) => ({ ...parts, compatibility_date: "2024-01-01" })),
    "failed",
    "2024-01-01, which is too old",
  ],
  [
    "a date that needs a flag",
    configured((parts) => ({ ...parts, compatibility_date: "2026-01-01" })),
    "failed",
    'needs "compatibility_flags": ["nodejs_compat"]',
  ],
  [
    "an experimental flag",
    configured((parts) => ({ ...parts, compatibility_flags: ["enable_abortsignal_rpc"] })),
    "failed",
    'experimental flag "enable_abortsignal_rpc". Remove it',
  ],
  [
    "a class without a migration",
    configured((parts) => ({
      ...parts,
      migrations: [{ tag: "v1", new_sqlite_classes: CLASSES.slice(0, 4) }],
    })),
    "failed",
    'Add { "tag": "v2", "new_sqlite_classes": ["EventLog", "Workspace"] } to "migrations", at the end.',
  ],
  [
    "a mistyped class in a migration",
    configured((parts) => ({
      ...parts,
      migrations: [{ tag: "v1", new_sqlite_classes: [...CLASSES.slice(0, 4), "Eventlog", "Workspace"] }],
    })),
    "failed",
    'wrangler.jsonc: "migrations" names "Eventlog", which src/worker.ts does not export. Did you mean "EventLog"?',
  ],
  [
    "a class without SQL",
    configured((parts) => ({
      ...parts,
      migrations: [{ tag: "v1", new_sqlite_classes: CLASSES.slice(1), new_classes: ["Conversation"] }],
    })),
    "failed",
    '"new_classes" has Conversation, so it has no SQL. Move it to "new_sqlite_classes"',
  ],
  [
    "a migration of a class that the Worker does not export",
    (project) =>
      write(
        project,
        "src/worker.ts",
        "export const { Conversation, Agent, Executor, Trigger, EventLog, Workspace } = app;",
      ),
    "failed",
    "src/worker.ts does not export Coordinator, which a migration names.",
  ],
  [
    "a missing export",
    (project) => write(project, "src/worker.ts", `export const { ${CLASSES.join(", ")} } = app;`),
    "failed",
    "src/worker.ts does not export Executor. Add it",
  ],
  [
    "no D1",
    configured((parts) => ({ ...parts, d1_databases: [] })),
    "warning",
    'There is no D1 binding DB, so lists, dead letters and libraries by API answer 503. Add "d1_databases"',
  ],
  [
    "a D1 binding of another name",
    configured((parts) => ({ ...parts, d1_databases: [{ binding: "DATABASE" }] })),
    "warning",
    'Rename the binding "DATABASE" to "DB".',
  ],
  [
    "no R2",
    configured((parts) => ({ ...parts, r2_buckets: [] })),
    "warning",
    "There is no R2 binding BUCKET, so attachments, repositories and artifacts answer 503.",
  ],
  [
    "a folder of assets that does not exist",
    configured((parts) => ({ ...parts, assets: { directory: "public", binding: "ASSETS" } })),
    "failed",
    'The folder public of "assets" does not exist. Run npm install and npm run build',
  ],
  [
    "a page that hides the API",
    configured((parts) => ({
      ...parts,
      assets: {
        ...parts.assets,
        not_found_handling: "single-page-application",
        run_worker_first: ["/api/*", "/.well-known/*"],
      },
    })),
    "failed",
    'Add "/health", "/conversations/*", "/agents/*", "/v1/*", "/agui/*", "/a2a/*", "/git/*", "/mcp", "/openapi.json" to "run_worker_first"',
  ],
  [
    "assets without a binding",
    configured(({ assets: { binding: _, ...assets }, ...parts }) => ({ ...parts, assets })),
    "warning",
    "so searches of memories compare only words",
  ],
  [
    "a secret in the configuration",
    configured((parts) => ({ ...parts, vars: { OPENAI_API_KEY: "sk-1" } })),
    "failed",
    "npx wrangler secret put OPENAI_API_KEY",
  ],
  [
    "local access in the configuration",
    configured((parts) => ({ ...parts, vars: { DRAMATIS_LOCAL: "1" } })),
    "failed",
    "Move it to .dev.vars.",
  ],
  [
    "a short secret",
    (project) => write(project, ".dev.vars", "AUTH_SECRET=short\n"),
    "failed",
    "AUTH_SECRET has 5 bytes. It needs at least 32.",
  ],
  [
    "a short key for the secrets of projects",
    (project) => write(project, ".dev.vars", "SECRETS_KEY=a\n"),
    "failed",
    "SECRETS_KEY has 1 bytes. It needs at least 32.",
  ],
  [
    "an address in place of a host",
    (project) => write(project, ".dev.vars", "DRAMATIS_HTTP_HOSTS=api.example.com, https://b.example\n"),
    "failed",
    'DRAMATIS_HTTP_HOSTS: "https://b.example" is not a host.',
  ],
  [
    "a misspelled variable",
    (project) => write(project, ".dev.vars", "DRAMATIS_LOCAL=1\nDRAMATIS_LOCALE=1\n"),
    "warning",
    "Nothing reads DRAMATIS_LOCALE. Did you mean DRAMATIS_LOCAL?",
  ],
  [
    "a model without a provider",
    (project) => write(project, ".dev.vars", "DRAMATIS_MODEL=gpt-4.1\n"),
    "failed",
    'DRAMATIS_MODEL must be "provider/model"',
  ],
  [
    "a misspelt provider of a model",
    (project) => write(project, ".dev.vars", "DRAMATIS_MODEL=opnai/gpt-4.1-mini\n"),
    "failed",
    'Did you mean "openai"? Providers are workers-ai, openai,',
  ],
  [
    "a local model without a server",
    (project) => write(project, ".dev.vars", "DRAMATIS_MODEL=local/qwen3\nOPENAI_API_KEY=k\n"),
    "failed",
    ".dev.vars: DRAMATIS_MODEL names a local model. Set OPENAI_BASE_URL to the address of its server.",
  ],
  [
    "a model by another name of its provider, without a key",
    (project) => write(project, ".dev.vars", "DRAMATIS_MODEL=google/gemini-3.8-flash\n"),
    "failed",
    ".dev.vars: The model of DRAMATIS_MODEL has no key. Set GEMINI_API_KEY. For a server without keys, set GEMINI_BASE_URL instead.",
  ],
  [
    "a model without a key",
    (project) => write(project, ".dev.vars", "DRAMATIS_MODEL=anthropic/claude-haiku-5-5\n"),
    "failed",
    ".dev.vars: The model of DRAMATIS_MODEL has no key. Set ANTHROPIC_API_KEY.",
  ],
  [
    "a model with a blank key",
    (project) => write(project, ".dev.vars", 'DRAMATIS_MODEL=openai/gpt-4.1-mini\nOPENAI_API_KEY=" "\n'),
    "failed",
    "Set OPENAI_API_KEY.",
  ],
  [
    "an unknown model in `.env`",
    (project) => write(project, ".env", "DRAMATIS_MODEL=nonsense\n"),
    "failed",
    '.env: DRAMATIS_MODEL must be "provider/model"',
  ],
  [
    "a misspelled variable in `.env.local`",
    (project) => {
      write(project, ".env", "DRAMATIS_LOCAL=1\n");
      write(project, ".env.local", "DRAMATIS_LOCALE=1\n");
    },
    "warning",
    ".env.local: Nothing reads DRAMATIS_LOCALE.",
  ],
  [
    "an unknown model in `vars`",
    configured((parts) => ({ ...parts, vars: { DRAMATIS_MODEL: "nonsense" } })),
    "failed",
    'wrangler.jsonc: DRAMATIS_MODEL must be "provider/model"',
  ],
  [
    "a model in `vars` without a key on this machine",
    configured((parts) => ({ ...parts, vars: { DRAMATIS_MODEL: "openai/gpt-4.1-mini" } })),
    "warning",
    "wrangler.jsonc: The model of DRAMATIS_MODEL has no key.",
  ],
  [
    "an old package",
    (project) => write(project, "node_modules/zod/package.json", '{"version": "3.25.0"}'),
    "failed",
    "zod 3.25.0 is too old. Run: npm install zod@^4.0",
  ],
  [
    "a missing package",
    (project) => rmSync(join(project, "node_modules/wrangler"), { recursive: true }),
    "failed",
    "The package wrangler is not installed. Run: npm install wrangler@^4.155",
  ],
  [
    "a migration of the Executor",
    configured((parts) => ({
      ...parts,
      migrations: [{ tag: "v1", new_sqlite_classes: [...CLASSES, "Executor"] }],
    })),
    "failed",
    '"migrations" names "Executor", which is not a Durable Object. Remove this name.',
  ],
  [
    "an actor of the project without a migration",
    (project) => {
      write(project, "src/shelf.ts", "export class Shelf extends SessionAgent {}");
      const worker = `export { Shelf } from "./shelf";\nexport const { ${CLASSES.join(", ")}, Executor } = app;`;
      write(project, "src/worker.ts", worker);
    },
    "failed",
    'Add { "tag": "v2", "new_sqlite_classes": ["Shelf"] } to "migrations", at the end.',
  ],
  [
    "an environment without bindings",
    configured((parts) => ({ ...parts, env: { staging: { r2_buckets: [{ binding: "BUCKET" }] } } })),
    "warning",
    'The environment "staging" does not inherit "d1_databases". Write these settings into "env.staging", too.',
  ],
  [
    "a key in a variable of another name",
    configured((parts) => ({ ...parts, vars: { SHOP: "sk-proj-1234567890", MAX_TOKENS: "9" } })),
    "failed",
    "npx wrangler secret put SHOP",
  ],
  [
    "secrets that git does not ignore",
    (project) => {
      execFileSync("git", ["init", "-q"], { cwd: project });
      write(project, ".gitignore", "node_modules\n");
      write(project, ".dev.vars", "DRAMATIS_LOCAL=1\nOPENAI_API_KEY=sk-proj-1234567890\n");
    },
    "failed",
    ".dev.vars contains secrets, and git does not ignore it. Add the line .dev.vars* to .gitignore.",
  ],
  [
    "no access on this machine",
    (project) => {
      const { scripts: _, ...manifest } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
      write(project, "package.json", JSON.stringify(manifest));
    },
    "warning",
    ".dev.vars: The API answers 401 on your machine. Add the line DRAMATIS_LOCAL=1 to this file.",
  ],
  [
    "no access on this machine with a file `.env`",
    (project) => {
      const { scripts: _, ...manifest } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
      write(project, "package.json", JSON.stringify(manifest));
      write(project, ".env", "AGENT=guide\n");
    },
    "warning",
    ".env: The API answers 401 on your machine.",
  ],
  [
    "a second copy of agents",
    (project) => {
      const manifest = { version: "0.4.0", dependencies: { agents: "0.32.0" } };
      write(project, "node_modules/dramatis/package.json", JSON.stringify(manifest));
      write(project, "node_modules/agents/package.json", '{"version": "0.30.1"}');
    },
    "warning",
    "dramatis uses a second copy, agents 0.32.0. Run: npm install agents@0.32.0",
  ],
])("G20 DOCTOR-1 %s", (_, breakIt, status, message) => {
  const project = copy();
  breakIt(project);
  expect(projectProblems(project, NODE)).toEqual([{ status, message: expect.stringContaining(message) }]);
});

test("G20 DOCTOR-1 takes variables as wrangler does: `vars`, then `.dev.vars`, or `.env` and `.env.local` without it", () => {
  const project = copy();
  configured((parts) => ({ ...parts, vars: { OPENAI_BASE_URL: "http://127.0.0.1:1/v1" } }))(project);
  write(project, ".env", "DRAMATIS_MODEL=nonsense\n");
  write(project, ".env.local", "DRAMATIS_MODEL=local/qwen3\n");
  expect(projectProblems(project, NODE)).toEqual([]);
  write(project, ".env.local", "");
  expect(projectProblems(project, NODE)).toMatchObject([{ status: "failed" }]);
  write(project, ".dev.vars", "DRAMATIS_LOCAL=1\n");
  expect(projectProblems(project, NODE)).toEqual([]);
});

test("G20 DOCTOR-1 an old Node", () => {
  const message = "Node 20.11.0 is too old. Install Node 22.14 or newer.";
  expect(projectProblems(sound, "20.11.0")).toEqual([{ status: "failed", message }]);
});

test("G20 DOCTOR-1 CLIEXIT-1 the exit code is 1 for a project that does not work, and 0 for warnings", () => {
  const project = copy();
  expect(doctor(root, project)).toEqual({
    status: 0,
    text: "ok       project   The files of the project are right.\n",
  });
  configured((parts) => ({ ...parts, r2_buckets: [] }))(project);
  expect(doctor(project, "--project")).toMatchObject({ status: 0, text: expect.stringMatching(/^warning/) });
  rmSync(join(project, "wrangler.jsonc"));
  expect(doctor(project, ".")).toMatchObject({ status: 1, text: expect.stringMatching(/^failed/) });
  expect(doctor(project, "..")).toMatchObject({ status: 1, text: expect.stringMatching(/has no project/) });
});

test.each<[string, string, string | null]>([
  [
    "an unknown persona",
    'dramatis({ agents: [{ id: "guide", persona: "my/giude" }], libraries: [my] })',
    "giude",
  ],
  ["an unknown option", "dramatis({ agent: [] })", 'Did you mean "agents"?'],
  ["a wrong definition in another module", 'broken("a/b")', "The id "],
  [
    "right definitions",
    'dramatis({ agents: [{ id: "guide", persona: "my/guide" }], libraries: [my] })',
    null,
  ],
  ["a module of the platform of Workers", 'await import("cloudflare:workers")', null],
])("G20 DOCTOR-2 %s is one failed check, with the module that must change", (_, call, problem) => {
  const project = copy();
  writeWorker(project, call);
  const { status, text } = doctor(project, "--project");
  expect(status).toBe(problem === null ? 0 : 1);
  expect(text).toMatch(problem === null ? /^ok +project .*\n$/ : /^failed +project +src\/worker\.ts: .*\n$/);
  expect(text).toContain(problem ?? "right");
});

test("G20 DOCTOR-3 a definition may read variables of the Worker", () => {
  const project = copy();
  writeWorker(
    project,
    "dramatis({ agents: [{ id: process.env.AGENT, persona: process.env.PERSONA }], libraries: [my] })",
  );
  write(project, ".dev.vars", "DRAMATIS_LOCAL=1\nPERSONA=my/giude\n");
  configured((parts) => ({ ...parts, vars: { AGENT: "guide", PERSONA: "other" } }))(project);
  expect(doctor(project, "--project")).toMatchObject({ status: 1, text: expect.stringContaining("giude") });
  write(project, ".dev.vars", "DRAMATIS_LOCAL=1\nPERSONA=my/guide\n");
  expect(doctor(project, "--project")).toMatchObject({ status: 0, text: expect.stringMatching(/^ok /) });
});

test.each([
  ["waits without end", "await new Promise(() => {});"],
  ["exits", "process.exit(0);"],
])("G20 DOCTOR-3 a module that %s fails no check", (_, before) => {
  const project = copy();
  writeWorker(project, 'broken("a/b")', before);
  expect(doctor(project, "--project")).toEqual({
    status: 0,
    text: "ok       project   The files of the project are right.\n",
  });
});

test.each([
  ["waits", "await new Promise(() => setInterval(() => {}, 1_000));"],
  ["never yields", "for (;;);"],
])("G20 DOCTOR-4 a module that %s without end is stopped at the deadline", async (_, code) => {
  const project = copy();
  write(project, "src/worker.ts", code);
  const { signal } = new AbortController();
  const start = performance.now();
  expect(await checkDefinitions(join(project, "src/worker.ts"), {}, signal, 1_000)).toEqual({ isLate: true });
  expect(performance.now() - start).toBeGreaterThan(990);
});

test("G20 DOCTOR-4 a module that the doctor stops is a warning", async () => {
  const project = copy();
  write(project, "src/worker.ts", `export const { ${CLASSES.join(", ")}, Executor } = {};\nfor (;;);`);
  const deadline = vi.spyOn(AbortSignal, "timeout").mockReturnValue(AbortSignal.abort());
  onTestFinished(() => deadline.mockRestore());
  const { signal } = new AbortController();
  // SAFETY: the command uses no other member for a project.
  const answer = await DOCTOR_COMMANDS[0]?.run({ width: 80, signal } as never, [project], {});
  expect(answer).toMatchObject({
    value: {
      ok: true,
      checks: [{ status: "warning", message: expect.stringMatching(/^src\/worker\.ts: .* 10 seconds/) }],
    },
  });
});

test("G20 DOCTOR-3 variables may be large, and a file with null bytes is one problem without a value", () => {
  const project = copy();
  writeWorker(project, 'broken("a/b")');
  write(project, ".dev.vars", `DRAMATIS_LOCAL=1\nLARGE=${"x".repeat(200_000)}\nKEY="hidden\0value"\n`);
  const { text } = doctor(project, "--project", "--json");
  const messages = JSON.parse(text).checks.map(({ message }: { message: string }) => message);
  expect(messages).toEqual([
    ".dev.vars has null bytes. Save this file as UTF-8.",
    expect.stringContaining("a/b"),
  ]);
  expect(text).not.toContain("hidden");
});

test("G20 DOCTOR-3 messages of the module are not its result", async () => {
  const project = copy();
  write(project, "src/worker.ts", 'process.send?.({ refused: "other" });');
  const { signal } = new AbortController();
  expect(await checkDefinitions(join(project, "src/worker.ts"), {}, signal)).toEqual({ isLate: false });
});

test("G20 DOCTOR-4 the process ends if the doctor is killed at once", async () => {
  const project = copy();
  write(project, "src/worker.ts", "for (;;);");
  const running = spawn(process.execPath, [...DOCTOR, "--project"], { cwd: project, stdio: "ignore" });
  const children = () => readFileSync(`/proc/${running.pid}/task/${running.pid}/children`, "utf8").trim();
  const pid = Number(await vi.waitUntil(children, { timeout: 20_000, interval: 1 }));
  running.kill("SIGKILL");
  await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), 10_000);
});

test.each(["SIGINT", "SIGTERM", "SIGKILL"] as const)(
  "G20 DOCTOR-4 the process of a module that never yields ends with the doctor, after %s",
  async (kill) => {
    const project = copy();
    const file = join(project, "pid");
    const code = `import { writeFileSync } from "node:fs";
writeFileSync(${JSON.stringify(`${file}.new`)}, String(process.pid));
(await import("node:fs")).renameSync(${JSON.stringify(`${file}.new`)}, ${JSON.stringify(file)});
for (;;);`;
    write(project, "src/worker.ts", code);
    const running = spawn(process.execPath, [...DOCTOR, "--project"], { cwd: project, stdio: "ignore" });
    await vi.waitFor(() => expect(existsSync(file)).toBe(true), 20_000);
    running.kill(kill);
    const pid = Number(readFileSync(file, "utf8"));
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), 5_000);
  },
);

test("G20 DOCTOR-3 the doctor does not print the output of the module", () => {
  const project = copy();
  writeWorker(
    project,
    'broken("a/b")',
    'console.log("text"); console.error("text"); setInterval(() => {}, 1_000);',
  );
  const { status, text } = doctor(project, "--project", "--json");
  expect(status).toBe(1);
  expect(JSON.parse(text)).toMatchObject({ ok: false, checks: [{ name: "project", status: "failed" }] });
});

test("G20 without an address, a stopped server is a warning in a project, and a failure elsewhere", async () => {
  const client = createClient({ baseUrl: "http://127.0.0.1:1" });
  const { signal } = new AbortController();
  const request = requester("http://127.0.0.1:1", undefined, signal);
  // SAFETY: the command uses no other member without a server.
  const cli = { client, request, signal, url: "http://127.0.0.1:1", width: 80 } as never;
  const server = async (options: Record<string, string>) =>
    (await DOCTOR_COMMANDS[0]?.run(cli, [], options))?.text.match(/(\w+) +server/)?.[1];
  vi.spyOn(process, "cwd").mockReturnValue(sound);
  onTestFinished(() => void vi.restoreAllMocks());
  expect(await server({})).toBe("warning");
  expect(await server({ url: "http://127.0.0.1:1" })).toBe("failed");
  vi.spyOn(process, "cwd").mockReturnValue(root);
  expect(await server({})).toBe("failed");
});

test("G20 the doctor of this repository checks no project", async () => {
  // SAFETY: the command uses no other member without a server.
  const answer = await DOCTOR_COMMANDS[0]?.run({ width: 80 } as never, [], { project: "" });
  expect(answer).toMatchObject({ value: { ok: true, checks: [] } });
});
