/**
 * Many restarts within one turn. Two turns are killed together, each time after both have progressed. The survivor completes
 * after the maximum number of crashes. The victim is killed once more and must fail.
 */
import { createClient } from "../../src/client/index.ts";
import { readFinalState } from "./final-state.ts";
import type { HitEvent } from "./hit-server.ts";
import { AGENT, type Script } from "./script.ts";
import type { Site } from "./site.ts";
import { newUser } from "./users.ts";

/**
 * A long turn, so that each kill hits another place, although the victim pauses for longer after each kill. Only one of its tools
 * is `once`. After a kill of such a tool, the turn waits 30 seconds for a late result, and other kills do not count in that time.
 */
export const SURVIVOR: Script = {
  key: "survivor",
  rounds: [
    ...repeated(["idempotent"], ["idempotent", "pure"], ["pure"]),
    ["once", "idempotent"],
    ...repeated(["idempotent"], ["idempotent", "pure"], ["pure"]),
  ],
  pieces: 30,
  pieceMs: 100,
  toolMs: 1_500,
};

/** Returns each round twice. */
function repeated(...rounds: Script["rounds"]): Script["rounds"] {
  return rounds.flatMap((round) => [round, round]);
}

/** A turn with a text that is too long to complete in time. */
export const VICTIM: Script = { key: "victim", rounds: [], pieces: 4_500, pieceMs: 20, toolMs: 0 };

export interface OneTurnOptions {
  /** Number of crashes of the surviving turn. The other turn has one more. */
  kills: number;
  /** Time limit of the whole scenario, in milliseconds. */
  patienceMs: number;
}

export async function oneTurn(
  site: Site,
  { kills, patienceMs }: OneTurnOptions,
  progress: (done: number) => void = () => {},
): Promise<void> {
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(patienceMs)]);
  const { baseUrl, history, hits } = site;
  const client = createClient({ baseUrl });

  async function converse(script: Script) {
    const { id: conversation } = await client.conversations.create({ agentId: AGENT });
    const around = { baseUrl, conversation, history, hits, signal, calm: signal };
    const watcher = newUser("socket", around);
    const answered = newUser("stream", around).say([script]);
    const leave = async () => {
      await answered;
      const final = await readFinalState(baseUrl, conversation, signal);
      history.finals.push(final);
      await watcher.leave(final.frames.at(-1)?.seq ?? 0);
    };
    return { answered, leave };
  }

  /** Resolves at the next delta or tool of the survivor, after the victim has streamed a delta. */
  async function bothWentOn(aim: HitEvent["type"], kind: "model" | "tool"): Promise<void> {
    let isVictimThere = false;
    await hits.next(({ type, hit }) => {
      if (hit.key === VICTIM.key) isVictimThere ||= type === "piece";
      return isVictimThere && hit.key === SURVIVOR.key && type === aim && hit.kind === kind;
    }, signal);
  }

  /** Resolves when the victim streams again. */
  async function victimStreams(): Promise<void> {
    await hits.next(({ type, hit }) => type === "piece" && hit.key === VICTIM.key, signal);
  }

  try {
    const [survivor, victim] = await Promise.all([converse(SURVIVOR), converse(VICTIM)]);
    const rage = async () => {
      for (let done = 0; done < kills; done += 1) {
        const both = done % 2 === 0 ? bothWentOn("piece", "model") : bothWentOn("began", "tool");
        // The victim pauses for longer after each kill, so the survivor may end before the last kill.
        await Promise.race([both, survivor.answered.then(victimStreams)]);
        await site.kill();
        progress(done + 1);
      }
      await survivor.answered;
      await victimStreams();
      await site.kill();
      progress(kills + 1);
    };
    await Promise.all([rage(), survivor.answered, victim.answered]);
    await Promise.all([survivor.leave(), victim.leave()]);
  } finally {
    ended.abort(new Error("It is over."));
  }
}
