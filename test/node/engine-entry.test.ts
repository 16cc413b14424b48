/** `dramatis/engine` as applications use it: its imports, and the examples of its page in plain Node. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { rolldown } from "rolldown";
import { afterAll, describe, expect, it, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const ENTRY = join(ROOT, "src/engine/index.ts");
/** Modules that only a Worker has or that only the HTTP layer needs. */
const PLATFORM = /^(?:cloudflare:|agents(?:\/|$)|hono(?:\/|$)|@cloudflare\/|partysocket|jose$)/;
const folder = mkdtempSync(join(tmpdir(), "dramatis-engine-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Bundles a module with its imports of this package, or of others too. */
async function bundled(input: string, options: { withPackages: boolean }) {
  const build = await rolldown({
    input,
    platform: "node",
    resolve: {
      alias: { "dramatis/engine": ENTRY, "dramatis/adapters": join(ROOT, "src/adapters/index.ts") },
      modules: [join(ROOT, "node_modules")],
    },
    external: (id) => (options.withPackages ? /^(?:node|cloudflare):/.test(id) : /^[^./]/.test(id)),
  });
  const { output } = await build.generate({ format: "esm" });
  await build.close();
  return output[0];
}

describe("C18 the entry point", () => {
  it("C18 imports no platform module, agent SDK, server or actor", async () => {
    const { imports, moduleIds } = await bundled(ENTRY, { withPackages: false });
    expect(imports).toContain("zod");
    expect(imports.filter((name) => PLATFORM.test(name))).toEqual([]);
    const modules = moduleIds.map((path) => relative(join(ROOT, "src"), path));
    expect(modules).toContain("engine/engine.ts");
    const ours = /^(?:agents|attachments|compat|d1|http|library)\/|^ports\/node\/|^ports\/workers\/|^[^/]+$/;
    expect(modules.filter((path) => ours.test(path))).toEqual([]);
  });

  it("C18 its dependencies import no platform module either", async () => {
    const { imports, moduleIds } = await bundled(ENTRY, { withPackages: true });
    expect(imports.filter((name) => !name.startsWith("node:"))).toEqual([]);
    expect(moduleIds.filter((path) => PLATFORM.test(path.split("node_modules/").at(-1) ?? ""))).toEqual([]);
  });

  const page = readFileSync(join(ROOT, "docs/engine.md"), "utf8");
  const examples = [...page.matchAll(/^## (.+?)\n(?:(?!^## ).*\n)*?```ts\n([\s\S]*?)^```$/gm)].map(
    ([, title = "", code = ""]) => [title, code] as const,
  );

  test.each(examples)(
    "C18 the example runs in plain Node, and prints its expected output: %s",
    async (title, code) => {
      const source = join(folder, `${title.replaceAll(/\W+/g, "-")}.ts`);
      writeFileSync(source, code);
      const { code: built } = await bundled(source, { withPackages: true });
      const program = source.replace(/ts$/, "mjs");
      writeFileSync(program, built);
      const told = [...code.matchAll(/; \/\/ (.+)$/gm)].map(([, said]) => said);
      expect(told).not.toEqual([]);
      const printed = execFileSync(process.execPath, [program], { cwd: folder, encoding: "utf8" });
      expect(printed.trimEnd().split("\n")).toEqual(told);
    },
  );

  it("C18 the list contains every example of the page", () => {
    expect(examples).toHaveLength(page.match(/^```ts$/gm)?.length ?? 0);
  });
});
