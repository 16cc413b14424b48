/** A running start while a build replaces its files. Another start must not run at the same time. */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";
import { Watcher } from "../support/watcher.ts";

const ROOT = join(import.meta.dirname, "../..");
const persist = mkdtempSync(join(tmpdir(), "dramatis-build-"));

let start: RunningStart;

beforeAll(async () => {
  start = await npmStart(persist);
});
afterAll(async () => {
  await start.stop();
  rmSync(persist, { recursive: true, force: true });
});

it("START-5 START-10 CONSOLE-1 serves the console while files of the Worker change and a build replaces it, without the replaced files, and keeps connections open", async () => {
  const client = createClient({ baseUrl: start.url });
  const { id } = await client.conversations.create({ agentId: "assistant" });
  using watcher = new Watcher(start.url, id);
  await watcher.until(({ conversation }) => conversation !== null);
  const page = await (await fetch(start.url)).text();
  const paths = [
    "/",
    "/docs",
    ...[...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path),
  ];
  expect(paths.length).toBeGreaterThan(4);
  const load = () =>
    Promise.all(
      paths.map(async (path) => {
        const response = await fetch(`${start.url}${path}`);
        return [
          path,
          response.status,
          createHash("sha256")
            .update(await response.text())
            .digest("hex"),
        ];
      }),
    );
  const before = await load();
  const index = join(ROOT, "examples/demo/docs-index.json");
  const text = readFileSync(index, "utf8");
  writeFileSync(index, `${text}\n`);
  // The part of `npm run build` that replaces served files. `packedPackage` runs all of it.
  const code = 'import { buildConsole } from "./scripts/console.ts"; buildConsole({ force: true });';
  const build = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    cwd: ROOT,
    stdio: "ignore",
  });
  let ended = false;
  const exit = once(build, "exit").finally(() => {
    ended = true;
  });
  while (!ended) expect(await load()).toEqual(before);
  writeFileSync(index, text);
  expect(await exit).toEqual([0, null]);
  expect(readdirSync(join(ROOT, "dist")).filter((name) => name.startsWith("console"))).toEqual(["console"]);
  rmSync(join(ROOT, "dist/console"), { recursive: true });
  expect(await load()).toEqual(before);
  await client.conversations.get(id);
  expect(watcher.addresses).toHaveLength(1);
});
