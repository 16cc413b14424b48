/** An agent's memory with its upkeep in this process: a real database and a real executor, and a clock that tests set. */

import { runConsolidation } from "../../src/agents/agent/run-consolidation.ts";
import { MemoryUpkeep } from "../../src/agents/agent/upkeep.ts";
import type { Library } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveUpkeep } from "../../src/library/registry/upkeep.ts";
import { Corpus } from "../../src/memory/corpus/corpus.ts";
import { eraseSources } from "../../src/memory/corpus/erasures.ts";
import { Extractions } from "../../src/memory/corpus/extraction.ts";
import type { ErasedSources } from "../../src/memory/corpus/schemas.ts";
import { extractedSchema } from "../../src/memory/corpus/schemas.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import type { Persona } from "../../src/protocol/definitions.ts";
import type { ExtractedMemories, MemoryReader } from "../../src/protocol/memory.ts";
import type { MemoryInput } from "../../src/protocol/memory-requests.ts";
import type { Memory, MemoryOutcome } from "../../src/protocol/memory-schemas.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { indexOf } from "./indexed-memories.ts";

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
const AGENT = { id: "friend", tenant: "test", projectIds: ["default"] };
/** Sees everything. */
export const ALL: MemoryReader = { scope: "agent" };
const AUTHOR: MemoryReader = { principal: { subject: "ann", tenant: AGENT.tenant, roles: ["author"] } };

type Settings = NonNullable<Persona["memory"]>;

export class UpkeepWorld {
  readonly database = new NodeSqlDatabase();
  readonly keyValue = new NodeKeyValue(this.database);
  now = Date.UTC(2026, 0, 1);
  /** Deadlines of upkeep. */
  readonly timers = new VirtualClock();
  /** Takes the place of the persona's resolution. */
  persona: (() => Promise<never>) | null = null;
  settings: Settings;
  /** Milliseconds of the requested wake-ups, until the next life. */
  armed: number[] = [];
  corpus: Corpus;
  upkeep: MemoryUpkeep;
  #operation = 0;
  readonly #libraries: Library[];

  constructor(settings: Settings = {}, libraries: Library[] = []) {
    this.settings = settings;
    this.#libraries = libraries;
    [this.corpus, this.upkeep] = this.#life();
  }

  /** Begins another life of the actor: its memory is cleared, and its database stays. */
  restart(): void {
    this.armed = [];
    [this.corpus, this.upkeep] = this.#life();
  }

  #life(): [Corpus, MemoryUpkeep] {
    const corpus = new Corpus({
      database: this.database,
      keyValue: this.keyValue,
      clock: { now: () => this.now },
      ids: systemIds,
      index: indexOf(this, () => corpus.rows),
      objects: () => null,
      agent: () => AGENT,
      noted: () => upkeep.noted(),
      committed: () => undefined,
    });
    const code = new DeployedCode(this.#libraries);
    const executor = localExecutor(code, systemClock);
    const upkeep = new MemoryUpkeep({
      corpus,
      clock: this.timers,
      upkeep: () =>
        this.persona?.() ??
        resolveUpkeep(
          new Registry(code),
          { identity: { systemPrompt: "Test." }, memory: { scope: "user", ...this.settings } },
          { provider: "offline", modelId: "offline-1" },
        ),
      run: (hook, call) =>
        runConsolidation(
          {
            ...{ executor, clock: systemClock, agent: AGENT },
            coordinator: () => Promise.reject(new Error("There are no runs.")),
          },
          hook,
          call,
        ),
      newOperationId: () => `op_${systemIds.ulid()}`,
      wakeup: {
        arm: async (milliseconds) => void this.armed.push(milliseconds),
        disarm: () => undefined,
      },
    });
    return [corpus, upkeep];
  }

  /** Lets time pass, and runs the due work. Returns the milliseconds until the next wake-up. */
  async pass(milliseconds: number): Promise<number | null> {
    this.now += milliseconds;
    if (this.upkeep.wake() === null) return null;
    await this.upkeep.settle();
    return this.upkeep.wake();
  }

  write(...inputs: MemoryInput[]): Promise<Memory[]> {
    return this.corpus.write({ reader: AUTHOR, author: { kind: "principal", subject: "ann" } }, inputs);
  }

  /** Learns from a turn of a user, as the envelope of the conversation does. */
  async learn(
    turnId: string,
    operations: ExtractedMemories["operations"],
    more: Partial<ExtractedMemories> = {},
  ): Promise<MemoryOutcome[]> {
    const extractions = new Extractions(this.corpus);
    const conversationId = more.subject?.conversationId ?? "conv_1";
    const body = extractedSchema.parse({
      ...{ operationId: `op_${this.#operation++}`, scope: "user", used: [], operations },
      ...{ subject: { userId: "ann", conversationId }, source: { conversationId, turnId } },
      time: new Date(this.now).toISOString(),
      ...more,
    });
    const prepared = await extractions.prepare(body);
    return this.database.transaction(() => extractions.apply(body, prepared).outcomes);
  }

  eraseSources(erased: ErasedSources): void {
    this.database.transaction(() => void eraseSources(this.corpus, erased));
  }

  /** Returns the texts of the memories in these states, sorted. */
  async texts(...state: ("current" | "ended" | "archived")[]): Promise<string[]> {
    const { items } = await this.corpus.list(ALL, { state, limit: 200 });
    return items.map(({ content }) => content).sort();
  }

  async found(query: string, reader: MemoryReader = ALL): Promise<string[]> {
    const { matches } = await this.corpus.search(reader, { query, limit: 100 });
    return matches.map(({ memory }) => memory.content).sort();
  }

  async byText(part: string): Promise<Memory> {
    const { items } = await this.corpus.list(ALL, { state: ["current", "ended", "archived"], limit: 200 });
    const memory = items.find(({ content }) => content.includes(part));
    if (memory === undefined) throw new Error(`There is no memory with "${part}".`);
    return memory;
  }
}
