/** The stops, resumes, ends, new titles, changes of the order and replaced turns of one client. */
import { turnId } from "../../src/protocol/ids.ts";
import type { StartedTurn } from "../../src/protocol/signals.ts";
import { DramatisError, unwrap } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { TENANT } from "./actor.ts";
import { type ClientSurroundings, RETRY_MS } from "./client.ts";
import { type ActRecord, nextStep, type SentMessage } from "./history.ts";
import type { Life } from "./life.ts";
import { tagOf, words } from "./model-script.ts";
import type { ActPlan } from "./plan.ts";
import { editIndex } from "./planned-calls.ts";
import type { Requests } from "./requests.ts";
import { numberOf, tagIn } from "./scope.ts";

/** Requests for one act, at most. */
const TRIES = 8;

/** The types of signals. */
const SIGNALS: Partial<Record<ActRecord["does"], string>> = {
  "stop turn": "conversation.cancel",
  stop: "conversation.cancel",
  resume: "conversation.resume",
};

interface Actor {
  /** `true` if it sends signals for the acts that have a signal. */
  readonly sendsSignals: boolean;
  isGone(): boolean;
  /** Performs an act over an open connection. Returns `false` if it has no connection. */
  perform(act: ActRecord): boolean;
}

export class ClientActs {
  constructor(
    private readonly world: ClientSurroundings,
    private readonly requests: Requests,
    private readonly client: Actor,
  ) {}

  begin(): void {
    for (const [index, act] of (this.world.plan.acts ?? []).entries()) void this.#run(act, index);
  }

  async #run(act: ActPlan, index: number): Promise<void> {
    const { clock, conversation, moments } = this.world;
    if (act.upon !== undefined) await moments.reached(conversation, act.upon, act.nth);
    await clock.sleep(act.pause);
    const replaces = act.does === "regenerate" || act.does === "edit";
    const id = replaces
      ? knownTurn(this.world, act.whose)
      : act.does === "stop turn"
        ? this.#choose(act)
        : undefined;
    if (this.client.isGone() || ((replaces || act.does === "stop turn") && id === undefined)) return;
    const again = act.again;
    const keyed = replaces ? this.#keyed(act, index) : {};
    void this.#perform(act, id, keyed);
    if (again === undefined) return;
    await clock.sleep(again);
    if (!this.client.isGone()) void this.#perform(act, id, keyed);
  }

  /** Returns the id of the turn to stop; `undefined` if no turn fits. */
  #choose({ whose = "own" }: ActPlan): string | undefined {
    const { actor, conversation, client, history } = this.world;
    const isOwn = (tag: string) => tag.startsWith(`#${conversation}.${client}.`);
    if (whose === "past") {
      return history.sent.find((sent) => sent.conversation === conversation && sent.turnId !== undefined)
        ?.turnId;
    }
    const active = [...(actor.living?.runtime.state.active.values() ?? [])];
    const turn = active.findLast(({ input }) => isOwn(tagIn(input)) === (whose === "own"));
    return turn && turnId(turn);
  }

  /** Returns the key of a replacement, and its edited message. */
  #keyed({ does, message }: ActPlan, index: number): Pick<ActRecord, "key" | "sent"> {
    const { conversation, client, clock, history, plan } = this.world;
    if (does !== "edit") return { key: `act ${client}.${index}` };
    const tag = tagOf(conversation, client, editIndex(plan, index));
    const sent: SentMessage = {
      ...{ conversation, client, user: plan.user, tag },
      content: `${tag} ${words(message?.length ?? 1, index)}`,
      sentAt: clock.elapsed,
      isAnswered: false,
    };
    history.sent.push(sent);
    return { key: tag, sent };
  }

  async #perform(
    { does, order }: ActPlan,
    id: string | undefined,
    keyed: Pick<ActRecord, "key" | "sent">,
  ): Promise<void> {
    const { world } = this;
    const { conversation, client, clock, history, plan } = world;
    const record: ActRecord = {
      conversation,
      user: plan.user,
      does,
      ...(id === undefined ? {} : { turnId: id }),
      ...(does === "reorder" ? { order: order ?? "parallel" } : {}),
      ...(this.client.sendsSignals && SIGNALS[does] ? { id: `act ${client} ${history.acts.length}` } : {}),
      ...keyed,
      reason: `Client ${client} wants it.`,
      step: nextStep(history),
    };
    history.acts.push(record);
    world.note(conversation, `client ${client}: ${does} ${id ?? record.order ?? ""}`);
    if (this.client.perform(record)) return;
    const answered = (what: string) => {
      record.answer ??= { what, step: nextStep(history) };
      world.note(conversation, `client ${client}: ${does} ${what}`);
    };
    for (let tries = 0; tries < TRIES && !this.client.isGone() && record.answer === undefined; tries++) {
      const done = await this.requests.send(
        (life) => this.#actOn(life, record),
        ({ code }) => answered(code),
      );
      if (done !== undefined) this.#learn(record, done);
      if (done !== undefined) answered("done");
      if (record.answer === undefined) await clock.sleep(RETRY_MS);
    }
  }

  /** Notes the turn in the response to a replacement. */
  #learn(record: ActRecord, done: true | StartedTurn): void {
    if (done === true) return;
    const { turnId: made } = done;
    record.made = made;
    if (record.sent === undefined) return;
    record.sent.turnId = made;
    record.sent.isAnswered = true;
    record.sent.acknowledgedAt ??= this.world.clock.elapsed;
  }

  async #actOn(life: Life, record: ActRecord): Promise<true | StartedTurn> {
    const { stops, runtime, ingress, queries, replacing } = life;
    const { does, turnId: id = "", order = "parallel", user, reason } = record;
    const principal: Principal = { subject: user, tenant: TENANT, roles: ["member"] };
    if (record.id !== undefined) {
      const data = { reason, ...(record.turnId === undefined ? {} : { turnId: record.turnId }) };
      const [result] = await ingress.ingest(principal, { id: record.id, type: SIGNALS[does], data });
      if (result !== undefined) unwrap(result);
      return true;
    }
    switch (does) {
      case "stop turn": {
        const { status, error } = await stops.cancelTurn(principal, id, { reason });
        if (status === "failed" && error?.code === "CANCELLED") return true;
        throw new DramatisError("INTERNAL_ERROR", `A stop was answered with a turn that has ${status}.`);
      }
      case "stop":
        await stops.cancel(principal, { reason });
        return true;
      case "resume":
        await stops.resume(principal, { reason });
        return true;
      case "end":
        await stops.complete(principal, { reason });
        return true;
      case "reorder":
        await runtime.changes.update({ caller: { type: "user", userId: user }, order });
        return true;
      case "rename":
        await runtime.changes.update({ caller: { type: "user", userId: user }, title: `Of ${user}` });
        return true;
      case "regenerate":
      case "edit": {
        const { key: idempotencyKey = "", sent } = record;
        const old = queries.turn(runtime.state, id);
        if (old.status !== "active" && old.replacedBy === undefined) record.before = old;
        if (sent === undefined) return replacing.regenerate(principal, id, { idempotencyKey });
        return replacing.edit(principal, id, { content: sent.content, idempotencyKey });
      }
      default:
        return does satisfies never;
    }
  }
}

/** Returns the id of a turn of the client's user that the client knows: the newest or the oldest. */
export function knownTurn(
  { conversation, history, plan }: ClientSurroundings,
  whose: ActPlan["whose"],
): string | undefined {
  const isOwn = (one: { conversation: number; user: string }) =>
    one.conversation === conversation && one.user === plan.user;
  const started = history.sent.flatMap((sent) => (isOwn(sent) ? (sent.turnId ?? []) : []));
  const made = history.acts.flatMap((act) => (isOwn(act) ? (act.made ?? []) : []));
  const known = [...started, ...made].sort((one, other) => numberOf(one) - numberOf(other));
  return whose === "past" ? known[0] : known.at(-1);
}
