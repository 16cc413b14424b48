/**
 * Batches of signals with turns that work in the background, while the server is killed at random moments. Clients repeat
 * requests without an answer, tools continue without their caller, and a payment provider delivers results at any time.
 */
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "../../../src/client/index.ts";
import type { JournalEntryView, MessageView } from "../../../src/protocol/conversation-schemas.ts";
import type { SignalResult } from "../../../src/protocol/signals.ts";
import { mulberry32 } from "../../../src/shared/mulberry32.ts";
import type { Bundle } from "../../harness/bundle.ts";
import { RestartedServer } from "../restarted-server.ts";
import {
  type BackgroundFinal,
  type BackgroundHistory,
  newBackgroundHistory,
  type SentBatch,
} from "./history.ts";
import { Outside } from "./outside.ts";
import { BACKGROUND_AGENT, randomBatch, textOf } from "./script.ts";

export interface BackgroundOptions {
  kills: number;
  conversations: number;
  /** Seed of all choices. The timing depends on the machine. */
  seed: number;
  /** Time limit of the scenario, in milliseconds. */
  patienceMs: number;
}

/** Time between two kills, in milliseconds. */
const CALM_MS = { from: 700, to: 4_000 };
/** Time between two batches of a conversation, in milliseconds. */
const PAUSE_MS = { from: 500, to: 5_000 };
/** Time from the start of a batch to a kill that is aimed at it, in milliseconds. */
const ON_THE_WAY_MS = { from: 0, to: 12 };
const RETRY_MS = 200;
const POLL_MS = 300;
const PAGE = 200;

/** Runs the scenario in its own directory. Returns its history, unless a turn does not end in time. */
export async function background(
  bundle: Bundle,
  directory: string,
  { kills, conversations, seed, patienceMs }: BackgroundOptions,
  progress: (done: number) => void = () => {},
): Promise<BackgroundHistory> {
  const random = mulberry32(seed);
  const history = newBackgroundHistory();
  const outside = new Outside(history);
  await outside.start();
  const server = await RestartedServer.open(bundle, directory, outside.baseUrl);
  outside.target = server.baseUrl;
  const signal = AbortSignal.timeout(patienceMs);
  let isRaging = true;
  let onSend: () => void = () => undefined;

  async function converse(conversation: string, index: number): Promise<void> {
    const own = mulberry32(seed + index + 1);
    const calls = new Calls(`${server.baseUrl}/api/conversations/${conversation}`, signal);
    for (let n = 0; isRaging; n++) {
      const isLarge = n === 0 && index % 3 === 0;
      const batch: SentBatch = {
        conversation,
        scripts: randomBatch(own, `c${index}b${n}`, isLarge),
        tries: 0,
        accepted: [],
      };
      history.batches.push(batch);
      onSend();
      await calls.send(batch);
      await pause(within(own, PAUSE_MS), undefined, { signal });
    }
    history.finals.push({ conversation, ...(await calls.atRest()) });
  }

  async function rage(): Promise<void> {
    for (let done = 0; done < kills; done++) {
      await pause(within(random, CALM_MS), undefined, { signal });
      // Every second kill hits a batch in flight.
      if (done % 2 === 1) {
        await new Promise<void>((resolve) => (onSend = resolve));
        await pause(within(random, ON_THE_WAY_MS), undefined, { signal });
      }
      history.kills.push(await server.kill());
      progress(done + 1);
    }
    isRaging = false;
  }

  try {
    const client = createClient({ baseUrl: server.baseUrl });
    const ids: string[] = [];
    for (let n = 0; n < conversations; n++) {
      const turns = n % 2 === 1 ? "queued" : "parallel";
      ids.push((await client.conversations.create({ agentId: BACKGROUND_AGENT, turns })).id);
    }
    await Promise.all([rage(), ...ids.map(converse)]);
    return history;
  } catch (cause) {
    const last = server.output().slice(-5_000);
    throw new Error(`The scenario did not end. Last output of the server:\n${last}`, { cause });
  } finally {
    await server.close();
    await outside.close();
  }
}

function within(random: () => number, { from, to }: { from: number; to: number }): number {
  return from + Math.floor(random() * (to - from + 1));
}

/** A list that is read again and again. */
interface List<Item> {
  items: Item[];
  /** The number of items before the last page, and the cursor of this page. */
  before: number;
  cursor?: string;
}

/** Sends requests to one conversation, and repeats them until they have an answer. */
class Calls {
  readonly #address: string;
  readonly #signal: AbortSignal;

  constructor(address: string, signal: AbortSignal) {
    this.#address = address;
    this.#signal = signal;
  }

  /** Sends a batch until each of its messages is accepted. */
  async send(batch: SentBatch): Promise<void> {
    for (let left = batch.scripts; left.length > 0; ) {
      const body = left.map((script) => ({
        id: script.key,
        type: "conversation.user.message",
        data: { content: textOf(script) },
      }));
      batch.tries += 1;
      const answer = await this.#once<{ results: SignalResult[] }>("/signals", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const results = answer?.results ?? [];
      const refused = results.find((result) => !result.ok && !result.error.retriable);
      if (refused !== undefined) throw new Error(`A message was refused: ${JSON.stringify(refused)}`);
      batch.accepted.push(...left.flatMap(({ key }, index) => (results[index]?.ok === true ? [key] : [])));
      left = left.filter(({ key }) => !batch.accepted.includes(key));
      if (left.length > 0) await pause(RETRY_MS, undefined, { signal: this.#signal });
    }
  }

  /** Returns the users' messages and the journal when no turn is active and no message waits. */
  async atRest(): Promise<Pick<BackgroundFinal, "journal" | "messages">> {
    const journal: List<JournalEntryView> = { items: [], before: 0 };
    for (;;) {
      await this.#read(journal, "/journal", "entries");
      const count = (type: string) => journal.items.filter((entry) => entry.type === type).length;
      const waits =
        sumOf(journal.items, "conversation.queue.received") -
        sumOf(journal.items, "conversation.queue.drained");
      const isOver = count("turn.started") === count("turn.completed") + count("turn.failed");
      if (isOver && waits === 0) {
        const messages: List<MessageView> = { items: [], before: 0 };
        await this.#read(messages, "/messages", "messages");
        return { journal: journal.items, messages: messages.items.filter(({ role }) => role === "user") };
      }
      await pause(POLL_MS, undefined, { signal: this.#signal });
    }
  }

  /** Adds the new items of a list. Reads its last page again, because new items are at its end. */
  async #read<Item, Member extends string>(list: List<Item>, path: string, member: Member): Promise<void> {
    for (;;) {
      const query = new URLSearchParams({ limit: String(PAGE), ...(list.cursor && { cursor: list.cursor }) });
      const page: (Record<Member, Item[]> & { nextCursor?: string }) | null = await this.#once(
        `${path}?${query}`,
      );
      if (page === null) {
        await pause(RETRY_MS, undefined, { signal: this.#signal });
        continue;
      }
      list.items.splice(list.before, list.items.length, ...page[member]);
      if (page.nextCursor === undefined) return;
      list.cursor = page.nextCursor;
      list.before = list.items.length;
    }
  }

  /** Returns `null` if the server does not answer, or fails. */
  async #once<Answer>(path: string, init: RequestInit = {}): Promise<Answer | null> {
    this.#signal.throwIfAborted();
    try {
      const response = await fetch(`${this.#address}${path}`, {
        ...init,
        signal: AbortSignal.any([this.#signal, AbortSignal.timeout(15_000)]),
      });
      const answer: Answer = await response.json();
      return response.ok ? answer : null;
    } catch {
      return null;
    }
  }
}

/** Returns the sum of the message counts in entries of a type. */
function sumOf(journal: readonly JournalEntryView[], type: string): number {
  return journal
    .filter((entry) => entry.type === type)
    .reduce((sum, { data }) => sum + Number((data as { count?: number } | undefined)?.count ?? 0), 0);
}
