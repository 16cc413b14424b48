/**
 * `node scripts/record-release.ts`: records the stored data of this version's actors, including turns in flight, in
 * `test/fixtures/releases/VERSION`. The tests of all later versions open it. Each release is recorded once.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { VERSION } from "../src/shared/version.ts";

const TRANSFORM = "--experimental-transform-types";

/** Runs this script in a process that transforms TypeScript, because the sources use syntax that type stripping rejects. */
function runAgain(): void {
  const flags = [TRANSFORM, "--no-warnings"];
  const { status } = spawnSync(process.execPath, [...flags, import.meta.filename], { stdio: "inherit" });
  process.exitCode = status ?? 1;
}

async function record(): Promise<void> {
  const directory = join(import.meta.dirname, "../test/fixtures/releases", VERSION);
  if (existsSync(directory)) {
    throw new Error(`Version ${VERSION} is already recorded. Increase the version, then record it.`);
  }
  const { recordAll } = await import("../test/support/releases/record.ts");
  const { encodeRecording } = await import("../test/support/releases/format.ts");
  const recordings = await recordAll();
  mkdirSync(directory, { recursive: true });
  for (const recording of recordings) {
    writeFileSync(join(directory, `${recording.name}.jsonl`), encodeRecording(recording));
  }
  console.info(`Recorded ${recordings.length} databases of ${VERSION}.`);
}

if (process.execArgv.includes(TRANSFORM)) await record();
else runAgain();
