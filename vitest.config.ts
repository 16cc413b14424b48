import { globSync, readFileSync } from "node:fs";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import agents from "agents/vite";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { lostEnds } from "./test/support/lost-ends.ts";

/** What is polled comes, but on a busy machine it may take longer than the second that is usual. */
const POLL = { poll: { timeout: 10_000 } };

/** The part of the other tests that end-to-end tests are spread over, so that none of these is left for the end. */
const SPREAD_OVER = 0.6;

/** Spreads end-to-end tests over the first of the others: they wait for processes of their own, and the others compute meanwhile. */
class Spread extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ project }: TestSpecification) => project.name === "e2e";
    const [long, short] = [sorted.filter(isLong), sorted.filter((file) => !isLong(file))];
    const share = Math.floor((short.length * SPREAD_OVER) / Math.max(1, long.length));
    return long.length === 0
      ? short
      : long.flatMap((file, index) => [
          file,
          ...short.slice(index * share, index + 1 < long.length ? (index + 1) * share : undefined),
        ]);
  }
}

/** Tests that look at what is logged, by themselves or by a simulation: what another file left running must not log beside them. */
const ALONE = globSync("test/node/**/*.test.ts").filter((file) =>
  /spyOn\(console|simulation\/(?:flows\/run|simulate|trees\/run|triggers)\.ts/.test(
    readFileSync(file, "utf8"),
  ),
);

/** Tests on workerd that count or name the rows of a database, or move the time by days. Each file gets a runtime of its own. */
const FRESH = ["auth", "libraries", "long-pause"].map((name) => `test/workers/${name}.test.ts`);

interface Files {
  include: string[];
  exclude?: string[];
  isolate: boolean;
}

const node = (name: string, files: Files) => ({
  test: { name, ...files, expect: POLL, testTimeout: 30_000, hookTimeout: 30_000 },
});

const workers = (name: string, files: Files) => ({
  plugins: [
    agents(),
    cloudflareTest(({ inject }) => ({
      remoteBindings: false,
      wrangler: { configPath: "./test/wrangler.jsonc" },
      miniflare: {
        cf: false,
        bindings: {
          PROVIDER_URL: inject<string>("providerUrl"),
          PROVIDER_CONTROL_URL: inject<string>("providerControlUrl"),
        },
      },
    })),
    lostEnds(),
  ],
  test: {
    name,
    ...files,
    expect: POLL,
    sequence: { groupOrder: 1 },
    globalSetup: ["test/support/provider-setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});

export default defineConfig({
  test: {
    maxWorkers: 3,
    fsModuleCache: true,
    sequence: { sequencer: Spread },
    projects: [
      // To load all modules, or to start a runtime, for each file would take much of the time.
      node("node", { include: ["test/node/**/*.test.ts"], exclude: ALONE, isolate: false }),
      node("node-alone", { include: ALONE, isolate: true }),
      workers("workers", { include: ["test/workers/**/*.test.ts"], exclude: FRESH, isolate: false }),
      workers("workers-fresh", { include: FRESH, isolate: true }),
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude: ["test/e2e/build.test.ts"],
          expect: POLL,
          testTimeout: 120_000,
          // Several servers start at once, and each first builds what it serves.
          hookTimeout: 300_000,
        },
      },
      // It replaces what other starts begin with, so it runs with tests that start nothing.
      {
        test: {
          name: "e2e-build",
          include: ["test/e2e/build.test.ts"],
          sequence: { groupOrder: 1 },
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
