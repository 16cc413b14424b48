import { cloudflareTest } from "@cloudflare/vitest-plugin";
import agents from "agents/vite";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // One more than a two-core machine gets by itself: most of the time a file waits for processes of its own.
    maxWorkers: 2,
    projects: [
      {
        test: { name: "node", include: ["test/node/**/*.test.ts"], testTimeout: 30_000, hookTimeout: 30_000 },
      },
      {
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
          name: "workers",
          include: ["test/workers/**/*.test.ts"],
          globalSetup: ["test/support/provider-setup.ts"],
          testTimeout: 30_000,
          hookTimeout: 30_000,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
