import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Bundler, reuseBundles } from "../../scripts/bundle-cache.ts";

type ConfigUpdate = Parameters<Bundler["onConfigUpdate"]>[0];
type Bundle = Parameters<Bundler["emitBundleCompleteEvent"]>[1];

/** A folder with a Worker of two files, and a bundler that joins them. */
function project() {
  const root = mkdtempSync(join(tmpdir(), "dramatis-bundle-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  const write = (name: string, text: string) => writeFileSync(join(root, name), text);
  const read = (name: string) => readFileSync(join(root, name), "utf8");
  write("worker.ts", "one;");
  write("part.ts", "two;");
  write("wrangler.jsonc", "{}");
  mkdirSync(join(root, "node_modules/lib/src"), { recursive: true });
  write("node_modules/lib/package.json", "{}");
  write("node_modules/lib/src/index.js", "");
  mkdirSync(join(root, "out"));

  /** Starts once. Returns what the server runs, and whether it was bundled for this start. */
  async function start(
    options: { define?: Record<string, string>; whileBundling?: () => void; afterBundling?: () => void } = {},
  ) {
    // A bundle of files that changed shortly before is not stored, because the times of files are coarse.
    await sleep(150);
    const ran: string[] = [];
    const bundle = vi.fn(({ config }: ConfigUpdate) => {
      const entrypointSource = read("worker.ts") + read("part.ts");
      options.whileBundling?.();
      write("out/worker.js", entrypointSource);
      write("out/worker.js.map", "{}");
      options.afterBundling?.();
      const dependencies = {
        "worker.ts": {},
        "part.ts": {},
        "node_modules/lib/src/index.js": {},
        "virtual:part": {},
      };
      const path = join(root, "out/worker.js");
      bundler.emitBundleCompleteEvent(config, {
        path,
        entrypointSource,
        dependencies,
        modules: [],
      } as never as Bundle);
    });
    const bundler: Bundler = {
      onConfigUpdate: bundle,
      emitBundleStartEvent: () => undefined,
      emitBundleCompleteEvent: (_, { path, entrypointSource }) => {
        ran.push(entrypointSource);
        expect(readFileSync(path, "utf8"), "for stack traces").toBe(entrypointSource);
      },
    };
    reuseBundles(bundler, join(root, "cache"));
    const config = {
      entrypoint: join(root, "worker.ts"),
      projectRoot: root,
      config: join(root, "wrangler.jsonc"),
      build: { define: options.define ?? {} },
    };
    bundler.onConfigUpdate({ type: "configUpdate", config } as never as ConfigUpdate);
    return { ran: ran.join(), isBundled: bundle.mock.calls.length === 1 };
  }
  return { start, write, root };
}

test("START-11 a second start runs the bundle of the first", async () => {
  const { start } = project();
  expect(await start()).toEqual({ ran: "one;two;", isBundled: true });
  expect(await start()).toEqual({ ran: "one;two;", isBundled: false });
});

test.each(["worker.ts", "part.ts", "wrangler.jsonc", "node_modules/lib/package.json"])(
  "START-11 a changed %s is bundled again",
  async (name) => {
    const { start, write } = project();
    await start();
    write(name, "new;");
    expect(await start()).toMatchObject({ isBundled: true });
    expect(await start()).toMatchObject({ isBundled: false });
  },
);

test("START-11 other options and a file that is gone are bundled again", async () => {
  const { start, root } = project();
  await start();
  expect(await start({ define: { A: "1" } })).toMatchObject({ isBundled: true });
  rmSync(join(root, "wrangler.jsonc"));
  expect(await start()).toMatchObject({ isBundled: true });
});

test("START-11 a start that ends while it stores leaves the stored bundle unchanged", async () => {
  const { start, write, root } = project();
  await start();
  write("part.ts", "three;");
  // Without the map, storing ends after the first file.
  await start({ afterBundling: () => rmSync(join(root, "out/worker.js.map")) });
  write("part.ts", "two;");
  expect(await start()).toEqual({ ran: "one;two;", isBundled: false });
  for (const text of ["four;", "five;", "six;", "seven;"]) {
    write("part.ts", text);
    await start();
  }
  const [stored = ""] = readdirSync(join(root, "cache"));
  const left = readdirSync(join(root, "cache", stored));
  expect(left, "the bundle, its record, and three bundles of other sources").toHaveLength(5);
  expect(left.join()).not.toContain("unfinished");
});

test("START-11 a bundle is not kept if a file changes while it is made", async () => {
  const { start, write } = project();
  const whileBundling = () => write("part.ts", "three;");
  expect(await start({ whileBundling })).toEqual({ ran: "one;two;", isBundled: true });
  expect(await start()).toEqual({ ran: "one;three;", isBundled: true });
});
