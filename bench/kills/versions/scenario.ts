/**
 * Users who send, regenerate, edit and fork while the server is killed. Each user repeats a request under its key until it has an answer,
 * and then asks once more. A fork is a conversation of its own, and its user continues there or in the source.
 */
import { setTimeout as pause } from "node:timers/promises";
import { createClient, DramatisClientError } from "../../../src/client/index.ts";
import { mulberry32 } from "../../../src/shared/mulberry32.ts";
import type { Bundle } from "../../harness/bundle.ts";
import type { HitEvent } from "../hit-server.ts";
import { AGENT, contentOf, randomScript, type Script } from "../script.ts";
import { Site } from "../site.ts";
import { untilAnswered } from "../users.ts";
import { ACTS, type Act, type VersionsFinal, type VersionsHistory } from "./history.ts";

export interface VersionsOptions {
  kills: number;
  users: number;
  /** Seed of all choices. The timing depends on the machine. */
  seed: number;
  /** Time limit of the scenario, in milliseconds. */
  patienceMs: number;
}

/** Progress between a restart and the next kill, in events of the hit server. */
const PROGRESS = { from: 4, to: 30 };
/** Time from a request to the kill that is aimed at it, in milliseconds. */
const AIM_MS = 25;
const POLL_MS = 50;
const PAGE = 200;
/** Time limit of one request, in milliseconds. */
const REQUEST_MS = 10_000;

export async function versions(
  bundle: Bundle,
  directory: string,
  options: VersionsOptions,
  progress: (done: number) => void = () => {},
): Promise<VersionsHistory> {
  const acts: Act[] = [];
  const finals: VersionsFinal[] = [];
  const site = await Site.open(bundle, directory);
  try {
    await play(site, options, { acts, finals }, progress);
  } catch (cause) {
    throw new Error(`The scenario did not end. Last output of the server:\n${site.output().slice(-5_000)}`, {
      cause,
    });
  } finally {
    await site.close();
  }
  const { kills, hits } = site.history;
  return { acts, finals, kills, hits };
}

async function play(
  site: Site,
  { kills, users, seed, patienceMs }: VersionsOptions,
  { acts, finals }: Pick<VersionsHistory, "acts" | "finals">,
  progress: (done: number) => void,
): Promise<void> {
  const signal = AbortSignal.timeout(patienceMs);
  const client = createClient({ baseUrl: site.baseUrl });
  const ask = <Value>(request: (init: { signal: AbortSignal }) => Promise<Value>) =>
    untilAnswered(
      () => request({ signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]) }),
      signal,
    );
  const conversations: string[] = [];
  let isRaging = true;
  let onAct = () => {};

  /** Does an act until it is answered, and asks once more. Returns the id in the answer. */
  async function act(given: Omit<Act, "lost" | "answers">): Promise<string | undefined> {
    const one: Act = { ...given, lost: -1, answers: [] };
    acts.push(one);
    if (one.kind !== "send") onAct();
    try {
      one.answers.push(await firstAnswer(one));
      one.answers.push(await ask((init) => answerOf(one, init)));
      return one.answers[0];
    } catch (error) {
      if (!(error instanceof DramatisClientError)) throw error;
      one.refused = `${error.code}: ${error.message}`;
      return undefined;
    }
  }

  async function firstAnswer(one: Act): Promise<string> {
    for (;;) {
      try {
        return await ask((init) => {
          one.lost += 1;
          return answerOf(one, init);
        });
      } catch (error) {
        // A summary in progress may contain the turn.
        const isEarly = error instanceof DramatisClientError && error.message.includes("summar");
        if (!isEarly) throw error;
        one.lost -= 1;
      }
      await pause(POLL_MS, undefined, { signal });
    }
  }

  async function answerOf(
    { kind, conversation, key: idempotencyKey, script, of = "" }: Act,
    init: { signal: AbortSignal },
  ): Promise<string> {
    const content = contentOf(script);
    switch (kind) {
      case "send":
        return (await client.turns.start(conversation, { content, idempotencyKey }, init)).turnId;
      case "regenerate":
        return (await client.turns.regenerate(conversation, of, { idempotencyKey }, init)).turnId;
      case "edit":
        return (await client.turns.edit(conversation, of, { content, idempotencyKey }, init)).turnId;
      case "fork":
        return (await client.conversations.fork(conversation, { turnId: of, idempotencyKey }, init)).id;
      default:
        return kind satisfies never;
    }
  }

  async function use(user: number): Promise<void> {
    const random = mulberry32(seed + user + 1);
    let conversation = (await ask((init) => client.conversations.create({ agentId: AGENT }, init))).id;
    conversations.push(conversation);
    let last: { of: string; script: Script } | undefined;
    for (let n = 0; isRaging; n += 1) {
      const key = `u${user}a${n}`;
      const drawn = ACTS[Math.floor(random() * ACTS.length)] ?? "send";
      const kind = last === undefined ? "send" : drawn;
      const isSaid = kind === "send" || kind === "edit";
      const { stopMs: _never, ...said } = randomScript(random, key);
      const script = isSaid ? said : (last?.script ?? said);
      const id = await act({
        kind,
        conversation,
        key,
        script,
        ...(kind !== "send" && last && { of: last.of }),
      });
      if (id === undefined) last = undefined;
      else if (kind === "fork") {
        conversations.push(id);
        if (random() < 0.5) conversation = id;
      } else {
        await ended(conversation, id);
        last = { of: id, script };
      }
    }
  }

  async function ended(conversation: string, turnId: string): Promise<void> {
    while ((await ask((init) => client.turns.get(conversation, turnId, init))).status === "active")
      await pause(POLL_MS, undefined, { signal });
  }

  async function rage(): Promise<void> {
    const random = mulberry32(seed);
    const aims: readonly ((event: HitEvent) => boolean)[] = [
      ({ type, hit }) => type === "began" && hit.kind === "tool",
      ({ type }) => type === "piece",
      () => true,
    ];
    for (let done = 0; done < kills; done += 1) {
      let left = (PROGRESS.from + Math.floor(random() * (PROGRESS.to - PROGRESS.from))) * users;
      await site.hits.next(() => --left <= 0, signal);
      const aim = aims[Math.floor(done / 2) % aims.length] ?? (() => true);
      if (done % 2 === 1) await site.hits.next(aim, signal);
      else {
        await Promise.race([
          new Promise<void>((resolve) => {
            onAct = resolve;
          }),
          pause(5_000, undefined, { signal }),
        ]);
        await pause(random() * AIM_MS, undefined, { signal });
      }
      await site.kill();
      progress(done + 1);
    }
    isRaging = false;
  }

  async function finalOf(conversation: string): Promise<VersionsFinal> {
    const journal = await pages(({ cursor }) =>
      ask(async (init) => {
        const { entries: items, ...rest } = await client.conversations.journal(conversation, {
          ...init,
          limit: PAGE,
          ...(cursor !== undefined && { cursor }),
        });
        return { items, ...rest };
      }),
    );
    const ids = journal.flatMap(({ type, turnId }) => (type === "turn.started" && turnId ? [turnId] : []));
    const turns: VersionsFinal["turns"] = [];
    for (const id of ids) {
      await ended(conversation, id);
      turns.push(await ask((init) => client.turns.get(conversation, id, init)));
    }
    const messages = await pages(({ cursor }) =>
      ask(async (init) => {
        const { messages: items, ...rest } = await client.messages.list(conversation, {
          ...init,
          limit: PAGE,
          ...(cursor !== undefined && { cursor }),
        });
        return { items, ...rest };
      }),
    );
    return { conversation, journal, turns, messages };
  }

  await Promise.all([rage(), ...Array.from({ length: users }, (_, user) => use(user))]);
  for (const conversation of conversations) finals.push(await finalOf(conversation));
}

async function pages<Item>(
  read: (page: { cursor?: string }) => Promise<{ items: Item[]; nextCursor?: string }>,
): Promise<Item[]> {
  const all: Item[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined; ) {
    const { items, nextCursor }: { items: Item[]; nextCursor?: string } = await read(
      cursor === "" ? {} : { cursor },
    );
    all.push(...items);
    cursor = nextCursor;
  }
  return all;
}
