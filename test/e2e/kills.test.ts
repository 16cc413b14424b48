/**
 * The harness of `npm run bench -- kills`, in small: real processes on plain workerd, killed under load, and within one
 * turn as often as it may be.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Bundle } from "../../bench/harness/bundle.ts";
import { checkBackground, missingIn } from "../../bench/kills/background/check.ts";
import { background } from "../../bench/kills/background/scenario.ts";
import { buildKillsBundle, missing, onSite, outcomeAmiss } from "../../bench/kills/case.ts";
import { check } from "../../bench/kills/check.ts";
import { oneTurn } from "../../bench/kills/one-turn.ts";
import { checkRuns, missingInRuns } from "../../bench/kills/runs/check.ts";
import { runs } from "../../bench/kills/runs/scenario.ts";
import { storm } from "../../bench/kills/storm.ts";
import { checkTrees } from "../../bench/kills/trees/check.ts";
import { trees } from "../../bench/kills/trees/scenario.ts";
import { checkVersions } from "../../bench/kills/versions/check.ts";
import { versions } from "../../bench/kills/versions/scenario.ts";
import { MAX_RECOVERIES } from "../../src/agents/conversation/core/conversation-limits.ts";

const PATIENCE_MS = 90_000;
/** The turn that must fail pauses for half a minute in all. */
const ONE_TURN_MS = 180_000;

describe.concurrent("A72 H1 kill -9 under load", () => {
  const folder = mkdtempSync(join(tmpdir(), "dramatis-kills-"));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.once("exit", remove);
  let bundle: Bundle;

  beforeAll(async () => {
    bundle = await buildKillsBundle(folder);
  });

  afterAll(() => {
    process.off("exit", remove);
    remove();
  });

  it("A72 H1 at any moment of five conversations: acknowledged messages survive, each `once` tool runs at most once, each text appears once", async () => {
    const options = { kills: 3, conversations: 5, seed: 72, patienceMs: PATIENCE_MS };
    const history = await onSite(bundle, join(folder, "storm"), (site) => storm(site, options));
    expect(check(history)).toEqual([]);
    expect(missing(history)).toEqual([]);
    expect(history.kills).toHaveLength(3);
  });

  it("A72 H1 E24 between batches of signals and work in the background: each message has one turn, each operation one outcome that the agent knows", async () => {
    const options = { kills: 3, conversations: 2, seed: 12, patienceMs: PATIENCE_MS };
    const history = await background(bundle, join(folder, "background"), options);
    expect(checkBackground(history)).toEqual([]);
    expect(history.kills).toHaveLength(3);
    expect(missingIn(history)).toEqual([]);
  });

  it("A72 H1 H4 over trees of agents: each operation has one outcome, and no call outlives a stop", async () => {
    const options = { kills: 2, users: 2, seed: 7, patienceMs: ONE_TURN_MS, settleMs: 5_000 };
    const history = await trees(bundle, join(folder, "trees"), options);
    // Amounts may arrive after the test's wait: `npm run bench -- kills` checks them.
    const isInTime = (violation: string) => !violation.startsWith("KILLTREE-4");
    expect(checkTrees(history).filter(isInTime)).toEqual([]);
    expect(history.kills).toHaveLength(2);
    expect(history.trees.length).toBeGreaterThan(1);
  }, 210_000);

  it("A72 H1 H7 during forks, edits and regenerations: each key has one turn or one fork, and no `once` tool runs twice over all versions", async () => {
    const options = { kills: 4, users: 3, seed: 7, patienceMs: ONE_TURN_MS };
    const history = await versions(bundle, join(folder, "versions"), options);
    expect(checkVersions(history)).toEqual([]);
    expect(history.kills).toHaveLength(4);
    expect(history.acts.length).toBeGreaterThan(4);
  }, 210_000);

  // For half a minute, it waits for the lost results of `once` tasks, and the turn pauses as long.
  it("A72 H1 F2 five times within a fan-out of 200: it completes, no `once` task runs twice, and each unknown outcome is reported", async () => {
    const options = { runs: 1, kills: 5, branches: 200, seed: 7, patienceMs: ONE_TURN_MS };
    const history = await runs(bundle, join(folder, "runs"), options);
    expect(checkRuns(history)).toEqual([]);
    expect(missingInRuns(history)).toEqual([]);
    expect(history.kills).toHaveLength(5);
  }, 210_000);

  it("A72 H1 as often within one turn as it may be: it completes; once more: it fails", async () => {
    const options = { kills: MAX_RECOVERIES, patienceMs: ONE_TURN_MS };
    const history = await onSite(bundle, join(folder, "one-turn"), (site) => oneTurn(site, options));
    expect(check(history)).toEqual([]);
    expect(outcomeAmiss(history)).toEqual([]);
    expect(history.kills).toHaveLength(MAX_RECOVERIES + 1);
  }, 210_000);
});
