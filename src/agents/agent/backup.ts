/** Exports and imports an agent: its identity and its memories. Its conversations have their own exports. */
import { z } from "zod";
import { memoryLines, prepareLine } from "../../memory/corpus/backup.ts";
import { isoTimeSchema } from "../../memory/corpus/backup-schemas.ts";
import type { Corpus } from "../../memory/corpus/corpus.ts";
import type { Clock } from "../../ports/clock.ts";
import type { AgentIdentity, CreateAgent } from "../../protocol/agent-api.ts";
import type { ImportPart } from "../../protocol/data-api.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError } from "../../shared/errors.ts";
import { isJsonObject } from "../../shared/json.ts";
import { toIso } from "../../shared/time.ts";
import { validate } from "../../shared/validation.ts";
import {
  atLine,
  checkHeader,
  checkPart,
  headerOf,
  inLine,
  linesStream,
  parseLine,
} from "../base/backup/lines.ts";
import { deleteValues, dropTables } from "../base/removal/actor-tables.ts";
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

/** An import without progress for this many milliseconds is removed. */
const ABANDONED_MS = 3_600_000;
const IMPORT = "importing";

const timesSchema = z.object({ createdAt: isoTimeSchema, updatedAt: isoTimeSchema });

interface PendingImport {
  next: number;
  at: number;
  /** The transfer that has begun. */
  attempt?: string;
  identity: AgentIdentity | null;
}

export class AgentBackup {
  constructor(private readonly ports: AgentBackupPorts) {}

  /** Returns the lines of the export. Throws `NOT_FOUND`. */
  export(): ReadableStream<Uint8Array> {
    return linesStream(this.#lines(this.ports.store.identity()));
  }

  /** Imports a part of a file. Throws `CONFLICT`, and `INVALID_INPUT` for an invalid line. */
  async import(given: ImportPart): Promise<void> {
    const { database, keyValue, store, corpus, wakeup, clock, commit } = this.ports;
    const { from, lines, isLast, attempt } = checkPart(given);
    if (store.find() !== undefined || store.tombstone() !== undefined)
      throw new DramatisError("CONFLICT", "An agent with this id exists or was deleted. Choose another id.");
    if (from === 1) this.#clear();
    const read = (): PendingImport => {
      const begun = keyValue.get<PendingImport>(IMPORT) ?? {
        ...{ next: 1, at: clock.now(), identity: null },
        ...defined({ attempt }),
      };
      if (begun.attempt !== attempt)
        throw new DramatisError("CONFLICT", "Another import of this id has begun. Start the import again.");
      if (begun.next === from) return begun;
      const message = `The import continues with line ${begun.next}, not ${from}. Start the import again.`;
      throw new DramatisError("CONFLICT", message);
    };
    const pending = read();
    const parsed = lines.map((line, index) => atLine(from + index, () => parseLine(line)));
    const stores: [line: number, store: () => void][] = [];
    for (const [index, line] of parsed.entries()) {
      try {
        if (from + index === 1) checkHeader(line, "agent");
        else if (isJsonObject(line.identity)) pending.identity = await this.#identity(line.identity);
        else if (!("end" in line)) stores.push([from + index, await memoryStore(corpus, line)]);
      } catch (error) {
        throw inLine(from + index, error);
      }
    }
    const total = from + lines.length - 1;
    const { identity } = pending;
    if (isLast && (!isEnd(parsed.at(-1), total) || identity === null))
      throw new DramatisError(
        "INVALID_INPUT",
        `Line ${total + 1}: The file is incomplete. Export the agent again.`,
      );
    database.transaction(() => {
      // Another transfer may have begun while the lines were prepared.
      read();
      if (from === 1) void wakeup.arm(ABANDONED_MS);
      if (stores.length > 0) corpus.createTables();
      for (const [line, store] of stores) atLine(line, store);
      keyValue.put(IMPORT, { ...pending, next: total + 1 });
    });
    if (!isLast || identity === null) return;
    await commit(() => {
      store.create(identity);
      keyValue.delete(IMPORT);
      if (corpus.exists) void corpus.ports.noted();
    });
  }

  /** Removes an import without progress. Returns the milliseconds until the next call, or `null` if no import is open. */
  wake(): number | null {
    const pending = this.ports.keyValue.get<PendingImport>(IMPORT);
    if (pending === undefined) return null;
    const left = pending.at + ABANDONED_MS - this.ports.clock.now();
    if (left > 0) return left;
    this.#clear();
    return null;
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

  #clear(): void {
    const { database, keyValue, corpus } = this.ports;
    dropTables({ database, keyValue });
    deleteValues({ database, keyValue }, [...AGENT_KEYS, IMPORT]);
    corpus.forget();
  }
}

async function memoryStore(corpus: Corpus, line: Record<string, unknown>): Promise<() => void> {
  const store = await prepareLine(corpus, line);
  if (store !== undefined) return store;
  throw new DramatisError("INVALID_INPUT", "Unknown kind of line. Export the agent again.");
}

function isEnd(line: Record<string, unknown> | undefined, total: number): boolean {
  return isJsonObject(line?.end) && line.end.lines === total;
}
