import { globSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";
import { cloudflareTest } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";
import { lostEnds } from "./test/support/lost-ends.ts";
import { SlowestFirst } from "./test/support/slowest-first.ts";

// Tests start Node several hundred times. Node keeps compiled code there.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, "node_modules/.cache/node");

// Tests start the compiler and esbuild, which are Go programs, for seconds. Without garbage collection they take a quarter less time.
process.env.GOGC ??= "off";

/** Timeout of `expect.poll`. The default of one second is too short on a busy machine. */
const POLL = { poll: { timeout: 20_000 } };

/** Tests that run a simulation, which reads the log, or count the calls of the log. They run isolated, because leftovers of another file could write to it. */
const ALONE = globSync("test/node/**/*.test.ts").filter((file) => {
  const text = readFileSync(file, "utf8");
  if (/simulation\/(?:flows\/run|simulate|trees\/run|triggers)\.ts/.test(text)) return true;
  return /spyOn\(console/.test(text) && /not\.toHaveBeenCalled|toHaveBeenCalledTimes|mock\.calls/.test(text);
});

/** Tests on workerd that change rows of all tenants, advance the clock by days, or abort all actors while a client's stream is open. Each file gets its own runtime. */
const FRESH = ["auth", "lists-database", "mcp", "release-work", "retention"].map(
  (name) => `test/workers/${name}.test.ts`,
);

/** Packages of the code on workerd. Each becomes one file once, which the runs share. Otherwise each run transforms hundreds of their modules. */
const BUNDLED = [
  ...["@ag-ui/client", "@ag-ui/core/schemas", "@cfworker/json-schema", "@marcbachmann/cel-js"],
  ...[
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/server",
    "agents",
    "agents/experimental/channels",
  ],
  ...["agents/experimental/channels/email", "agents/experimental/channels/slack", "agents/lifecycle"],
  ...["@a2a-js/sdk", "@a2a-js/sdk/client", "ai", "chrono-node/en", "croner", "diff", "eventsource-parser"],
  ...["eventsource-parser/stream", "fast-check", "hono", "hono/accepts", "hono/cors", "hono/utils/url"],
  ...["ipaddr.js", "jose", "just-bash/browser", "liquidjs", "minimatch", "openai", "openai/helpers/zod"],
  ...[
    "openai/lib/RunnableFunction",
    "re2js",
    "stemmer",
    "tokenx",
    "ulid",
    "yaml",
    "zod",
    "zod-openapi",
    "zod/v4",
  ],
];

/** Leaves modules of the runtime out of the bundles. */
const runtimeModules = {
  name: "runtime-modules",
  resolveId: (id: string) => {
    if (isBuiltin(id)) return { id: id.replace(/^(?:node:)?/, "node:"), external: true };
    return id.startsWith("cloudflare:") ? { id, external: true } : null;
  },
};

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
    deps: {
      optimizer: {
        ssr: { enabled: true, include: BUNDLED, rolldownOptions: { plugins: [runtimeModules] } },
      },
    },
    expect: POLL,
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
      node("node-alone", { include: ALONE, isolate: true }),
      node("node", { include: ["test/node/**/*.test.ts"], exclude: ALONE, isolate: false }),
      workers("workers-fresh", { include: FRESH, isolate: true }),
      workers("workers", { include: ["test/workers/**/*.test.ts"], exclude: FRESH, isolate: false }),
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
      // It replaces the build that other starts use, so it runs after them.
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
