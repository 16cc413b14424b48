/** `dramatis/client` as a browser loads it. */
import { join, relative } from "node:path";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const MAX_BYTES = 60_000;

test("CLIENTSIZE-1 the client loads no schemas, and its bundle stays small", async () => {
  const build = await rolldown({ input: join(ROOT, "src/client/index.ts"), platform: "browser" });
  const { output } = await build.generate({ format: "esm", minify: true });
  await build.close();
  const [{ code, moduleIds }] = output;
  const modules = moduleIds.map((path) => relative(ROOT, path));
  expect(modules).toContain("src/client/index.ts");
  expect(modules.filter((path) => path.startsWith("node_modules/zod/"))).toEqual([]);
  expect(code.length).toBeLessThan(MAX_BYTES);
});
