/**
 * A storm: many active conversations while the server is killed repeatedly. Some kills are random. The others are aimed: within
 * a stream, within a tool, and between the two.
 */
import { createClient } from "../../src/client/index.ts";
import { mulberry32 } from "../../src/shared/mulberry32.ts";
import { readFinalState } from "./final-state.ts";
import type { Manner } from "./history.ts";
import type { HitEvent } from "./hit-server.ts";
import { AGENT, randomScript } from "./script.ts";
import type { Site } from "./site.ts";
import { newUser, type Surroundings } from "./users.ts";

export interface StormOptions {
  kills: number;
  conversations: number;
  /** Seed of all choices. The timing depends on the machine. */
  seed: number;
  /** Time limit of the storm, in milliseconds. */
  patienceMs: number;
}

const MANNERS: readonly Manner[] = ["socket", "post", "socket", "stream", "socket", "post"];

/** Aims of the kills, in turn: within a stream, within a tool, after a reply, and any moment. */
const AIMS: readonly ((event: HitEvent) => boolean)[] = [
  ({ type }) => type === "piece",
  ({ type, hit }) => type === "began" && hit.kind === "tool",
  ({ type, hit }) => type === "ended" && hit.answered && hit.kind === "model",
  () => true,
  () => true,
];

/**
 * Range of progress between a restart and the next kill, in hit-server events. A slow machine needs more time for it.
 */
const PROGRESS = { from: 4, to: 60 };
/** Time limit for every turn to end without a caller after the last kill, in milliseconds. */
const CALM_MS = 40_000;
const AT_ONCE = 3;

export async function storm(
  site: Site,
  { kills, conversations, seed, patienceMs }: StormOptions,
  progress: (done: number) => void = () => {},
): Promise<void> {
  const random = mulberry32(seed);
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(patienceMs)]);
  const { baseUrl, history, hits } = site;
  const client = createClient({ baseUrl });
  const calm = new AbortController();
  let isRaging = true;

  async function converse(conversation: string, index: number): Promise<void> {
    const around: Surroundings = { baseUrl, conversation, history, hits, signal, calm: calm.signal };
    const own = mulberry32(seed + index + 1);
    const user = newUser(MANNERS[index % MANNERS.length] ?? "socket", around);
    for (let said = 0; isRaging; ) {
      const count = own() < 0.5 ? 1 : 2 + Math.floor(own() * (AT_ONCE - 1));
      const scripts = Array.from({ length: count }, (_, n) => randomScript(own, `c${index}m${said + n}`));
      said += count;
      await user.say(scripts);
    }
    const final = await readFinalState(baseUrl, conversation, signal);
    history.finals.push(final);
    await user.leave(final.frames.at(-1)?.seq ?? 0);
  }

  async function rage(): Promise<void> {
    for (let done = 0; done < kills; done += 1) {
      const events = PROGRESS.from + Math.floor(random() * (PROGRESS.to - PROGRESS.from));
      let left = events * conversations;
      await hits.next(() => --left <= 0, signal);
      await hits.next(AIMS[done % AIMS.length] ?? (() => true), signal);
      await site.kill();
      progress(done + 1);
    }
    isRaging = false;
    setTimeout(() => calm.abort(), CALM_MS).unref();
  }

  try {
    const ids: string[] = [];
    for (let n = 0; n < conversations; n += 1) {
      const turns = n % 3 === 1 ? "queued" : "parallel";
      ids.push((await client.conversations.create({ agentId: AGENT, turns })).id);
    }
    await Promise.all([rage(), ...ids.map(converse)]);
  } finally {
    ended.abort(new Error("The storm is over."));
  }
}
