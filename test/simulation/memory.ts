/**
 * The memory of one agent under random changes, crashes, and stores that fail or answer late. A client repeats a change
 * until it is acknowledged.
 *
 * When all stores work again, the checker tests four facts. Each acknowledged change is applied once. Erased text is in
 * no store. Searches find the text of the rows. The copies in records, objects and vectors equal the rows.
 */
import { inspect } from "node:util";
import { eraseMore, eraseSources } from "../../src/memory/corpus/erasures.ts";
import { extractedSchema } from "../../src/memory/corpus/schemas.ts";
import type { Memory } from "../../src/protocol/memory-schemas.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { Random } from "../../src/testing/random.ts";
import { Crossings } from "../support/crossings.ts";
import { EDITOR, MemoryWorld, type Mood, WRITER } from "../support/memory-world.ts";
import { WordEmbedder } from "../support/test-embedders.ts";

const MINUTE_MS = 60_000;
/** A request that was not answered takes effect within this time, in milliseconds. */
const LATE_MS = 55_000;
const LONG = " All that was said about the harbour.".repeat(130);

/** A client's record of a memory. */
interface Known {
  id: string;
  content: string;
  version: number;
  state: "current" | "archived";
  /** Words that each of its texts has had alone. */
  words: string[];
  /** The turn that it was learned from. */
  turn?: string;
  isErased: boolean;
}

export interface SimulatedMemory {
  violations: string[];
  lives: number;
  erased: number;
  kept: number;
}

export async function simulateMemory(seed: number): Promise<SimulatedMemory> {
  const player = new Player(seed);
  await player.play();
  return { violations: await player.check(), ...player.counts };
}

class Player {
  readonly #random: Random;
  readonly #world: MemoryWorld;
  readonly #crossings: Crossings;
  readonly #known: Known[] = [];
  #words = 0;
  #lateSince = 0;

  constructor(private readonly seed: number) {
    this.#random = new Random(seed);
    let point = 0;
    const crashes = this.#random.list(this.#random.small(0, 12), () => {
      point += this.#random.int(1, 400);
      return point;
    });
    this.#crossings = new Crossings(crashes);
    this.#world = new MemoryWorld(this.#crossings, new WordEmbedder(50, true, "first"));
  }

  get counts() {
    const erased = this.#known.filter(({ isErased }) => isErased).length;
    return { lives: this.#world.lives, erased, kept: this.#known.length - erased };
  }

  async play(): Promise<void> {
    const steps = this.#random.int(10, 40);
    this.#crossings.arm();
    for (let step = 0; step < steps; step++) await this.#step();
    this.#crossings.disarm();
    if (this.#crossings.crashed) this.#world.wake();
  }

  async #step(): Promise<void> {
    const random = this.#random;
    const world = this.#world;
    const action = random.int(0, 19);
    if (action < 4) return this.#write(random.small(1, 3));
    if (action < 6) return this.#update();
    if (action < 8) return this.#delete();
    if (action < 9) return this.#archive();
    if (action < 12) return this.#learn();
    if (action < 14) return this.#eraseTurn();
    if (action < 17) return this.#copy();
    if (action < 18) return this.#advance(random.int(1_000, 2 * MINUTE_MS));
    if (action < 19) {
      const moods: Mood[] = ["well", "well", "down", "late"];
      for (const store of ["objects", "records", "vectors"] as const) world.moods[store] = random.pick(moods);
      return;
    }
    if (random.chance(0.3)) world.embedder = new WordEmbedder(50, true, random.pick(["first", "second"]));
    this.#crossings.kill();
    world.wake();
  }

  /** Repeats an attempt until it is acknowledged. */
  async #acknowledged<Value>(attempt: () => Promise<Value>): Promise<Value> {
    for (;;) {
      try {
        const value = await attempt();
        if (!this.#crossings.crashed) return value;
      } catch (error) {
        const isDown = error instanceof DramatisError && error.retriable;
        if (!this.#crossings.crashed && !isDown) throw error;
        // A client repeats it until the text can be read.
        if (isDown) this.#world.moods.objects = "well";
      }
      if (this.#crossings.crashed) this.#world.wake();
    }
  }

  #text(): { word: string; content: string } {
    const word = `word${this.seed}x${this.#words++}`;
    const content = `The ${word} stands in the garden.${this.#random.chance(0.3) ? LONG : ""}`;
    return { word, content };
  }

  #living(wanted: (known: Known) => boolean = () => true): Known | undefined {
    const living = this.#known.filter((one) => !one.isErased && wanted(one));
    return living.length === 0 ? undefined : this.#random.pick(living);
  }

  #learnt(
    { id }: Memory | { id: string },
    { word, content }: { word: string; content: string },
    turn?: string,
  ) {
    const known: Known = { id, content, version: 1, state: "current", words: [word], isErased: false };
    this.#known.push(turn === undefined ? known : { ...known, turn });
  }

  async #write(count: number): Promise<void> {
    const texts = this.#random.list(count, () => this.#text());
    const inputs = texts.map(({ word, content }) => ({ content, idempotencyKey: word }));
    const written = await this.#acknowledged(() => this.#world.corpus.write(WRITER, inputs));
    for (const [at, text] of texts.entries()) {
      const memory = written[at];
      if (memory !== undefined) this.#learnt(memory, text);
    }
  }

  async #update(): Promise<void> {
    const known = this.#living(({ state, turn }) => state === "current" && turn === undefined);
    if (known === undefined) return;
    const { word, content } = this.#text();
    await this.#acknowledged(async () => {
      try {
        await this.#world.corpus.update(WRITER, known.id, { content, ifVersion: known.version });
      } catch (error) {
        // It was made before the crash.
        if (!(error instanceof DramatisError && error.code === "CONFLICT")) throw error;
      }
    });
    known.content = content;
    known.version += 1;
    known.words.push(word);
  }

  async #delete(): Promise<void> {
    const known = this.#living();
    if (known === undefined) return;
    await this.#acknowledged(async () => {
      try {
        await this.#world.corpus.delete(WRITER, known.id);
      } catch (error) {
        if (!(error instanceof DramatisError && error.code === "NOT_FOUND")) throw error;
      }
    });
    known.isErased = true;
  }

  async #archive(): Promise<void> {
    const known = this.#living(({ state }) => state === "current");
    if (known === undefined) return;
    await this.#acknowledged(() => this.#world.corpus.archive(WRITER, known.id));
    known.state = "archived";
    known.version += 1;
  }

  async #learn(): Promise<void> {
    const text = this.#text();
    const turnId = `turn_${text.word}`;
    const body = extractedSchema.parse({
      ...{ operationId: `op_${text.word}`, scope: "user", used: [] },
      subject: { userId: "ann", conversationId: "conv_1" },
      source: { conversationId: "conv_1", turnId },
      time: new Date(this.#world.clock.now()).toISOString(),
      operations: [{ op: "write", content: text.content }],
    });
    const outcomes = await this.#acknowledged(async () => {
      const { extractions } = this.#world;
      const prepared = await extractions.prepare(body);
      return this.#world.transaction(() => extractions.apply(body, prepared).outcomes);
    });
    const [outcome] = outcomes;
    if (outcome?.status === "applied" && outcome.memoryId !== undefined)
      this.#learnt({ id: outcome.memoryId }, text, turnId);
  }

  async #eraseTurn(): Promise<void> {
    const known = this.#living(({ turn }) => turn !== undefined);
    if (known?.turn === undefined) return;
    const turns = [{ turnId: known.turn }];
    await this.#acknowledged(async () => {
      this.#world.transaction(
        () => void eraseSources(this.#world.corpus, { conversationId: "conv_1", turns }),
      );
      while (await eraseMore(this.#world.corpus));
    });
    known.isErased = true;
  }

  /** Runs one copy, with any result. */
  async #copy(): Promise<void> {
    const { isLate } = this.#world;
    try {
      await this.#world.copies.bringUpToDate();
    } catch (error) {
      if (!this.#crossings.crashed && !(error instanceof DramatisError)) throw error;
    }
    if (this.#crossings.crashed) this.#world.wake();
    if (!isLate) this.#lateSince = this.#world.clock.now();
    if (this.#random.chance(0.2)) await this.#world.settle();
  }

  async #advance(milliseconds: number): Promise<void> {
    const { clock } = this.#world;
    if (clock.now() + milliseconds - this.#lateSince > LATE_MS) await this.#world.settle();
    await clock.advance(milliseconds);
  }

  /** Returns the problems when all stores work again. */
  async check(): Promise<string[]> {
    const world = this.#world;
    const violations: string[] = [];
    for (const store of ["objects", "records", "vectors"] as const) world.moods[store] = "well";
    if (this.#random.chance(0.5)) await world.copies.bringUpToDate().catch(() => undefined);
    await world.settle();
    await world.repair();
    const { memories } = world.corpus.rows;
    const found = world.corpus.exists ? memories.after(0, 10_000) : [];
    for (const known of this.#known) violations.push(...(await this.#checkOne(known)));
    const living = this.#known.filter(({ isErased }) => !isErased);
    const { items } = await world.corpus.list(EDITOR, {
      limit: 200,
      state: ["current", "ended", "archived"],
    });
    const ids = (list: { id: string }[]) =>
      list
        .map(({ id }) => id)
        .sort()
        .join(" ");
    if (ids(items) !== ids(living)) violations.push(`The list has ${ids(items)}, not ${ids(living)}.`);
    const everything = this.#everything();
    for (const { words, isErased } of this.#known)
      for (const word of isErased ? words : [])
        for (const [store, text] of everything)
          if (new RegExp(`\\b${word}\\b`).test(text)) violations.push(`${store} has the erased ${word}.`);
    const inStore = [...world.vectors.ids().values()].flat();
    const numbers = inStore.map((id) => Number(id.split(".")[1])).sort((a, b) => a - b);
    const expected = found.map(({ n }) => n);
    if (numbers.join() !== expected.join())
      violations.push(`The store has the vectors ${inStore.join()}, not ${expected.join()}.`);
    const records = ids([...world.records.rows.keys()].map((id) => ({ id })));
    if (records !== ids(living)) violations.push(`The records are ${records}, not ${ids(living)}.`);
    const refs = [...world.records.rows.values()].flatMap(({ ref }) => ref ?? []).sort();
    if ([...world.keys].sort().join() !== refs.join())
      violations.push("Objects are left that no record names.");
    return violations;
  }

  async #checkOne({ id, content, version, state, words, isErased }: Known): Promise<string[]> {
    const { corpus, records } = this.#world;
    const word = words.at(-1) ?? "";
    const query = { query: word, limit: 5, minRelevance: 0 };
    const matches = (await corpus.search(EDITOR, query)).matches.filter(({ memory }) =>
      memory.content.includes(`${word} `),
    );
    if (isErased) return matches.length === 0 ? [] : [`A search finds the erased ${word}.`];
    try {
      const memory = await corpus.read(EDITOR, id);
      const violations: string[] = [];
      if (memory.content !== content) violations.push(`${word} is lost: ${memory.content.slice(0, 60)}`);
      if (memory.version !== version || memory.state !== state)
        violations.push(
          `${word} has version ${memory.version} (${memory.state}), not ${version} (${state}).`,
        );
      const isFound = matches.length === 1 && matches[0]?.memory.id === id;
      if (isFound !== (state === "current"))
        violations.push(`${matches.length} searches find ${word}, ${state}.`);
      if (records.rows.get(id)?.version !== version) violations.push(`The record of ${word} is behind.`);
      return violations;
    } catch (error) {
      return [`${word} cannot be read: ${error}`];
    }
  }

  /** The texts of everything that is stored, by store. */
  #everything(): [string, string][] {
    const world = this.#world;
    const options = { depth: 10, maxStringLength: null, maxArrayLength: null } as const;
    const texts = (value: unknown) =>
      value instanceof Uint8Array ? new TextDecoder().decode(value) : inspect(value, options);
    const tables = world.tables().map((name): [string, string] => [
      name,
      world
        .rows(name)
        .map((row) => Object.values(row).map(texts).join(" "))
        .join("\n"),
    ]);
    return [...tables, ["records", inspect([...world.records.rows.values()], options)]];
  }
}
