/** New projects from the two archives of a build: `create-dramatis` writes them, and their own scripts check, test, evaluate, serve and deploy them. */
import { type ChildProcess, spawn } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { VERSION } from "../../src/shared/version.ts";
import { installFromCheckout } from "../support/npm-project.ts";
import { packedPackage, quiet, run } from "../support/packed-package.ts";
import { processTree, waitUntilGone } from "../support/processes.ts";
import { wranglerAddress } from "../support/wrangler-address.ts";

const folder = mkdtempSync(join(tmpdir(), "dramatis-templates-"));
const creator = join(folder, "create-dramatis");
let archive: string;

/** Packages of the templates, in addition to those of the package. */
const PACKAGES = [
  ...["zod", "@cloudflare/workers-types", "typescript", "vitest", "wrangler", "vite", "@vitejs/plugin-react"],
  ...["react", "react-dom", "@types/react", "@types/react-dom"],
];

interface Manifest {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}

const manifestOf = (path: string): Manifest => JSON.parse(readFileSync(join(path, "package.json"), "utf8"));

/** Runs `create-dramatis` in the folder of the tests. */
const create = (...args: string[]) =>
  run(folder, process.execPath, join(creator, "cli/create.js"), ...args, "--package", archive);

// The projects share one installation.
beforeAll(async () => {
  archive = await packedPackage();
  const installed = join(folder, "node_modules/dramatis");
  for (const [packed, at] of [
    [archive, installed],
    [join(dirname(archive), "create-dramatis.tgz"), creator],
  ] as const) {
    mkdirSync(at, { recursive: true });
    run(folder, "tar", "-xzf", packed, "-C", at, "--strip-components=1");
  }
  installFromCheckout(folder, [...Object.keys(manifestOf(installed).dependencies), ...PACKAGES]);
  run(folder, "npm", "init", "-y");
  run(folder, "npm", "rebuild", "--offline", "--ignore-scripts");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The environment of a shell with the Node of the tests. */
const environment = {
  ...quiet,
  PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
  WRANGLER_REGISTRY_PATH: join(folder, "registry"),
};

let server: ChildProcess | undefined;
afterEach(async () => {
  if (server?.pid === undefined) return;
  const pids = processTree(server.pid).map(({ pid }) => pid);
  process.kill(-server.pid, "SIGKILL");
  await waitUntilGone(pids);
  server = undefined;
});

/** Starts `npm run dev` of a project. Returns its address. */
async function serve(project: string): Promise<string> {
  server = spawn("npm", ["run", "dev", "--", "--port", "0", "--inspector-port", "0"], {
    cwd: project,
    env: environment,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  return wranglerAddress(server);
}

/** Sends a message to a new conversation. Returns its messages as JSON. */
async function ask(url: string, agentId: string, content: string): Promise<string> {
  const client = createClient({ baseUrl: url });
  const { id } = await client.conversations.create({ agentId });
  for await (const { type } of client.streamTurn(id, { content })) expect(type).not.toBe("turn.failed");
  return (await fetch(`${url}/api/conversations/${id}/messages`)).text();
}

describe("I8 G19 INIT-2 a project of each template type-checks, tests, evaluates, answers and deploys as far as that can be tried", () => {
  it.each<[string, (url: string) => Promise<void>]>([
    [
      "assistant",
      async (url) => {
        expect(await ask(url, "assistant", "Hello")).toContain("Offline model");
        expect(await ask(url, "assistant", "What is 12 * 34?")).toContain("408");
      },
    ],
    [
      "team",
      async (url) => {
        expect(await ask(url, "manager", "Hello")).toContain("Offline model");
        expect(await ask(url, "manager", "Ask the researcher about refunds")).toContain("esearcher");
      },
    ],
    [
      "workflow",
      async (url) => {
        expect(await ask(url, "clerk", "Hello")).toContain("Offline model");
        const client = createClient({ baseUrl: url });
        const { id } = await client.runs.start({ workflow: "app/refund", input: { order: "A-7" } });
        await expect.poll(async () => (await client.runs.get(id)).gates?.length).toBe(1);
        const [gate] = (await client.runs.get(id)).gates ?? [];
        await client.runs.answer(id, gate?.operationId ?? "", { approved: true });
        await expect
          .poll(async () => (await client.runs.get(id)).output)
          .toEqual({
            approved: true,
            receipt: "receipt-A-7",
          });
      },
    ],
    [
      "react",
      async (url) => {
        expect(await ask(url, "assistant", "Hello")).toContain("Offline model");
        const page = await (await fetch(`${url}/app/`)).text();
        expect(page).toContain('<main id="root">');
        const [, script = ""] = /src="([^"]+\.js)"/.exec(page) ?? [];
        expect((await fetch(url + script)).headers.get("content-type")).toContain("javascript");
        expect(await (await fetch(`${url}/agents`)).text()).toContain('<div id="root">');
      },
    ],
  ])("%s", async (template, answers) => {
    const project = join(folder, template);
    expect(create(template, "--template", template)).toContain("npm run dev");
    symlinkSync(join(folder, "node_modules"), join(project, "node_modules"), "junction");
    const npm = (...args: string[]) => run(project, "npm", "run", "--silent", ...args);
    const { dependencies, devDependencies } = manifestOf(project);
    expect(dependencies.dramatis).toMatch(/^file:.*\/dramatis\.tgz$/);
    expect(
      Object.keys({ ...dependencies, ...devDependencies }).filter((name) => name !== "dramatis"),
    ).toEqual(expect.arrayContaining(PACKAGES.slice(0, 5)));
    expect(
      readFileSync(join(project, "wrangler.jsonc"), "utf8").trim().split("\n").length,
    ).toBeLessThanOrEqual(20);
    npm("check");
    expect(npm("test")).toMatch(/Tests .*passed/);
    expect(npm("eval")).toContain("passed");
    if (template === "react") npm("build");
    expect(run(project, "npx", "--no-install", "wrangler", "deploy", "--dry-run")).toMatch(
      /env\.DB .*env\.BUCKET .*--dry-run: exiting now\./s,
    );
    expect(npm("doctor", "--", "--project")).toContain("The files of the project are right.");
    await answers(await serve(project));
  });
});

it("I8 INIT-1 INIT-2 `dramatis init` completes an existing manifest, and changes no other file", () => {
  const project = join(folder, "existing");
  mkdirSync(project);
  const own = { name: "mine", scripts: { test: "node --test" }, dependencies: { dramatis: "file:../d.tgz" } };
  writeFileSync(join(project, "package.json"), JSON.stringify(own));
  const init = (...args: string[]) => run(project, "npx", "--no-install", "dramatis", "init", ...args);
  expect(init()).toContain('Created existing from the template "assistant"');
  expect(manifestOf(project)).toMatchObject({
    name: "mine",
    type: "module",
    scripts: { test: "node --test", dev: expect.stringContaining("wrangler dev") },
    dependencies: { dramatis: "file:../d.tgz", zod: expect.any(String) },
  });
  const before = readdirSync(project);
  expect(() => init("--template", "team")).toThrow(
    ". already has .github/workflows/ci.yml, .gitignore, README.md, evals/agents.eval.ts, src/agents.ts, src/worker.ts",
  );
  expect(() => init("other", "--template", "chat")).toThrow(
    'Unknown template "chat". Templates are assistant, react, team, workflow.',
  );
  expect(() => init("other", "--package", "none.tgz")).toThrow("The archive none.tgz does not exist.");
  expect(readdirSync(project)).toEqual(before);
  init("new");
  expect(manifestOf(join(project, "new")).dependencies.dramatis).toBe(`^${VERSION}`);
});
