/**
 * The fork of a conversation: a new conversation with the history up to the end of a turn.
 *
 * FORK-1  A fork has the messages, turns, journal entries and session events of the conversation as of the commit that ended the turn, with
 *         equal ids. Turns that were active then are left out. The journal of the fork ends with `conversation.forked`.
 * FORK-2  The fork has a title from the current title (TITLE-3), and the current participants, settings and pinned versions. Nothing of its budget is spent. It has no idempotency
 *         keys, no tool state and no memories of its own. If a model wrote the title after the commit, the journal of the fork names the turn that
 *         the title describes, so an erasure in this turn removes the title (TITLE-2). A fork without this turn has no title.
 * FORK-3  The fork has copies of the attachments that its content names. Neither conversation depends on the other afterwards.
 * FORK-4  The fork becomes visible after its last line. An erasure or the removal of a person during the copy fails the fork with a
 *         retriable `CONFLICT`. A fork that fails or stops leaves no attachments.
 * FORK-5  A repeated request with the same key returns the same fork. With another turn it gets `IDEMPOTENCY_CONFLICT`.
 * FORK-6  The conversations that calls of agents opened before the fork belong to the forked conversation. Deletions and erasures in the
 *         fork keep them. The same holds for an imported conversation.
 */
import { EventAction, type SessionEvent } from "../../../memory/session/session-event.ts";
import { NOTHING } from "../../../model/spending.ts";
import { NO_USAGE } from "../../../model/usage.ts";
import type { ConversationApi } from "../../../protocol/conversation-api.ts";
import { type ForkConversation, forkConversation } from "../../../protocol/conversation-requests.ts";
import type { ConversationView } from "../../../protocol/conversation-schemas.ts";
import type { ImportPart } from "../../../protocol/data-api.ts";
import { turnId as idOf, parseItemId } from "../../../protocol/ids.ts";
import { sendParts } from "../../../protocol/import-parts.ts";
import { defined } from "../../../shared/defined.ts";
import { conflict, DramatisError, notFound, unwrap } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { toIso } from "../../../shared/time.ts";
import { validateRequest } from "../../../shared/validation.ts";
import { headerOf } from "../../base/backup/lines.ts";
import { newOperationId } from "../../base/mailbox/operation-id.ts";
import type { ActorContext } from "../context.ts";
import { checkOpen } from "../core/life.ts";
import type { ConversationState, ForkOrigin } from "../core/state.ts";
import { forkTitle } from "../core/titles.ts";
import type { Turn } from "../core/turn.ts";
import type { ConversationAccess } from "../inbound/access.ts";
import type { ConversationQueries } from "../reads/queries.ts";
import type { ConversationRuntime } from "../runtime.ts";
import { packHead } from "../store/journal.ts";
import type { StoredTurn } from "../store/turn-reading.ts";
import { type Cut, eventLines, journalLines, PAGE, turnLines } from "./backup-lines.ts";

interface ForkContext extends Pick<ActorContext, "clock" | "attachments" | "conversation"> {
  access: ConversationAccess;
  runtime: ConversationRuntime;
  queries: ConversationQueries;
}

/** Ids of attachments in a line. Results that are stored apart are named by their ids. */
const ATTACHMENTS = /att_[0-9A-HJKMNP-TV-Z]{26}/g;

/** The lines of the header and of the record. */
const HEAD_LINES = 2;
/** Entries during the copy that the fork would not follow. */
const BREAKS: ReadonlySet<string> = new Set(["entry.erased", "participant.left", "conversation.readers"]);

interface ForkTarget {
  target: Pick<ConversationApi, "takeFork" | "remove">;
  conversationId: string;
}

export class ConversationFork {
  constructor(private readonly context: ForkContext) {}

  /**
   * Forks the conversation into the actor of a new id. Throws `NOT_FOUND`, `FORBIDDEN`, `CONVERSATION_CLOSED`, and `CONFLICT` if the turn is
   * not over.
   */
  async fork(principal: Principal, input: ForkConversation): Promise<ConversationView> {
    const { access, conversation } = this.context;
    access.checkSpeaker(principal);
    const { id, turnId } = validateRequest(forkConversation, input);
    const { state } = access;
    const { tenant } = state.record;
    const target = await conversation(tenant, id);
    const known = await target.view(principal);
    if (known.ok) return sameFork(known.value, state.record.id, turnId);
    if (state.status === "failed") checkOpen(state);
    const turn = turnId === undefined ? this.#newest(state) : this.context.queries.requireTurn(state, turnId);
    const cut = this.#cutAfter(turn);
    try {
      await this.#send(state, cut, turn, { target, conversationId: id });
    } catch (error) {
      // An equal request may have been faster.
      const other = await target.view(principal);
      if (other.ok) return sameFork(other.value, state.record.id, turnId);
      throw error;
    }
    return unwrap(await target.view(principal));
  }

  /** Sends the fork to its actor, which removes it if the last part does not come. */
  async #send(
    state: ConversationState,
    cut: Cut,
    turn: Turn,
    { target, conversationId }: ForkTarget,
  ): Promise<void> {
    const { tenant } = state.record;
    const named = new Set<string>();
    const take = async (part: ImportPart) => unwrap(await target.takeFork(part));
    await sendParts(this.#lines(state, cut, turn, named), newOperationId(), async (part) => {
      if (!part.isLast) return take(part);
      // The actor accepts the fork before it gets attachments. It removes them if the fork stays incomplete.
      const { from, lines } = part;
      const first = from === 1 ? HEAD_LINES : 0;
      if (first > 0) await take({ ...part, lines: lines.slice(0, first), isLast: false });
      await this.#copyAttachments(tenant, conversationId, named);
      this.#checkUnchanged(state.seq);
      return take({ ...part, from: from + first, lines: lines.slice(first) });
    });
    try {
      this.#checkUnchanged(state.seq);
    } catch (cause) {
      unwrap(await target.remove({ subject: "system", tenant, roles: ["admin"] }));
      throw conflict("The conversation changed while it was forked. Fork it again, with another key.", {
        cause,
      });
    }
  }

  #newest(state: ConversationState): Turn {
    const { runtime } = this.context;
    const turn = runtime.turn(runtime.store.journal.newestOf("turn.completed")?.turn ?? 0);
    if (turn !== null) return turn;
    throw conflict(
      `The conversation "${state.record.id}" has no completed turn. Fork it after a turn has completed.`,
    );
  }

  #cutAfter(turn: Turn): Cut {
    const ended =
      turn.status === "active" ? null : this.context.runtime.store.journal.endOf(turn.firstSeq, turn.n);
    if (ended !== null) return ended;
    throw conflict(`The turn "${idOf(turn)}" is not over. Fork at an ended turn, or stop this turn first.`, {
      retriable: true,
    });
  }

  #isWithin(cut: Cut, id: string): boolean {
    const { queries, access, runtime } = this.context;
    const { firstSeq, n } = queries.requireTurn(access.state, id);
    return (runtime.store.journal.endOf(firstSeq, n)?.seq ?? cut.seq + 1) <= cut.seq;
  }

  async *#lines(state: ConversationState, cut: Cut, turn: Turn, named: Set<string>): AsyncGenerator<string> {
    const { clock, runtime } = this.context;
    const { store } = runtime;
    const { id: source, tenant: _tenant, ...own } = state.record;
    const { fingerprint: _fingerprint, automaticTitle: _automatic, channel: _channel, ...record } = own;
    const now = clock.now();
    const forkedFrom: ForkOrigin = {
      conversationId: source,
      turnId: idOf(turn),
      ...(cut.active.length === 0 ? {} : { omitted: cut.active.length }),
    };
    const { orchestration, budget, order } = state;
    const { turns, sessions } = cut;
    const settings = {
      status: "active",
      gate: "open",
      order,
      ...defined({ orchestration, budget }),
    } as const;
    const unspent = { usage: NO_USAGE, spent: NOTHING, compactions: {} };
    const head = packHead({ ...settings, ...unspent, turns, sessions, active: [] });
    const { omitted: _omitted, ...origin } = forkedFrom;
    const check = () => this.#checkExists();
    let count = 0;
    const line = (value: object): string => {
      count += 1;
      const text = JSON.stringify(value);
      for (const [id] of text.matchAll(ATTACHMENTS)) named.add(id);
      return text;
    };
    yield line(headerOf("conversation", source, toIso(now)));
    const written = store.journal
      .titlesByModels()
      .findLast((one) => one.seq > cut.seq && one.title === record.title);
    const isWithin = written === undefined || this.#isWithin(cut, written.turnId);
    const title = isWithin ? forkTitle(record.title) : null;
    yield line({ record: { ...record, title, forkedFrom, createdAt: now } });
    for (const { journal } of journalLines(store, cut, check))
      yield line({ journal: { ...journal, body: withoutTurns(journal.body, cut.active) } });
    const titled =
      written === undefined || title === null
        ? []
        : [["conversation.updated", null, null, { title, by: written.by, automatic: true }]];
    const forked = ["conversation.forked", null, null, origin];
    yield line({ journal: { seq: cut.seq + 1, at: now, body: [head, ...titled, forked] } });
    for (const { turn: over } of turnLines(store, cut)) yield line({ turn: withoutLater(over, cut) });
    for (const { id } of record.agents)
      for (const { event } of eventLines(store, id, cut, check))
        yield line({ event: withoutOmitted(event, cut) });
    yield line({ end: { lines: count + 1 } });
  }

  /** Copies the attachments that lines name. Other text may look like the id of an attachment. */
  async #copyAttachments(tenant: string, conversationId: string, named: ReadonlySet<string>): Promise<void> {
    const { attachments, runtime } = this.context;
    if (attachments === null || named.size === 0) return;
    const source = { tenant, conversationId: runtime.state.record.id };
    for (const id of await attachments.list(source)) {
      const found = named.has(id) ? await attachments.get(source, id) : null;
      if (found) await attachments.put({ tenant, conversationId }, found);
    }
  }

  #checkExists(): void {
    if (this.context.runtime.exists) return;
    throw notFound("The conversation was deleted while it was forked.");
  }

  /** Throws `CONFLICT` if an entry was erased, or a person left, since entry `seq` (FORK-4). */
  #checkUnchanged(seq: number): void {
    this.#checkExists();
    const { state, store } = this.context.runtime;
    for (let next = seq + 1; next <= state.seq; ) {
      const rows = store.journal.forward(next, PAGE);
      if (rows.some(({ entries }) => entries.some(({ type }) => BREAKS.has(type))))
        throw conflict(
          "An entry was erased or a participant left while the conversation was forked. Fork it again.",
          { retriable: true },
        );
      const last = rows.at(-1);
      if (last === undefined) return;
      next = last.seq + last.entries.length;
    }
  }
}

/**
 * Returns a turn without the numbers of entries after the cut, and without the link to a turn that is left out: a fork at a replaced turn
 * continues that turn.
 */
function withoutLater(turn: StoredTurn, { turns, active, seq }: Cut): object {
  const { replacedBy, lateEntries, ...others } = turn;
  const n = replacedBy === undefined ? 0 : (parseItemId(replacedBy)?.n ?? 0);
  const kept = lateEntries?.filter((entry) => entry <= seq);
  return {
    ...others,
    ...(n > turns || active.includes(n) ? {} : defined({ replacedBy })),
    ...(kept?.length ? { lateEntries: kept } : {}),
  };
}

/** Returns an event. The supersession of a turn that is left out hides no turn. */
function withoutOmitted(event: SessionEvent, { active }: Cut): SessionEvent {
  if (event.action !== EventAction.SUPERSESSION) return event;
  const n = parseItemId(event.id.slice("supersession_".length))?.n ?? 0;
  return active.includes(n) ? { ...event, content: "", metadata: { origin: "platform" } } : event;
}

/** Returns a stored row without the data of the entries of turns that are left out. */
function withoutTurns([head, ...entries]: unknown[], turns: readonly number[]): unknown[] {
  return [
    head,
    ...entries.map((entry) => {
      // SAFETY: only the journal writes its rows.
      const [type, turn, item] = entry as [string, (number | null)?, (number | null)?];
      return typeof turn === "number" && turns.includes(turn) ? [type, turn, item ?? null] : entry;
    }),
  ];
}

/** Throws `IDEMPOTENCY_CONFLICT` unless a conversation is the fork that a request names. */
function sameFork(known: ConversationView, source: string, turnId: string | undefined): ConversationView {
  const { forkedFrom } = known;
  const isSame = forkedFrom?.conversationId === source && (turnId ?? forkedFrom.turnId) === forkedFrom.turnId;
  if (isSame) return known;
  throw new DramatisError(
    "IDEMPOTENCY_CONFLICT",
    "This idempotency key was used with another turn. Use a new key for a new fork.",
  );
}
