/**
 * The erasure of a conversation's entry, and the job that removes its data elsewhere.
 *
 * ERASE-5  Principals that may delete a conversation may erase its entries, also after its end. The erasure fails with a retriable
 *          `CONFLICT` while the entry's turn is active, its memories are being extracted, or a summary in progress may contain it.
 * ERASE-6  An erasure is durable when it is acknowledged, and idempotent.
 * ERASE-7  Attachments that only the entry names are deleted, with the stored results of an erased call, and the conversations and the workspaces
 *          of runs that an erased call has begun. A title from the erased message is removed, and a title by a model that describes a changed turn.
 * ERASE-8  The agents of the conversation delete memories that have only this entry as their source.
 */
import { attachmentIdOf } from "../../../attachments/attachment.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import {
  calledConversationId,
  calledRunId,
  messageId,
  operationId,
  parseItemId,
  resolveId,
  resultAttachmentId,
  turnId,
} from "../../../protocol/ids.ts";
import { MEMORY_SOURCES_ERASED } from "../../../protocol/memory.ts";
import { workspaceOf } from "../../../protocol/workspace.ts";
import { type Content, plainText } from "../../../shared/content.ts";
import { conflict, notFound, unwrap } from "../../../shared/errors.ts";
import { type Jurisdiction, jurisdictionOf } from "../../../shared/location.ts";
import type { Principal } from "../../../shared/principal.ts";
import { newOperationId } from "../../base/mailbox/operation-id.ts";
import { Removal, type RemovalStep } from "../../base/removal/removal.ts";
import { removeWorkspace } from "../../base/removal/removed-workspace.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ActorContext } from "../context.ts";
import type { JournalCopies } from "../copies/journal-copies.ts";
import type { Erasure } from "../core/erase-entry.ts";
import { isErased, withoutItem, withoutQuotes } from "../core/erasure.ts";
import { extractionOf } from "../core/hooks.ts";
import type { Operation } from "../core/operation.ts";
import { sideCalls } from "../core/side-calls.ts";
import { type ConversationState, workspaceIn } from "../core/state.ts";
import { isFrom } from "../core/titles.ts";
import type { Turn } from "../core/turn.ts";
import { checkKeeper } from "../inbound/access.ts";
import type { ConversationRuntime } from "../runtime.ts";
import { quotingTurns, TO_REMOVE } from "../store/entry-eraser.ts";

interface ErasingContext
  extends Pick<
    ActorContext,
    "clock" | "database" | "keyValue" | "attachments" | "listing" | "conversation" | "workspace"
  > {
  runtime: ConversationRuntime;
  copies: Pick<JournalCopies, "note" | "publish">;
}

/** Removals in one step of the job. */
const BATCH = 50;

export class Erasing {
  readonly #removal: Removal;

  constructor(
    private readonly context: ErasingContext,
    wakeup: Wakeup,
  ) {
    this.#removal = new Removal({
      clock: context.clock,
      wakeup,
      left: () => this.#left(),
      done: (name) => void context.keyValue.delete(name),
      steps: () => this.#left().map((name) => this.#step(name)),
    });
  }

  /** As `Removal.wake`. */
  wake(): number | null {
    return this.#removal.wake();
  }

  /** Erases the entry with an id: of a message, or of an operation. Throws `NOT_FOUND`, `FORBIDDEN`, `CONFLICT` (ERASE-5). */
  async erase(principal: Principal, id: string): Promise<void> {
    const { runtime } = this.context;
    const { state } = runtime;
    checkKeeper(state.record, principal);
    const { turn, item } = this.#entry(id);
    if (isErased(turn, item)) return;
    const copies = this.#copies(turn, item);
    for (const one of [turn, ...copies]) checkFree(state, one);
    // The named entry comes last, so a repeated erasure erases the copies that an interruption left.
    for (const { n } of [...copies, turn]) {
      const version = runtime.store.turn(n);
      if (version !== null && !isErased(version, item)) await this.#eraseItem(principal, version, item);
    }
    void this.#removal.run();
  }

  async #eraseItem(principal: Principal, turn: Turn, item: number): Promise<void> {
    const { runtime } = this.context;
    const { state } = runtime;
    const erasure = this.#erasure(state, turn, item);
    const armed = [this.#removal.note(), this.context.copies.note()];
    const isRenamed = erasure.title === true && state.record.listed !== false;
    if (isRenamed) armed.push(this.context.listing.note());
    const allArmed = Promise.all(armed);
    // If the erasure fails, its own error is thrown.
    allArmed.catch(() => undefined);
    await runtime.changes.erase({
      type: "conversation.entry.erase",
      caller: { type: "user", userId: principal.subject },
      erasure,
      envelopes: this.#words(state, turn, item),
    });
    await allArmed;
    if (isRenamed) void this.context.listing.publish();
    void this.context.copies.publish();
  }

  /** Returns the other versions of a turn that have a copy of an item (REPLACE-5). Copies have equal items. */
  #copies(turn: Turn, item: number): Turn[] {
    const found: Turn[] = [];
    const follow = (next: (of: Turn) => string | undefined) => {
      for (let id = next(turn); id !== undefined; ) {
        const other = this.context.runtime.turn(parseItemId(id)?.n ?? 0);
        if (other === null) return;
        // An interrupted erasure may have erased a version between two copies.
        if (hasCopy(turn, other, item)) found.push(other);
        else if (!isErased(other, item)) return;
        id = next(other);
      }
    };
    follow(({ regenerates }) => regenerates);
    follow(({ replacedBy }) => replacedBy);
    return found;
  }

  /** As `RuntimeContext.isErased`. Each result that arrives or is stored after the erasure starts the removal again. */
  async isErased(id: string): Promise<boolean> {
    const { runtime, keyValue } = this.context;
    const found = resolveId(id, "op", runtime.turn);
    const operation = found?.turn.operations.find(({ item }) => item === found.item);
    if (found === null || operation === undefined || !isErased(found.turn, found.item)) return false;
    for (const result of resultsOf(found.turn, operation)) keyValue.put(TO_REMOVE.attachment + result, 1);
    keyValue.put(TO_REMOVE.call + id, 1);
    await this.#removal.note();
    void this.#removal.run();
    return true;
  }

  /** Returns the item that an id names. Throws `NOT_FOUND`. */
  #entry(id: string): { turn: Turn; item: number } {
    const address = parseItemId(id);
    const turn = address === null || address.prefix === "turn" ? null : this.context.runtime.turn(address.n);
    const item = address?.item ?? 0;
    const isThere =
      turn?.stem === address?.stem &&
      (address?.prefix === "op"
        ? turn?.operations.some((operation) => operation.item === item)
        : item === 0 || turn?.replies.some((reply) => reply.item === item));
    if (turn !== null && isThere) return { turn, item };
    throw notFound("Entry not found. Give the id of a message or of an operation of this conversation.");
  }

  #erasure({ record }: ConversationState, turn: Turn, item: number): Erasure {
    const { database, runtime } = this.context;
    const changed = new Map([[turn.n, withoutItem(turn, item)]]);
    const queue = [{ turn, item }];
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const id = messageId(next.turn, next.item);
      for (const n of quotingTurns(database, next.turn.n, id)) {
        const before = changed.get(n) ?? runtime.store.turn(n);
        if (before === null) continue;
        const after = withoutQuotes(before, next);
        if (isErased(after, 0) && !isErased(before, 0)) queue.push({ turn: before, item: 0 });
        changed.set(n, after);
      }
    }
    const operation = turn.operations.find((one) => one.item === item);
    const text =
      item === 0 ? plainText(turn.input) : (turn.replies.find((one) => one.item === item)?.text ?? "");
    const ids = new Set<unknown>([...changed.values()].map(turnId));
    const described = runtime.store.journal.titlesByModels().filter(({ by }) => ids.has(by.turnId));
    const sources = [text, ...described.map(({ title }) => title)];
    const isErasedTitle = (title: string) => sources.some((source) => isFrom(title, source));
    return {
      turn: turn.n,
      item,
      turns: [...changed.values()],
      ...(record.title !== null && isErasedTitle(record.title) ? { title: true } : {}),
      formerTitles: [...runtime.store.journal.titles()].filter(isErasedTitle),
      attachments: item === 0 ? attachmentsOf(turn.input) : [],
      results: operation === undefined ? [] : resultsOf(turn, operation),
      conversations:
        operation?.agent === undefined || this.#isInherited(turn) ? [] : openedBy(turn, operation),
      runs:
        operation?.target !== "workflow" || this.#isInherited(turn)
          ? []
          : runsOf(turn, operation, jurisdictionOf(record.id)),
    };
  }

  /** Reports whether a fork or an import brought a turn (FORK-6). */
  #isInherited({ firstSeq }: Turn): boolean {
    return firstSeq <= this.context.runtime.store.inherited.seq;
  }

  #words({ record: { id, tenant, agents } }: ConversationState, turn: Turn, item: number): NewEnvelope[] {
    const entries = this.context.runtime.store.journal.entriesOf(turn.firstSeq, turn.n, item);
    const body = { conversationId: id, turns: [{ turnId: turnId(turn), entries }] };
    return agents.map((agent) => ({
      operationId: newOperationId(),
      to: { kind: "agent", tenant, id: agent.id },
      type: MEMORY_SOURCES_ERASED,
      body,
    }));
  }

  #left(): string[] {
    const { keyValue } = this.context;
    return Object.values(TO_REMOVE).flatMap((prefix) => keyValue.list(prefix, BATCH).map(([key]) => key));
  }

  #step(name: string): RemovalStep {
    const { runtime, attachments, conversation, workspace } = this.context;
    return {
      name,
      run: async () => {
        if (!runtime.exists) return undefined;
        const { record } = runtime.state;
        const { id: conversationId, tenant } = record;
        if (name.startsWith(TO_REMOVE.attachment)) {
          await attachments?.delete({ tenant, conversationId }, name.slice(TO_REMOVE.attachment.length));
        } else if (name.startsWith(TO_REMOVE.call)) {
          const used = await workspace?.(tenant, workspaceIn(record).id);
          if (used !== undefined) unwrap(await used.forget(name.slice(TO_REMOVE.call.length)));
        } else if (name.startsWith(TO_REMOVE.run)) {
          const { id } = workspaceOf({ runId: name.slice(TO_REMOVE.run.length) });
          const used = await workspace?.(tenant, id);
          if (used !== undefined) await removeWorkspace(used);
        } else {
          const opened = await conversation(tenant, name.slice(TO_REMOVE.conversation.length));
          const removed = await opened.remove({ subject: "system", tenant, roles: ["admin"] });
          if (!removed.ok && removed.error.code !== "NOT_FOUND") unwrap(removed);
        }
        return undefined;
      },
    };
  }
}

/** Reports whether another version of a turn has a copy of an item. */
function hasCopy(turn: Turn, other: Turn, item: number): boolean {
  if (item === 0) return JSON.stringify(turn.input) === JSON.stringify(other.input);
  const contentOf = ({ operations, replies }: Turn) =>
    operations.find((one) => one.item === item)?.input ?? replies.find((one) => one.item === item)?.text;
  const content = contentOf(turn);
  return content !== undefined && JSON.stringify(content) === JSON.stringify(contentOf(other));
}

/** Throws `CONFLICT` if running work has the content of the turn. */
function checkFree(state: ConversationState, turn: Turn): void {
  const busy =
    turn.status === "active"
      ? "Its turn is not over."
      : extractionOf(state, turn.n) !== undefined
        ? "Memories of its turn are being extracted."
        : sideCalls(state).some(({ title }) => !title)
          ? "The conversation is being summarised."
          : null;
  if (busy === null) return;
  throw conflict(`The entry cannot be erased yet. ${busy} Try again in a moment.`, {
    retriable: true,
  });
}

function attachmentsOf(content: Content): string[] {
  if (typeof content === "string") return [];
  return content.flatMap((part) => ("url" in part ? (attachmentIdOf(part.url) ?? []) : []));
}

function openedBy(turn: Turn, { item, attempt, agent }: Turn["operations"][number]): string[] {
  if (agent?.mode !== "delegate") return [];
  const id = operationId(turn, item);
  return Array.from({ length: attempt }, (_, index) =>
    calledConversationId(id, index + 1, agent.jurisdiction),
  );
}

function runsOf(turn: Turn, { item, attempt }: Operation, jurisdiction: Jurisdiction | undefined): string[] {
  const id = operationId(turn, item);
  return Array.from({ length: attempt }, (_, before) => calledRunId(id, before + 1, jurisdiction));
}

/** Returns the ids of the stored results of a call's attempts. The result of a call may name any attachment. */
function resultsOf(turn: Turn, { item, attempt }: Operation): string[] {
  const id = operationId(turn, item);
  return Array.from({ length: attempt }, (_, before) => resultAttachmentId(id, before + 1));
}
