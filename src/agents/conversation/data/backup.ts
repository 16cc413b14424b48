/**
 * Export and import of a conversation.
 *
 * BACKUP-3  An imported conversation has the same messages, turns, journal and sessions as the exported conversation, byte for byte. Only
 *           its id and its tenant differ. It has no running work, because only an idle conversation can be exported.
 * BACKUP-4  Keys of handles are not exported, because a handle is valid only for its own conversation.
 */
import { z } from "zod";
import { schemas } from "../../../memory/session/schemas.ts";
import type { SessionEvent } from "../../../memory/session/session-event.ts";
import type { KeyValue } from "../../../ports/key-value.ts";
import type { ImportEnd, ImportPart } from "../../../protocol/data-api.ts";
import { ENTRY_TYPES } from "../../../protocol/journal.ts";
import { participantSchema } from "../../../protocol/participants.ts";
import type { LostFiles } from "../../../protocol/saved-workspace.ts";
import { fromBase64, toBase64 } from "../../../shared/base64.ts";
import { defined } from "../../../shared/defined.ts";
import { conflict, hasCode, invalid } from "../../../shared/errors.ts";
import { agentIdSchema, definitionIdSchema } from "../../../shared/id-schemas.ts";
import { checkMayImport, mayAuthor, type Principal } from "../../../shared/principal.ts";
import { cut } from "../../../shared/text.ts";
import { toIso } from "../../../shared/time.ts";
import { validate } from "../../../shared/validation.ts";
import { headerOf, linesStream } from "../../base/backup/lines.ts";
import { PartImport } from "../../base/backup/part-import.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ActorContext } from "../context.ts";
import type { JournalCopies } from "../copies/journal-copies.ts";
import { runningExtractions } from "../core/hooks.ts";
import { sideCalls } from "../core/side-calls.ts";
import type { ConversationIdentity, ConversationState } from "../core/state.ts";
import type { TurnRow } from "../core/turn-events.ts";
import { checkKeeper } from "../inbound/access.ts";
import type { ConversationQueries } from "../reads/queries.ts";
import type { ConversationRuntime } from "../runtime.ts";
import { CONVERSATION_KEYS } from "../store/conversation-tables.ts";
import { eventLines, journalLines, PAGE, turnLines } from "./backup-lines.ts";
import { ConversationFiles, withLost } from "./conversation-files.ts";
import { readAll } from "./read-all.ts";

interface BackupContext
  extends Pick<
    ActorContext,
    "clock" | "database" | "keyValue" | "attachments" | "workspace" | "importedChain" | "owner" | "retained"
  > {
  runtime: ConversationRuntime;
  queries: ConversationQueries;
  listing: Pick<ActorContext["listing"], "announce" | "publish">;
  copies: Pick<JournalCopies, "note" | "publish">;
}

/** The prefixes of the keys that a file has. */
const EXPORTED_KEYS = ["answer:", "ask:", "late:", "seen:", "tool:", "uninvited:"] as const;

/** Returns the versions of an agent as the new conversation pins them. `path` is their place in the record. */
type CheckedChain = (chain: unknown, path: string) => Promise<unknown>;

/** The values that the lines of a file give. */
interface Found {
  record: Omit<ConversationIdentity, "id" | "tenant">;
  lost: LostFiles[];
}

/** Milliseconds since the epoch that a date can have. */
const time = z.int().min(0).max(8.64e15);
const recordSchema = z.strictObject({
  title: z.string().max(200).nullable(),
  automaticTitle: z.boolean().exactOptional(),
  projectId: definitionIdSchema,
  participants: z.array(participantSchema).max(200),
  agents: z
    .array(
      z.looseObject({
        id: agentIdSchema,
        chain: z.looseObject({ persona: z.looseObject({ definition: z.looseObject({}) }) }),
      }),
    )
    .min(1)
    .max(100),
  several: z.literal(true).exactOptional(),
  listed: z.literal(false).exactOptional(),
  call: z
    .looseObject({ operationId: z.string(), from: z.string(), readers: z.array(z.string()) })
    .exactOptional(),
  locationHint: z.string().exactOptional(),
  channel: z.string().max(40).exactOptional(),
  forkedFrom: z
    .strictObject({ conversationId: z.string(), turnId: z.string(), omitted: z.int().min(1).exactOptional() })
    .exactOptional(),
  createdAt: time,
});
const journalSchema = z.strictObject({
  seq: z.int().min(1),
  at: time,
  body: z.tuple([z.looseObject({})], z.tuple([z.enum(ENTRY_TYPES)], z.unknown())),
});
const turnSchema = z.looseObject({
  n: z.int().min(1),
  stem: z.string(),
  status: z.enum(["completed", "failed"]),
  agentId: agentIdSchema,
  caller: z.looseObject({ type: z.enum(["user", "agent", "workflow"]) }),
  createdAt: time,
  firstSeq: z.int().min(1),
  snapshotSeq: z.int().min(1),
  lateEntries: z
    .array(z.int().min(1))
    .refine((late) => late.every((seq, index) => seq > (late[index - 1] ?? 0)), "Must ascend.")
    .exactOptional(),
  events: z.strictObject({ from: z.int().min(0), count: z.int().min(1) }),
});
const keySchema = z.tuple([
  z
    .string()
    .refine((key) => EXPORTED_KEYS.some((prefix) => key.startsWith(prefix)), "Must be a key of an export."),
  z.json(),
]);
const attachmentSchema = z.strictObject({
  id: z.string(),
  mediaType: z.string(),
  name: z.string().exactOptional(),
  base64: z.base64(),
});

export class ConversationBackup {
  readonly #import: PartImport<Found>;
  readonly #files: ConversationFiles;

  constructor(
    private readonly context: BackupContext,
    wakeup: Wakeup,
  ) {
    const { clock, database, keyValue, runtime } = context;
    this.#files = new ConversationFiles(context);
    this.#import = new PartImport("conversation", {
      ...{ clock, database, keyValue, wakeup, keys: CONVERSATION_KEYS },
      isTaken: () => runtime.exists || runtime.store.tombstone() !== undefined,
      createTables: () => runtime.store.createTables(),
      removeOutside: async () => {
        await context.attachments?.deleteAll(context.owner());
        await this.#files.restore(null);
      },
    });
  }

  /** Returns the lines of the conversation. Throws `NOT_FOUND`, `FORBIDDEN`, `CONFLICT` while it has work. */
  export(principal: Principal): ReadableStream<Uint8Array> {
    const { state } = this.context.runtime;
    checkKeeper(state.record, principal);
    checkIdle(state);
    return linesStream(this.#lines(state, mayAuthor(principal)));
  }

  /** Takes a part of a file. Throws `FORBIDDEN`, `CONFLICT`, and `INVALID_INPUT` for an invalid line. */
  async import(principal: Principal, given: ImportPart): Promise<ImportEnd | null> {
    checkMayImport(principal.tenant === this.context.owner().tenant ? principal : { roles: [] });
    return this.#take(given, (chain, path) =>
      this.context.importedChain(this.context.owner().tenant, chain, path),
    );
  }

  /** Takes a part of a fork from a conversation of this tenant. The pinned versions stay as they are. */
  async takeFork(part: ImportPart): Promise<void> {
    try {
      await this.#take(part, async (chain) => chain);
    } catch (error) {
      // The lines are valid where they come from: the storage has failed.
      throw hasCode(error, "INVALID_INPUT") ? (error.cause ?? error) : error;
    }
  }

  async #take(given: ImportPart, chainOf: CheckedChain): Promise<ImportEnd | null> {
    const { runtime, copies, listing } = this.context;
    const end = await this.#import.take(
      given,
      (line) => this.#prepare(line, chainOf),
      ({ record, lost = [] }) => (record ? { lost, sent: [...this.#finish(record), copies.note()] } : null),
    );
    if (end === null) return null;
    await Promise.all(end.sent);
    void copies.publish();
    if (runtime.state.record.listed !== false) await listing.publish();
    return { notRestored: end.lost };
  }

  /** Removes a stalled import. Returns the milliseconds until the next call; `null` without an open import. */
  wake(): number | null {
    return this.#import.wake();
  }

  async *#lines(state: ConversationState, mayUseSensitive: boolean): AsyncGenerator<unknown> {
    const { runtime, keyValue, clock, attachments } = this.context;
    const { store } = runtime;
    const { seq: newest } = state;
    const { id, tenant, fingerprint: _fingerprint, agents, ...record } = state.record;
    yield headerOf("conversation", id, toIso(clock.now()));
    yield { record: { ...record, agents } };
    yield* this.#files.lines(state.record, mayUseSensitive);
    const cut = { seq: newest, turns: state.turns, sessions: state.sessions, active: [] };
    const check = () => this.#checkUnchanged(newest);
    yield* journalLines(store, cut, check);
    yield* turnLines(store, cut);
    for (const { id: sessionId } of agents) yield* eventLines(store, sessionId, cut, check);
    for (const prefix of EXPORTED_KEYS) for (const key of keysOf(keyValue, prefix)) yield { key };
    for (const attachment of (await attachments?.list({ tenant, conversationId: id })) ?? []) {
      const found = await attachments?.get({ tenant, conversationId: id }, attachment);
      if (!found) continue;
      const { mediaType, name, bytes } = found;
      yield { attachment: { id: attachment, mediaType, ...defined({ name }), base64: toBase64(bytes) } };
    }
    this.#checkUnchanged(newest);
  }

  /** Throws `CONFLICT` if the conversation changed during the export, because the file would mix two states. */
  #checkUnchanged(newest: number): void {
    const { runtime } = this.context;
    if (runtime.exists && runtime.state.seq === newest) return;
    throw conflict("The conversation has changed during its export. Export it again.", {
      retriable: true,
    });
  }

  /** Runs the external steps of a line: stores attachments, and checks versions in libraries (BACKUP-7). */
  async #prepare(
    line: Record<string, unknown>,
    chainOf: CheckedChain,
  ): Promise<(found: Partial<Found>) => void> {
    const [[kind = "", value] = []] = Object.entries(line);
    if (kind === "attachment") await this.#attach(value);
    if (kind === "workspace") {
      const lost = await this.#files.restore(value);
      return (found) => {
        found.lost = lost;
      };
    }
    if (kind === "file") {
      const lost = await this.#files.restoreFile(value);
      return (found) => {
        found.lost = withLost(found.lost ?? [], lost);
      };
    }
    const checked = kind === "record" ? await this.#checked(value, chainOf) : value;
    return (found) => this.#store(kind, checked, found);
  }

  async #attach(attachment: unknown): Promise<void> {
    const { base64, ...info } = validate(attachmentSchema, attachment, "/attachment", "The attachment");
    await this.context.attachments?.put(this.context.owner(), { ...info, bytes: fromBase64(base64) });
  }

  async #checked(value: unknown, chainOf: CheckedChain): Promise<unknown> {
    const { agents } = validate(recordSchema, value, "", "The record");
    const checked: unknown[] = [];
    for (const [index, { chain, ...agent }] of agents.entries())
      checked.push({
        ...agent,
        chain: await chainOf(chain, `/agents/${index}/chain`),
      });
    // The other members stay as they are, in their order.
    return Object.assign({}, value, { agents: checked });
  }

  #store(kind: string, value: unknown, found: Partial<Found>): void {
    const { keyValue, runtime } = this.context;
    const { store } = runtime;
    switch (kind) {
      case "record":
        // SAFETY: `#prepare` has checked what reads need, and what grants something; the rest is checked when the conversation is read at the end. Members keep their order.
        found.record = value as Found["record"];
        return;
      case "journal":
        store.journal.putRaw(validate(journalSchema, value, "", "The row of the journal"));
        return;
      case "turn":
        validate(turnSchema, value, "", "The turn");
        // SAFETY: as with the record.
        store.turns.putStored(value as TurnRow);
        return;
      case "event": {
        const [event] = validate(schemas.events, [value], "", "The event");
        validate(time, event?.timestamp, "/timestamp", "The event");
        // SAFETY: the schema is that of events.
        if (event !== undefined) store.events.append(event.sessionId, event.seq, [event as SessionEvent]);
        return;
      }
      case "key":
        keyValue.put(...validate(keySchema, value, "", "The key"));
        return;
      case "attachment":
        return;
      default:
        throw invalid(`Unknown kind of line "${cut(kind, 40)}". Export the conversation again.`);
    }
  }

  /** Makes the conversation visible, in the current transaction. Returns the wake-ups. */
  #finish(read: Found["record"]): readonly Promise<void>[] {
    const { runtime, queries, owner } = this.context;
    const { store } = runtime;
    const { tenant, conversationId: id } = owner();
    const record: ConversationIdentity = { ...read, id, tenant };
    store.adopt(record);
    store.inherit(this.context.clock.now());
    this.#import.end();
    try {
      const state = store.load();
      if (state === null || state.active.size > 0)
        throw new Error("The conversation has work, or no journal.");
      readAll(store, queries, state);
    } catch (cause) {
      const message =
        "The file is not a consistent export: its journal, turns and events do not match. Export the conversation again.";
      throw invalid(message, { cause });
    }
    const listed = record.listed === false ? [] : this.context.listing.announce(record);
    return [...listed, ...(this.context.retained?.arm(record) ?? [])];
  }
}

function* keysOf(keyValue: KeyValue, prefix: string): Generator<[string, unknown]> {
  for (let after: string | undefined; ; ) {
    const page: [string, unknown][] = keyValue.list(prefix, PAGE, after);
    yield* page;
    after = page.at(-1)?.[0];
    if (page.length < PAGE) return;
  }
}

/** Throws `CONFLICT` while the conversation has work. */
function checkIdle(state: ConversationState): void {
  const isBusy =
    state.active.size > 0 ||
    state.queue !== undefined ||
    sideCalls(state).length > 0 ||
    runningExtractions(state).length > 0;
  if (!isBusy) return;
  throw conflict("The conversation has work in progress. Export it after the work has ended.", {
    retriable: true,
  });
}
