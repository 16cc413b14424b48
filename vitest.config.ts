import { cloudflareTest } from "@cloudflare/vitest-plugin";
import agents from "agents/vite";
import { defineConfig } from "vitest/config";

/** What is polled comes, but on a busy machine it may take longer than the second that is usual. */
const POLL = { poll: { timeout: 10_000 } };

/** Tests of workerd whose files count what is in a database, or name what is in it: each gets one of its own. */
const FRESH = ["test/workers/auth.test.ts", "test/workers/libraries.test.ts"];

const workers = (name: string, test: { include: string[]; exclude?: string[]; isolate: boolean }) => ({
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
  ],
  test: {
    name,
    ...test,
    expect: POLL,
    globalSetup: ["test/support/provider-setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});

export default defineConfig({
  test: {
    maxWorkers: 3,
    projects: [
      // To load all modules, or to start a runtime, for each file would take most of the time.
      {
        test: {
          name: "node",
          include: ["test/node/**/*.test.ts"],
          isolate: false,
          expect: POLL,
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      workers("workers", { include: ["test/workers/**/*.test.ts"], exclude: FRESH, isolate: false }),
      workers("workers-fresh", { include: FRESH, isolate: true }),
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude: ["test/e2e/build.test.ts"],
          // Most of the time they wait for processes of their own.
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
          expect: POLL,
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      // It replaces what other starts begin with, so it runs with tests that start nothing.
      {
        test: {
          name: "e2e-build",
          include: ["test/e2e/build.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
