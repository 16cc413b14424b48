/** The commands and the JSON of README.md, CONTRIBUTING.md and docs/*.md. `documentation.test.ts` compiles their TypeScript. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command as Program } from "commander";
import { describe, expect, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { createProgram } from "../../src/cli/program.ts";
import { OPERATIONS } from "../../src/http/operations.ts";
import { commandsIn, parseAbridged, type ShellCommand, variablesIn } from "../support/doc-commands.ts";
import { type Example, examplesIn } from "../support/doc-examples.ts";

const ROOT = join(import.meta.dirname, "../..");
const textOf = (path: string) => readFileSync(join(ROOT, path), "utf8");
const PAGES = globSync(["README.md", "CONTRIBUTING.md", "docs/*.md", "templates/*/README.md"], {
  cwd: ROOT,
  exclude: ["docs/spec.md", "docs/capabilities.md"],
});
const examples = PAGES.flatMap((page) => examplesIn(page, textOf(page)));
const inLanguage = (...languages: string[]) =>
  examples.filter(({ language }) => languages.includes(language));
const place = ({ page, line }: Example) => `${page}:${line}`;

/** Languages of blocks, with the check of each. */
const CHECKED: Readonly<Record<string, string>> = {
  ts: "documentation.test.ts compiles it",
  tsx: "documentation.test.ts compiles it",
  json: "it parses",
  jsonc: "it parses",
  sh: "its commands exist",
  js: "package.test.ts and documentation.test.ts run it, because clients of other packages are no part of this program",
  toml: "a reader copies it into Codex, which is no part of this program",
  yaml: "it parses",
  lua: "a reader copies it into Neovim, which is no part of this program",
  http: "departures.test.ts sends it",
  text: "a reader sees it, but no program reads it",
};

test("G2 a test checks each block of code", () => {
  const unchecked = examples.filter(({ language }) => !Object.hasOwn(CHECKED, language));
  expect(unchecked.map((example) => `${place(example)} ${example.language}`)).toEqual([]);
});

test.each(inLanguage("yaml").map((example) => [place(example), example.text] as const))(
  "G2 the YAML of %s parses",
  (_, text) => expect(parseYaml(text)).toBeTypeOf("object"),
);

test.each(inLanguage("json").map((example) => [place(example), example.text] as const))(
  "G2 the JSON of %s parses",
  (_, text) => {
    const lines = text.trim().split("\n");
    const values = lines.every((line) => /^\{.*\}$/.test(line)) ? lines : [text];
    for (const value of values) expect(() => parseAbridged(value), value).not.toThrow();
  },
);

test.each(inLanguage("jsonc").map((example) => [place(example), example.text] as const))(
  "G2 the members of wrangler.jsonc in %s parse",
  (_, text) => {
    const withoutComments = text.replaceAll(/(^|\s)\/\/.*$/gm, "");
    const isWhole = withoutComments.trim().startsWith("{");
    expect(() => JSON.parse(isWhole ? withoutComments : `{${withoutComments}}`)).not.toThrow();
  },
);

describe("the commands of the pages", () => {
  const program = createProgram({
    write: () => undefined,
    writeError: () => undefined,
    open: () => expect.fail("No command runs."),
    done: () => expect.fail("No command runs."),
  });

  /** Programs that this repository does not have. */
  const FOREIGN = new Set("cd date echo find git jq openssl printf read rm sed".split(" "));

  const scripts: Readonly<Record<string, string>> = {
    ...JSON.parse(textOf("package.json")).scripts,
    ...JSON.parse(textOf("templates/base/package.json")).scripts,
  };

  /** Returns the problem of a command, or `undefined`. */
  function problemOf(command: ShellCommand, page: string, variables: ReadonlyMap<string, string>) {
    const [name = "", ...words] = command;
    if (FOREIGN.has(name)) return undefined;
    if (name === "curl") return problemOfRequest(words, variables);
    if (name === "post")
      return problemOfRequest([`localhost:8787/api/${words[0]}`, "-d", words[1] ?? ""], variables);
    if (name === "npm") return problemOfNpm(words);
    if (name === "npx") return problemOfTool(words);
    if (name === "node") return problemOfFile(words, page);
    return `no rule for "${name}"`;
  }

  function problemOfNpm([verb = "", ...words]: string[]): string | undefined {
    if (["ci", "install", "init", "pack"].includes(verb)) return undefined;
    if (verb === "create") return words[0] === "dramatis@latest" ? undefined : `npm create ${words[0]}`;
    if (verb === "exec") return problemOfFile(words.slice(2), "");
    const script = verb === "run" ? words[0] : verb;
    const line = scripts[script ?? ""];
    if (line === undefined) return `no script "${script}"`;
    const [, file] = /\b(scripts\/\S+|bench\/\S+)/.exec(line) ?? [];
    const flags = words.filter((word) => word.length > 2 && word.startsWith("--"));
    const source = file === undefined ? "" : textOf(file);
    const unknown = flags.filter((flag) => !source.includes(flag.slice(2)));
    return unknown.length === 0 ? undefined : `${file} has no ${unknown.join(", ")}`;
  }

  function problemOfTool([...words]: string[]): string | undefined {
    if (words[0] === "--package") return problemOfTool(words.slice(2));
    if (words[0] === "--yes") return problemOfTool(words.slice(1));
    const [tool = "", ...rest] = words;
    if (tool === "dramatis") return problemOfCommand(rest);
    if (tool === "create-dramatis") return undefined;
    if (tool === "vitest")
      return rest
        .slice(1)
        .map((file) => problemOfFile([file], ""))
        .find((problem) => problem);
    return existsSync(join(ROOT, "node_modules/.bin", tool)) ? undefined : `no tool "${tool}"`;
  }

  function problemOfFile([file = ""]: string[], page: string): string | undefined {
    const isThere =
      file.startsWith("-") ||
      existsSync(join(ROOT, file)) ||
      textOf(page || "README.md").includes(`// ${file}`);
    return isThere ? undefined : `no file "${file}"`;
  }

  function problemOfCommand(words: string[]): string | undefined {
    let command: Program = program;
    for (const word of words) {
      const next = command.commands.find((each) => each.name() === word);
      if (next === undefined) break;
      command = next;
    }
    if (command === program) return `no command "${words.join(" ")}"`;
    const flags = words.filter((word) => word.startsWith("--"));
    const known = [...command.options, ...program.options].map(({ long }) => long);
    const unknown = flags.filter((flag) => !known.includes(flag));
    return unknown.length === 0 ? undefined : `"${command.name()}" has no ${unknown.join(", ")}`;
  }

  function problemOfRequest(words: string[], variables: ReadonlyMap<string, string>): string | undefined {
    const filled = (text: string) =>
      text.replaceAll(/\$(\w+)/g, (_, name: string) => variables.get(name) ?? "value");
    const argumentOf = (flag: string) => {
      const index = words.indexOf(flag);
      return index === -1 ? undefined : words[index + 1];
    };
    const address = words
      .map(filled)
      .find((word) => /localhost:8787|127\.0\.0\.1:8787|workers\.dev/.test(word));
    // The address of a function follows from its caller.
    if (words.some((word) => word.includes("$1"))) return undefined;
    if (address === undefined)
      return words.includes("$url") ? undefined : `no address in "${words.join(" ")}"`;
    const [path = "", query = ""] = address.replace(/^(?:https?:\/\/)?[^/]+/, "").split("?");
    // The Model Context Protocol describes itself.
    if (path === "/mcp") return undefined;
    const data = argumentOf("-d") ?? argumentOf("--data-binary");
    const method = (argumentOf("-X") ?? (data === undefined ? "GET" : "POST")).toLowerCase();
    const operation = OPERATIONS.find(
      (each) =>
        each.method === method &&
        new RegExp(`^${each.path.replaceAll(/:\w+(?:\{[^}]*\})?/g, "[^/]+")}$`).test(path),
    );
    if (operation === undefined) return `no operation ${method} ${path}`;
    const names = [...new URLSearchParams(query).keys()];
    const unknown = names.filter((each) => !Object.hasOwn(operation.query?.shape ?? {}, each));
    if (unknown.length > 0) return `${operation.id} has no query "${unknown.join(", ")}"`;
    if (data === undefined || data.startsWith("@")) return undefined;
    try {
      const body = parseAbridged(filled(data));
      const members = Object.keys(Object(body));
      const shape =
        operation.body !== undefined && "shape" in operation.body ? Object(operation.body.shape) : undefined;
      const others = shape === undefined ? [] : members.filter((member) => !Object.hasOwn(shape, member));
      return others.length === 0 ? undefined : `${operation.id} has no member "${others.join(", ")}"`;
    } catch (error) {
      return `${error} in ${data}`;
    }
  }

  test.each([
    ["curl -s localhost:8787/api/agentz", "no operation get /api/agentz"],
    ["curl -X PUT localhost:8787/api/agents", "no operation put"],
    ['curl "localhost:8787/api/turns?sttus=failed"', 'no query "sttus"'],
    ["curl localhost:8787/api/agents -d '{\"id\": 1,}'", "SyntaxError"],
    [`post() { curl "$1"; }\npost agents '{"persona": "a/b", "nam": 1}'`, 'no member "nam"'],
    ["npm ci && npm run chek", 'no script "chek"'],
    ["npm run simulate -- --sedes 3", "no --sedes"],
    ["id=$(npx dramatis lst conversations)", "no command"],
    ["npx dramatis replay A B --jsn # no such option", "no --jsn"],
    ["npx wranglr dev", 'no tool "wranglr"'],
    ["npx vitest run test/node/nothing.test.ts", "no file"],
    ["while read -r id; do node nothing.mjs; done", "no file"],
    ["drmatis list", "no rule"],
  ])("G2 the rule finds the mistake of %s", (text, problem) => {
    const problems = commandsIn(text).map((command) => problemOf(command, "README.md", new Map()) ?? "");
    expect(problems.filter((each) => each !== "")).toEqual([expect.stringContaining(problem)]);
  });

  test.each(PAGES.filter((page) => inLanguage("sh").some((example) => example.page === page)))(
    "G2 the commands, requests and options of %s exist",
    (page) => {
      const blocks = inLanguage("sh").filter((example) => example.page === page);
      const variables = new Map<string, string>();
      const problems = blocks.flatMap((example) => {
        for (const [name, value] of variablesIn(example.text)) variables.set(name, value);
        return commandsIn(example.text).flatMap((command) => {
          const problem = problemOf(command, page, variables);
          return problem === undefined ? [] : [`${place(example)}: ${problem}`];
        });
      });
      expect(problems).toEqual([]);
    },
  );
});
