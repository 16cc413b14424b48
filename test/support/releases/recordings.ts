/** The recordings of all releases in Node, and stages with their storage. */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { VirtualClock } from "../../../src/ports/node/virtual-clock.ts";
import { PARTNERS } from "./ends.ts";
import { decodeRecording, loadStorage, type Recorded, type Recording } from "./format.ts";
import { connect } from "./network.ts";
import { Stage } from "./stage.ts";

export const FIXTURES = join(import.meta.dirname, "../../fixtures");

export type Released = Recording & { release: string };

export const RECORDINGS: Released[] = globSync("releases/*/*.jsonl", { cwd: FIXTURES })
  .sort()
  .map((path) => ({
    release: basename(dirname(path)),
    ...decodeRecording(readFileSync(join(FIXTURES, path), "utf8")),
  }));

export const recorded = (of: Recorded) => RECORDINGS.filter((recording) => recording.of === of);

/** A stage at the time of the recording, with its storage. New ids have their own seed. */
export function staged({ now, storage }: Recording, clock = new VirtualClock(now), seed = 11): Stage {
  const stage = new Stage(now, seed, clock);
  loadStorage(storage, stage.database, stage.keyValue);
  return stage;
}

/** Connects a recorded conversation with the other actors of its recording. */
export async function connectPartner(stage: Stage, { name, release }: Released): Promise<void> {
  const partner = RECORDINGS.find((one) => one.release === release && one.name === PARTNERS[name]);
  const other = partner && staged(partner, stage.clock, 17);
  if (partner?.of === "agent") await connect(stage, [], other);
  else await connect(stage, other && [other]);
}
