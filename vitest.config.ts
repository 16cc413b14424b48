import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import agents from "agents/vite";
import { defineConfig } from "vitest/config";
import { lostEnds } from "./test/support/lost-ends.ts";
import { SlowestFirst } from "./test/support/slowest-first.ts";

// Tests start Node several hundred times. Node keeps compiled code there.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/node");

// Tests start the compiler and esbuild, which are Go programs, for seconds. Without garbage collection they take a quarter less time.
process.env.GOGC ??= "off";

/** Timeout of `expect.poll`. The default of one second is too short on a busy machine. */
const POLL = { poll: { timeout: 20_000 } };

/** Tests that read the log, directly or in a simulation. They run isolated, because leftovers of another file could write to the log. */
const ALONE = globSync("test/node/**/*.test.ts").filter((file) =>
  /spyOn\(console|simulation\/(?:flows\/run|simulate|trees\/run|triggers)\.ts/.test(
    readFileSync(file, "utf8"),
  ),
);

/**
 * Tests on workerd that count or name the rows of a database, advance the clock by days, or abort all actors while a client's stream is open.
 * Each file gets its own runtime.
 */
const FRESH = ["auth", "event-log", "libraries", "lists-database", "mcp", "release-work", "retention"].map(
  (name) => `test/workers/${name}.test.ts`,
);

interface Files {
  include: string[];
  exclude?: string[];
  isolate: boolean;
}

const node = (name: string, files: Files) => ({
  test: { name, ...files, expect: POLL, testTimeout: 60_000, hookTimeout: 60_000 },
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
          MCP_URL: inject<string>("mcpUrl"),
          A2A_URL: inject<string>("a2aUrl"),
          GIT_URL: inject<string>("gitUrl"),
          SLACK_URL: inject<string>("slackUrl"),
          WEBHOOK_URL: inject<string>("webhookUrl"),
          MCP_TOKEN: "the-secret-of-the-desk",
          SECRETS_KEY: "a key of the tests with more than 32 bytes",
        },
      },
    })),
    lostEnds(),
  ],
  test: {
    name,
    ...files,
    // With this cache, a runtime that starts late gets the code of all its modules in one message. A message above 32 MiB ends the runtime.
    fsModuleCache: false,
    expect: POLL,
    sequence: { groupOrder: 1 },
    globalSetup: ["test/support/provider-setup.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

export default defineConfig({
  test: {
    // For two cores: several end-to-end tests wait half a minute for a recovery.
    maxWorkers: 4,
    fsModuleCache: true,
    // A missing file of a schema fails its test, also on a machine that would write the file.
    update: "none",
    sequence: { sequencer: SlowestFirst },
    projects: [
      // Without isolation, files share loaded modules and the runtime. This saves much of the time.
      node("node", { include: ["test/node/**/*.test.ts"], exclude: ALONE, isolate: false }),
      node("node-alone", { include: ALONE, isolate: true }),
      workers("workers", { include: ["test/workers/**/*.test.ts"], exclude: FRESH, isolate: false }),
      workers("workers-fresh", { include: FRESH, isolate: true }),
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude: ["test/e2e/build.test.ts"],
          globalSetup: ["test/support/archive-setup.ts"],
          expect: POLL,
          testTimeout: 120_000,
          // Several servers start at once, and each first builds its files.
          hookTimeout: 300_000,
        },
      },
      // It replaces the build that other starts use, so it runs beside tests that start no server.
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
