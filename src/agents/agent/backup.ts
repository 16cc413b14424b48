/** Exports and imports an agent: its identity and its memories. Its conversations have their own exports. */
import { z } from "zod";
import { memoryLines, prepareLine } from "../../memory/corpus/backup.ts";
import { isoTimeSchema } from "../../memory/corpus/backup-schemas.ts";
import type { Corpus } from "../../memory/corpus/corpus.ts";
import type { Clock } from "../../ports/clock.ts";
import type { AgentIdentity, CreateAgent } from "../../protocol/agent-api.ts";
import type { ImportPart } from "../../protocol/data-api.ts";
import { invalid } from "../../shared/errors.ts";
import { isJsonObject } from "../../shared/json.ts";
import { toIso } from "../../shared/time.ts";
import { validate } from "../../shared/validation.ts";
import { headerOf, linesStream } from "../base/backup/lines.ts";
import { PartImport } from "../base/backup/part-import.ts";
import type { ActorStores } from "../base/storage/schema-upgrade.ts";
import type { Wakeup } from "../base/timers/wakeups.ts";
import { AGENT_KEYS, type AgentStore } from "./store.ts";

export interface AgentBackupPorts extends ActorStores {
  clock: Clock;
  store: AgentStore;
  corpus: Corpus;
  wakeup: Wakeup;
  /** Checks an identity from a file as a new identity of this actor. */
  check(given: Omit<CreateAgent, "id">): Promise<AgentIdentity>;
  commit(change: () => void): Promise<void>;
}

const timesSchema = z.object({ createdAt: isoTimeSchema, updatedAt: isoTimeSchema });

export class AgentBackup {
  readonly #import: PartImport<{ identity: AgentIdentity }>;

  constructor(private readonly ports: AgentBackupPorts) {
    const { store, corpus } = ports;
    this.#import = new PartImport("agent", {
      ...ports,
      keys: AGENT_KEYS,
      isTaken: () => store.find() !== undefined || store.tombstone() !== undefined,
      forget: () => corpus.forget(),
    });
  }

  /** Returns the lines of the export. Throws `NOT_FOUND`. */
  export(): ReadableStream<Uint8Array> {
    return linesStream(this.#lines(this.ports.store.identity()));
  }

  /** Imports a part of a file. Throws `CONFLICT`, and `INVALID_INPUT` for an invalid line. */
  async import(given: ImportPart): Promise<void> {
    const { store, corpus, commit } = this.ports;
    const identity = await this.#import.take(
      given,
      (line) => this.#prepare(line),
      (found) => found.identity ?? null,
    );
    if (identity === null) return;
    await commit(() => {
      store.create(identity);
      this.#import.end();
      if (corpus.exists) void corpus.ports.noted();
    });
  }

  /** Removes a stalled import. Returns the milliseconds until the next call; `null` without an open import. */
  wake(): number | null {
    return this.#import.wake();
  }

  async #prepare(line: Record<string, unknown>): Promise<(found: { identity?: AgentIdentity }) => void> {
    const { corpus } = this.ports;
    if (isJsonObject(line.identity)) {
      const identity = await this.#identity(line.identity);
      return (found) => {
        found.identity = identity;
      };
    }
    const store = await prepareLine(corpus, line);
    if (store === undefined) throw invalid("Unknown kind of line. Export the agent again.");
    return () => {
      corpus.createTables();
      store();
    };
  }

  async *#lines(identity: AgentIdentity): AsyncGenerator<unknown> {
    const { clock, corpus } = this.ports;
    const { id, tenant: _tenant, jurisdiction: _place, ...rest } = identity;
    yield headerOf("agent", id, toIso(clock.now()));
    yield { identity: rest };
    yield* memoryLines(corpus);
  }

  async #identity({ createdAt, updatedAt, ...given }: Record<string, unknown>): Promise<AgentIdentity> {
    // SAFETY: `check` validates it.
    const identity = await this.ports.check(given as unknown as Omit<CreateAgent, "id">);
    const times = validate(timesSchema, { createdAt, updatedAt }, "", "The identity");
    return { ...identity, ...times };
  }
}
