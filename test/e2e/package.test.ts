/** The package of `npm run build` and `npm pack`, used in an empty project as the tutorial describes. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { VERSION } from "../../src/shared/version.ts";
import { installFromCheckout } from "../support/npm-project.ts";
import { packedPackage, quiet, run } from "../support/packed-package.ts";
import { processTree, waitUntilGone } from "../support/processes.ts";
import { wranglerAddress } from "../support/wrangler-address.ts";

const ROOT = join(import.meta.dirname, "../..");
const WRANGLER = join(ROOT, "node_modules/wrangler/bin/wrangler.js");
const TSC = join(ROOT, "node_modules/typescript/bin/tsc");

const folder = mkdtempSync(join(tmpdir(), "dramatis-package-"));
const project = join(folder, "project");
const installed = join(project, "node_modules/dramatis");

interface Manifest {
  bin: Record<string, string>;
  exports: Record<string, { types: string }>;
  engines: { node: string };
  dependencies: Record<string, string>;
}

function manifestOf(path: string): Manifest {
  return JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
}

/** Returns the names of the values that a declaration file exports. */
function exportedValues(file: string): string[] {
  const declarations = readFileSync(file, "utf8");
  const lists = [...declarations.matchAll(/^export \{([^}]*)\}/gm)].flatMap(([, list = ""]) =>
    list.split(","),
  );
  const listed = lists.map((name) => name.trim()).filter((name) => name !== "" && !name.startsWith("type "));
  const declared = [...declarations.matchAll(/^export declare (?:function|const|class) (\w+)/gm)];
  const spaces = [...declarations.matchAll(/^export \* as (\w+) from/gm)];
  const others = [...declarations.matchAll(/^export \* from "(.*)\.js";$/gm)].flatMap(([, module = ""]) =>
    exportedValues(join(dirname(file), `${module}.d.ts`)),
  );
  return [
    ...listed.map((name) => name.replace(/^.* as /, "")),
    ...[...declared, ...spaces].map(([, name = ""]) => name),
    ...others,
  ];
}

/** Examples of the tutorial, with language and text. */
function printedExamples(): { language: string; text: string }[] {
  const tutorial = readFileSync(join(ROOT, "docs/start.md"), "utf8");
  return [...tutorial.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", text = ""]) => ({
    language,
    text,
  }));
}

/** Returns the examples of docs/protocols.md in a language, as one text. */
function protocolExamples(language: string): string {
  const text = readFileSync(join(ROOT, "docs/protocols.md"), "utf8");
  const examples = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].filter(([, of]) => of === language);
  expect(examples).not.toHaveLength(0);
  return examples.map(([, , example = ""]) => example).join("\n");
}

/** Returns the only example that contains this text. */
function exampleWith(part: string): string {
  const found = printedExamples().filter(({ text }) => text.includes(part));
  expect(found).toHaveLength(1);
  return found[0]?.text ?? "";
}

function write(name: string, text: string): void {
  mkdirSync(dirname(join(project, name)), { recursive: true });
  writeFileSync(join(project, name), text);
}

/** The repository's configuration, with the values that the tutorial prints. */
function writeConfiguration(): void {
  const pattern = JSON.parse(readFileSync(join(ROOT, "wrangler.jsonc"), "utf8"));
  const changes = JSON.parse(exampleWith('"main": "src/'));
  const configuration = { ...pattern, ...changes, assets: { ...pattern.assets, ...changes.assets } };
  write("wrangler.jsonc", JSON.stringify(configuration));
  write(".dev.vars", "DRAMATIS_LOCAL=1\n");
}

/** Compiles these files, and the package's declarations if requested. Returns the errors. */
function typeErrors(options: string[], ...files: string[]): string[] {
  const always = [
    "--ignoreConfig",
    "--checkers",
    "1",
    "--noEmit",
    "--strict",
    "--target",
    "es2024",
    "--pretty",
    "false",
  ];
  return errorsOf([...always, ...options, ...files]);
}

/** Runs the compiler with these arguments. Returns the errors. */
function errorsOf(args: string[]): string[] {
  try {
    run(project, process.execPath, TSC, ...args);
    return [];
  } catch (cause) {
    const errors = String(cause).match(/^.*\berror TS\d.*$/gm);
    if (errors === null) throw cause;
    // Errors in declarations of other packages do not count.
    return errors.filter((line) => !/node_modules\/(?!dramatis\/)/.test(line));
  }
}

const worker = ["--types", "@cloudflare/workers-types", "--lib", "es2024"];
const page = ["--types", "react", "--lib", "es2024,dom,dom.iterable", "--jsx", "react-jsx"];
const bundler = ["--module", "esnext", "--moduleResolution", "bundler"];

beforeAll(async () => {
  const archive = await packedPackage();
  mkdirSync(installed, { recursive: true });
  run(project, "tar", "-xzf", archive, "-C", installed, "--strip-components=1");
  run(project, "npm", "init", "-y");
  installFromCheckout(project, [...Object.keys(manifestOf(installed).dependencies), "zod"]);
  installFromCheckout(project, ["@cloudflare/workers-types"]);
  for (const { text } of printedExamples()) {
    const [, name] = /^\/\/ (src\/\S+)\n/.exec(text) ?? [];
    if (name !== undefined) write(name, text);
  }
  writeConfiguration();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("G2 the archive", () => {
  it("contains only code, declarations, templates, the console and the reader's documents, and no path of this machine", () => {
    const files = globSync("**/*.*", { cwd: installed, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(installed.length + 1));
    const others = files.filter((file) => !/\.js$|\.d\.ts$|^(?:console|templates)\//.test(file));
    expect(others.sort()).toEqual(["README.md", "package.json"]);
    expect(readdirSync(installed)).toContain("LICENSE");
    expect(
      files.filter((file) => /^(?!templates\/).*(?:(?:^|\/)tests?(?:\/|\.)|\.test\.|\.map$)/.test(file)),
    ).toEqual([]);
    const built = inject("archiveFolder");
    const told = files.filter((file) => {
      const text = readFileSync(join(installed, file), "utf8");
      return text.includes(ROOT) || text.includes(built);
    });
    expect(told).toEqual([]);
  });

  it("G23 has the command line, which needs declared packages only", () => {
    const { bin } = manifestOf(installed);
    const version = run(project, process.execPath, join(installed, bin.dramatis ?? ""), "--version");
    expect(version).toBe(`${VERSION}\n`);
    // npm links the command as it does after an installation.
    run(project, "npm", "rebuild", "--offline", "--ignore-scripts");
    expect(run(project, "npx", "--no-install", "dramatis", "--version")).toBe(version);
  });

  it("requires a Node version that all its dependencies support", () => {
    const least = ({ engines }: Partial<Manifest>) => {
      const [, major = 0, minor = 0] = /^>=\s*(\d+)(?:\.(\d+))?/.exec(engines?.node ?? "") ?? [];
      return Number(major) * 1000 + Number(minor);
    };
    const manifest = manifestOf(installed);
    for (const name of Object.keys(manifest.dependencies)) {
      const needed = least(manifestOf(join(project, "node_modules", name)));
      expect(needed, name).toBeLessThanOrEqual(least(manifest));
    }
  });
});

/** Values of `tsc --init` before TypeScript 5.9. */
const OLDER = {
  target: "es2016",
  module: "esnext",
  moduleResolution: "bundler",
  esModuleInterop: true,
  strict: true,
  skipLibCheck: true,
};

describe("G2 the tutorial's example, as printed, after `npm init -y` and the printed `npx tsc --init`", () => {
  const check = (...options: string[]) => errorsOf(["--noEmit", "--pretty", "false", ...options]);

  beforeAll(() => {
    const [, options = ""] =
      /^npx tsc (--init .+) && npx tsc --noEmit$/m.exec(exampleWith("npx tsc --init")) ?? [];
    run(project, process.execPath, TSC, ...options.split(" "));
    write("older.tsconfig.json", JSON.stringify({ compilerOptions: OLDER, include: ["src"] }));
  });

  it("compiles: no package.json needs a change, and no further compiler option", () => {
    expect(readdirSync(join(project, "src"))).toEqual([
      "librarian.ts",
      "library.ts",
      "two-agents.ts",
      "words.ts",
      "worker.ts",
    ]);
    const { type } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
    expect(type).not.toBe("module");
    const init = readFileSync(join(project, "tsconfig.json"), "utf8");
    for (const option of [
      "bundler",
      "verbatimModuleSyntax",
      "exactOptionalPropertyTypes",
      '"declaration": true',
    ])
      expect(init).toContain(option);
    expect(check()).toEqual([]);
  });

  it.each([
    ["with the platform's types", ["--types", "@cloudflare/workers-types"]],
    ["with modules preserved", ["--module", "preserve"]],
    // Without declarations the compiler reports fewer errors.
    [
      "with the values of older versions, and declarations",
      ["--project", "older.tsconfig.json", "--declaration"],
    ],
  ])("compiles %s", (_, options) => {
    expect(check(...options)).toEqual([]);
  });

  it("deploys, as far as that can be tried without an account", () => {
    const told = run(project, process.execPath, WRANGLER, "deploy", "--dry-run");
    expect(told).not.toMatch(/env\.(?:Conversation|Agent|Executor)/);
    expect(told).toContain("--dry-run: exiting now.");
  });

  it("G16 deploys with the configuration of docs/deploy.md, as far as that can be tried without an account", () => {
    const page = readFileSync(join(ROOT, "docs/deploy.md"), "utf8");
    const [, configuration = ""] = /^```jsonc\n(.*?)^```$/ms.exec(page) ?? [];
    write("deploy.jsonc", configuration);
    const told = run(project, process.execPath, WRANGLER, "deploy", "--dry-run", "--config", "deploy.jsonc");
    expect(told).toMatch(/env\.DB .*D1 Database/);
    expect(told).toMatch(/env\.BUCKET .*R2 Bucket/);
    expect(told).toContain("--dry-run: exiting now.");
  });

  describe("under wrangler dev", () => {
    let server: ChildProcess;
    let url: string;

    beforeAll(async () => {
      server = spawn(process.execPath, [WRANGLER, "dev", "--port", "0"], {
        cwd: project,
        env: { ...quiet, WRANGLER_REGISTRY_PATH: join(folder, "registry") },
        detached: true,
        stdio: ["ignore", "pipe", "pipe"],
      });
      url = await wranglerAddress(server);
    });

    afterAll(async () => {
      const pids = processTree(server.pid ?? 0).map(({ pid }) => pid);
      process.kill(-(server.pid ?? 0), "SIGKILL");
      await waitUntilGone(pids);
    });

    /** Sends the body of the tutorial's curl command for this path. */
    function curl(path: RegExp, at: string): Promise<Response> {
      const sh = printedExamples().filter(({ language }) => language === "sh");
      const commands = sh.flatMap(({ text }) => text.replaceAll("\\\n", "").split("\n"));
      const command = commands.find((line) => path.test(line) && line.includes(" -d "));
      const [, body = ""] = / -d '([^']*)'/.exec(command ?? "") ?? [];
      const headers = [...(command ?? "").matchAll(/ -H '([^:]+): ([^']+)'/g)];
      return fetch(`${url}${at}`, {
        method: "POST",
        headers: headers.map(([, name = "", value = ""]): [string, string] => [name, value]),
        body: body.replace('"assistant"', '"guide"'),
      });
    }

    it("answers the tutorial's curl commands", async () => {
      expect(await (await fetch(`${url}/health`)).json()).toMatchObject({ status: "ok" });
      const created = await curl(/\/api\/conversations\s/, "/api/conversations");
      expect(created.status).toBe(201);
      const { id } = (await created.json()) as { id: string };
      const turn = await (await curl(/\/turns\s/, `/api/conversations/${id}/turns`)).text();
      expect(turn).toContain("Offline model");
      expect(turn).toContain('"type":"turn.completed"');
    });

    it("answers the tutorial's client, in Node and without React", () => {
      const text = exampleWith('from "dramatis/client";\n\nconst client');
      write("client.mts", text.replace(/http:\/\/localhost:\d+/, url));
      expect(typeErrors([...bundler, ...worker, "--skipLibCheck"], "client.mts")).toEqual([]);
      expect(run(project, process.execPath, "client.mts")).toMatch(/^turn\.started .*^turn\.completed /ms);
    });

    it("H9 answers the examples of docs/protocols.md", () => {
      const here = (text: string) =>
        text.replaceAll(/http:\/\/localhost:\d+/g, url).replaceAll('"assistant"', '"guide"');
      const load = () => run(project, process.execPath, "--eval", 'await import("dramatis/ai-sdk")');
      expect(load).toThrow("Cannot find package 'ai'");
      installFromCheckout(project, ["openai", "ai"]);
      write("protocols.mjs", here(protocolExamples("js")));
      const said = run(project, process.execPath, "protocols.mjs");
      for (const text of ["Offline model", "It is empty.", "snapshot"]) expect(said).toContain(text);
      expect(said).toMatch(/conv_\w{26}$/m);
      write("initial.mts", here(protocolExamples("ts")));
      expect(run(project, process.execPath, "initial.mts").trim()).toBe("0");
    });

    it("PAGE-1 serves the console and the page /docs, with their policies", async () => {
      expect(await (await fetch(url)).text()).toContain('<div id="root">');
      for (const path of ["/", "/c/conv_x", "/favicon.svg"])
        expect(Object.fromEntries((await fetch(url + path)).headers), `PAGE-1 ${path}`).toMatchObject({
          "content-security-policy": expect.stringMatching(/^default-src 'none'; script-src 'self'; [^,]*$/),
          "x-content-type-options": "nosniff",
        });
      const page = await fetch(`${url}/docs`);
      expect(await page.text()).toContain('<article id="createAgent">');
      expect(page.headers.get("content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-/);
    });
  });
});

describe("G2 the entry points", () => {
  it("name all types that declarations of their users need", () => {
    const lines = [
      "type Made<F> = F extends (...args: never[]) => infer R ? R : F extends abstract new (...args: never[]) => infer I ? I : F;",
      "declare function made<F>(value: F): Made<F>;",
    ];
    for (const [index, [entry, { types }]] of Object.entries(manifestOf(installed).exports).entries()) {
      const names = exportedValues(join(installed, types));
      expect(names, entry).not.toHaveLength(0);
      lines.push(`import * as entry${index} from "${entry.replace(".", "dramatis")}";`);
      for (const [at, name] of names.entries()) {
        lines.push(`export const value${index}_${at} = entry${index}.${name};`);
        lines.push(`export const made${index}_${at} = made(entry${index}.${name});`);
      }
    }
    write("named.mts", lines.join("\n"));
    const options = [...worker, "--skipLibCheck", "--module", "nodenext", "--declaration"];
    expect(typeErrors(options, "named.mts")).toEqual([]);
  });

  it("only dramatis/react needs React, and with React the tutorial's component compiles", () => {
    const load = () => run(project, process.execPath, "--eval", 'await import("dramatis/react")');
    expect(load).toThrow("Cannot find package 'react'");
    installFromCheckout(project, ["react", "@types/react"]);
    expect(load()).toBe("");
    write("src/chat.tsx", exampleWith("export function Chat"));
    expect(typeErrors([...bundler, ...page, "--skipLibCheck"], "src/chat.tsx")).toEqual([]);
    installFromCheckout(project, ["@ai-sdk/react"]);
    write("src/use-chat.tsx", protocolExamples("tsx"));
    expect(typeErrors([...bundler, ...page, "--skipLibCheck"], "src/use-chat.tsx")).toEqual([]);
  });

  it("dramatis/engine runs a turn in plain Node", () => {
    const code = `
      import { createConversationEngine, InMemoryConversationStore } from "dramatis/engine";
      const sendChat = async ({ model }) => ({ messages: [{ role: "assistant", content: model }] });
      const engine = createConversationEngine({
        defaultAgent: "a",
        store: new InMemoryConversationStore(),
        providers: { own: { id: "own", supportsStreaming: false, sendChat } },
        defaultModels: { own: "m-1" },
      });
      const { id } = await engine.createConversation();
      console.log((await engine.runTurn({ conversationId: id })).outputMessages[0].content);`;
    expect(run(project, process.execPath, "--input-type=module", "--eval", code)).toBe("m-1\n");
  });

  it("H10 I7 dramatis/testing runs the tools of an application in plain Node, and `dramatis` has the same 15 exports there", () => {
    const code = `
      import { z } from "zod";
      import * as dramatis from "dramatis";
      import { call, createTestApp } from "dramatis/testing";
      const { defineLibrary, definePersona, defineTool } = dramatis;
      const add = defineTool({
        name: "add",
        description: "Adds.",
        input: z.object({ a: z.number(), b: z.number() }),
        effect: "pure",
        execute: ({ a, b }) => a + b,
      });
      const guide = definePersona("guide", { identity: { systemPrompt: "Help." }, tools: { toolIds: ["add"] } });
      const app = createTestApp({ libraries: [defineLibrary("my", { personas: [guide], tools: [add] })] });
      app.model.script(call("add", { a: 1, b: 2 }), "It is 3.");
      const turn = await app.send("guide", "1 + 2?");
      console.log(JSON.stringify([turn.text, turn.calls[0].output, Object.keys(dramatis).sort()]));`;
    const [text, output, names] = JSON.parse(
      run(project, process.execPath, "--input-type=module", "--eval", code),
    );
    expect([text, output]).toEqual(["It is 3.", 3]);
    expect(names).toEqual(exportedValues(join(installed, "index.d.ts")).sort());
    expect(names.length).toBeLessThanOrEqual(15);
  });

  it("I7 dramatis/actors has the same exports in Node as on Workers", () => {
    const code = 'console.log(JSON.stringify(Object.keys(await import("dramatis/actors")).sort()))';
    const names = JSON.parse(run(project, process.execPath, "--input-type=module", "--eval", code));
    expect(names).toEqual(exportedValues(join(installed, "actors.d.ts")).sort());
  });

  it("I5 the command eval runs the evals of a project, without a call", () => {
    const code = `
      import { contains, defineEval, evalAgent } from "dramatis/testing";
      import { library } from "../src/library";
      export default defineEval({
        name: "hello",
        data: [{ input: "Hi", expected: "hello", replies: ["Hello!"] }],
        run: evalAgent({ libraries: [library] }, "guide"),
        scorers: [contains()],
      });`;
    write("evals/hello.eval.ts", code);
    const told = run(project, process.execPath, join(installed, "cli/main.js"), "eval");
    expect(told).toMatch(/^hello +1 +contains 1\.00 +1\.00 .* passed$/m);
    expect(told).toContain("No model was called.");
  });

  it("I12 ACP-13 the command acp answers an editor", () => {
    const ask = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: 1 } };
    const args = [join(installed, "cli/main.js"), "acp", "--agent", "guide"];
    const options = { cwd: project, input: `${JSON.stringify(ask)}\n`, encoding: "utf8" } as const;
    const answer = JSON.parse(execFileSync(process.execPath, args, options));
    expect(answer).toMatchObject({ id: 1, result: { protocolVersion: 1, agentInfo: { version: VERSION } } });
  });

  it.each([
    // Once with all declarations, which takes long.
    ["bundler", [...bundler, "--skipLibCheck"]],
    ["nodenext", ["--module", "nodenext", "--moduleResolution", "nodenext"]],
  ])("are typed under %s, each of them", (name, resolution) => {
    const entries = Object.keys(manifestOf(installed).exports).map((entry) => entry.replace(".", "dramatis"));
    expect(entries).toContain("dramatis/client");
    const lines = entries.map((entry, index) => `export * as entry${index} from "${entry}";\n`);
    write(`${name}.mts`, lines.join(""));
    expect(typeErrors([...resolution, ...worker], `${name}.mts`)).toEqual([]);
  });
});
