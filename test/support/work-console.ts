/** The console over a Worker of test/e2e, in a real browser: one server and browser for the tests of a file. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { buildConsole, CONSOLE } from "../../scripts/console.ts";
import { type Server, startServer } from "../../scripts/server.ts";
import { createClient, type DramatisClient } from "../../src/client/index.ts";
import { launchChromium, type Visitor } from "./browser.ts";
import { LOCAL_PAGES } from "./built-page.ts";
import { Desk } from "./desk.ts";

export interface WorkConsole {
  server: Server;
  browser: Browser;
  desk: Desk;
  client: DramatisClient;
  /** The visitor of the test, which sets it. Each leaves at the end of its test, and fails it if the page has complained. */
  visitor: Visitor;
}

/** Registers the hooks of the tests around the call. The members are there while its tests run. `worker` is the folder of the Worker. */
export function workConsole(
  worker: "work" | "code" | "memory" | "inspector" | "sign-in" = "work",
): WorkConsole {
  const folder = mkdtempSync(join(tmpdir(), "dramatis-console-"));
  // SAFETY: the hooks fill it before the first test.
  const world = {} as WorkConsole;

  beforeAll(async () => {
    buildConsole();
    const [server, browser, desk] = await Promise.all([
      startServer({
        port: 0,
        persist: join(folder, "state"),
        config: join(import.meta.dirname, `../e2e/${worker}/wrangler.jsonc`),
        assets: CONSOLE,
        onLine: () => undefined,
      }),
      launchChromium(LOCAL_PAGES),
      Desk.open(),
    ]);
    Object.assign(world, { server, browser, desk });
    await server.ready;
    world.client = createClient({ baseUrl: server.url });
  });

  afterAll(async () => {
    await world.browser?.close();
    await world.server?.stop();
    await world.desk?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  afterEach(async () => {
    await world.visitor.leave();
    expect(world.visitor.complaints).toEqual([]);
  });

  return world;
}
