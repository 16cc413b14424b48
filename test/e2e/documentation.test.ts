/** The code of README.md and docs/*.md, compiled as printed in an empty project, and the example of docs/tools.md in use. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { type Example, examplesIn, filesOf } from "../support/doc-examples.ts";
import { installFromCheckout } from "../support/npm-project.ts";
import { packedPackage, quiet, run } from "../support/packed-package.ts";
import { processTree, waitUntilGone } from "../support/processes.ts";

const ROOT = join(import.meta.dirname, "../..");
const WRANGLER = join(ROOT, "node_modules/wrangler/bin/wrangler.js");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");
const PAGES = globSync(["README.md", "CONTRIBUTING.md", "docs/*.md"], {
  cwd: ROOT,
  exclude: ["docs/spec.md", "docs/capabilities.md"],
});

const folder = mkdtempSync(join(tmpdir(), "dramatis-docs-"));
const project = join(folder, "project");
const page = (name: string) => readFileSync(join(ROOT, name), "utf8");
const examples = PAGES.flatMap((name) => examplesIn(name, page(name)));
const inLanguage = (language: string) => examples.filter((example) => example.language === language);

function write(name: string, text: string): void {
  mkdirSync(dirname(join(project, name)), { recursive: true });
  writeFileSync(join(project, name), text);
}

/** Returns the only example of these pages that contains this text. */
function exampleWith(part: string, pages: readonly string[] = PAGES): Example {
  const found = examples.filter(({ page, text }) => pages.includes(page) && text.includes(part));
  expect(found).toHaveLength(1);
  // SAFETY: the line above.
  return found[0] as Example;
}

/** The configuration of docs/start.md, with the migrations of docs/delivery.md and of docs/tools.md. */
function configuration(changes: object = {}): string {
  const pattern = JSON.parse(page("wrangler.jsonc"));
  const printed = JSON.parse(exampleWith('"main": "src/', ["docs/start.md"]).text);
  const { migrations } = JSON.parse(`{${exampleWith('"migrations": [', ["docs/delivery.md"]).text}}`);
  return JSON.stringify({
    ...pattern,
    ...printed,
    assets: { ...pattern.assets, ...printed.assets },
    migrations: [...migrations, { tag: "v3", new_sqlite_classes: ["Shelf"] }],
    ...changes,
  });
}

/** The Worker of the pages, changed as docs/tools.md describes. */
function workerWithShop(text: string): string {
  const tools = page("docs/tools.md");
  const [, agent = ""] = /`(\{ id: "seller".+?\})`/.exec(tools) ?? [];
  const [, exported = ""] = /`(export \{ Shelf \}.+?)`/.exec(tools) ?? [];
  expect([agent, exported]).not.toContain("");
  const changed = text
    .replace("libraries: [library]", "libraries: [library, shop, payments]")
    .replace("agents: [", `agents: [${agent}, { id: "cashier", persona: "payments/cashier" }, `)
    .replace("export default app.handler;", exampleWith('"/api/webhooks/payments"').text);
  const imports = 'import { payments, paymentWebhook } from "./payments";\nimport { shop } from "./shop";';
  return `${imports}\n${changed}\n${exported};\n`;
}

/** Returns the errors of the compiler, except those in declarations of other packages. */
function typeErrors(...options: string[]): string[] {
  try {
    run(project, process.execPath, TSC, "--pretty", "false", ...options);
    return [];
  } catch (cause) {
    const errors = String(cause).match(/^.*\berror TS\d.*$/gm);
    if (errors === null) throw cause;
    return errors;
  }
}

beforeAll(async () => {
  const archive = await packedPackage();
  const installed = join(project, "node_modules/dramatis");
  mkdirSync(installed, { recursive: true });
  run(project, "tar", "-xzf", archive, "-C", installed, "--strip-components=1");
  run(project, "npm", "init", "-y");
  const { dependencies } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"));
  installFromCheckout(project, [...Object.keys(dependencies), "zod"]);
  installFromCheckout(project, [
    "react",
    "@types/react",
    "@types/node",
    "ai",
    "@ai-sdk/react",
    "vitest",
    "workers-ai-provider",
  ]);
  for (const [path, text] of filesOf(inLanguage("ts"))) {
    write(path, path === "src/worker.ts" ? workerWithShop(text) : text);
  }
  write("wrangler.jsonc", configuration());
  write(".dev.vars", "DRAMATIS_LOCAL=1\nSHELF=main\nPAYMENTS_URL=http://127.0.0.1:1\n");
  const [, init = ""] = /^npx tsc (--init .+) && npx tsc --noEmit$/m.exec(page("docs/start.md")) ?? [];
  run(project, process.execPath, TSC, ...init.split(" "));
  run(project, process.execPath, WRANGLER, "types");
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("G2 the code of the documentation, as printed", () => {
  it("compiles after the tutorial's `wrangler types` and `tsc --init`, with typed exports", () => {
    expect(typeErrors("--noEmit")).toEqual([]);
    write("src/wrong.ts", 'import { exports } from "cloudflare:workers";\nexports.Nothing;\n');
    expect(typeErrors("--noEmit")).toEqual([expect.stringContaining("'Nothing' does not exist")]);
    rmSync(join(project, "src/wrong.ts"));
  });

  it("compiles for pages: React components and hooks", () => {
    for (const [path, text] of filesOf(inLanguage("tsx"))) write(path, text);
    const files = [...filesOf(inLanguage("tsx")).keys()];
    const browser = ["--types", "react", "--lib", "es2024,dom,dom.iterable", "--jsx", "react-jsx"];
    const module = ["--module", "esnext", "--moduleResolution", "bundler", "--target", "es2024"];
    expect(
      typeErrors("--ignoreConfig", "--noEmit", "--strict", "--skipLibCheck", ...browser, ...module, ...files),
    ).toEqual([]);
    for (const file of files) rmSync(join(project, file));
  });

  it("bundles under the compatibility dates and flags that the tutorial names, and not below", () => {
    const deploy = (changes: object) => {
      write("dated.jsonc", configuration(changes));
      return run(project, process.execPath, WRANGLER, "deploy", "--dry-run", "--config", "dated.jsonc");
    };
    const [, oldest = "", since = ""] =
      /`compatibility_date` of (\S+) or later\. An older date than (\S+)\s+also needs/.exec(
        page("docs/start.md"),
      ) ?? [];
    const flags = JSON.parse(`{${/`("compatibility_flags": \[.+?\])`/.exec(page("docs/start.md"))?.[1]}}`);
    expect(deploy({ compatibility_date: since })).toContain("exiting now");
    expect(deploy({ compatibility_date: oldest, ...flags })).toContain("exiting now");
    expect(() => deploy({ compatibility_date: oldest })).toThrow('Could not resolve "path"');
  });

  it("G16 deploys a clone without ids, as a dry run", () => {
    expect(page("wrangler.jsonc")).not.toContain('"database_id"');
    const assets = ["--assets", join(project, "node_modules/dramatis/console")];
    const dryRun = ["deploy", "--dry-run", "--outdir", join(project, "dry"), ...assets];
    expect(run(ROOT, process.execPath, WRANGLER, ...dryRun)).toMatch(
      /env\.DB .+ D1 Database[\s\S]*exiting now/,
    );
  });

  it("makes a token that `jose` has signed", () => {
    write("token.mjs", exampleWith("// token.mjs").text);
    const env = { ...quiet, AUTH_SECRET: "0123456789abcdef0123456789abcdef" };
    const token = execFileSync(process.execPath, ["token.mjs"], { cwd: project, env, encoding: "utf8" });
    expect(JSON.parse(atob(token.split(".")[1] ?? ""))).toMatchObject({ sub: "ada", tenant: "local" });
  });
});

describe("the tools of docs/tools.md, under wrangler dev", () => {
  const printed: string[] = [];
  let server: ChildProcess;
  let client: ReturnType<typeof createClient>;
  let address: string;
  /** The bodies that the provider of payments got. */
  const checkouts: { metadata: object }[] = [];
  const provider = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    checkouts.push(JSON.parse(body));
    response.end("{}");
  });

  beforeAll(async () => {
    const [tested = ""] = filesOf([exampleWith("await total.run(")]).keys();
    const worker = readFileSync(join(project, "src/worker.ts"), "utf8");
    write("src/worker.ts", `import "../${tested.replace(/\.ts$/, "")}";\n${worker}`);
    await once(provider.listen(0, "127.0.0.1"), "listening");
    const { port } = provider.address() as AddressInfo;
    write(".dev.vars", `DRAMATIS_LOCAL=1\nSHELF=main\nPAYMENTS_URL=http://127.0.0.1:${port}\n`);
    server = spawn(process.execPath, [WRANGLER, "dev", "--port", "0"], {
      cwd: project,
      env: { ...quiet, WRANGLER_REGISTRY_PATH: join(folder, "registry") },
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    address = await addressOf(server, printed);
    client = createClient({ baseUrl: address });
  });

  afterAll(async () => {
    provider.close();
    const pids = processTree(server.pid ?? 0).map(({ pid }) => pid);
    process.kill(-(server.pid ?? 0), "SIGKILL");
    await waitUntilGone(pids);
  });

  it("takes items from its actor, and explains a refusal to the model", async () => {
    const { id } = await client.conversations.create({ agentId: "seller" });
    const results: unknown[] = [];
    for (const count of [2, 9]) {
      const frames = client.streamTurn(id, { content: `!tool take_items {"count": ${count}}` });
      for await (const { type, data } of frames) {
        if (type.startsWith("tool.")) results.push({ type, ...data });
      }
    }
    expect(results).toMatchObject([
      { type: "tool.requested", name: "take_items" },
      { type: "tool.progress", progress: { step: "taking" } },
      { type: "tool.completed", result: { taken: 2, left: 8 } },
      { type: "tool.requested" },
      { type: "tool.progress" },
      {
        type: "tool.failed",
        error: { code: "INVALID_INPUT", message: expect.stringContaining("Take less") },
      },
    ]);
  });

  it("DEFER-1 waits for a payment until its webhook completes the operation", async () => {
    const { id } = await client.conversations.create({ agentId: "cashier" });
    const { turnId } = await client.turns.start(id, { content: '!tool pay {"cents": 4200}' });
    await expect.poll(() => checkouts.length).toBe(1);
    const [{ metadata } = { metadata: {} }] = checkouts;
    expect((await client.turns.get(id, turnId)).status).toBe("active");
    const call = async (status = "paid") => {
      const body = JSON.stringify({ status, metadata });
      const response = await fetch(`${address}/api/webhooks/payments`, { method: "POST", body });
      expect(response.status).toBe(200);
      return response.json();
    };
    expect(await call()).toMatchObject({ status: "completed" });
    expect(await call(), "the provider repeats it").toMatchObject({ status: "completed" });
    await expect.poll(async () => (await client.turns.get(id, turnId)).status).toBe("completed");
    const [move] = (await client.turns.get(id, turnId)).moves;
    expect(move?.toolResult).toEqual({ success: true, result: { paid: true } });
    expect(await call("failed"), "another result").toMatchObject({ status: "ignored" });
  });

  it("runs a tool without a model", async () => {
    await expect.poll(() => printed).toContain("3");
  });
});

/** Returns the address that wrangler prints. Adds each printed line to `printed`. */
async function addressOf(server: ChildProcess, printed: string[]): Promise<string> {
  const listening = new Promise<string>((resolve) => {
    for (const input of [server.stdout, server.stderr]) {
      if (input === null) continue;
      createInterface({ input }).on("line", (line) => {
        printed.push(line);
        const [, url] = /Ready on (http:\S+)/.exec(line) ?? [];
        if (url !== undefined) resolve(url);
      });
    }
  });
  const ended = once(server, "exit").then(() => {
    throw new Error(`wrangler dev has ended:\n${printed.join("\n")}`);
  });
  return Promise.race([listening, ended]);
}
