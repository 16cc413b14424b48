/** The stops, resumes, ends and changes of the order of one client. */
import { turnId } from "../../src/protocol/ids.ts";
import { DramatisError, unwrap } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { TENANT } from "./actor.ts";
import { type ClientSurroundings, RETRY_MS } from "./client.ts";
import { type ActRecord, nextStep } from "./history.ts";
import type { Life } from "./life.ts";
import type { ActPlan } from "./plan.ts";
import type { Requests } from "./requests.ts";
import { tagIn } from "./scope.ts";

/** Requests for one act, at most. */
const TRIES = 8;

/** The types of signals. */
const SIGNALS: Partial<Record<ActRecord["does"], string>> = {
  "stop turn": "conversation.cancel",
  stop: "conversation.cancel",
  resume: "conversation.resume",
};

interface Actor {
  /** `true` if its acts are signals, where there are some for them. */
  readonly sendsSignals: boolean;
  isGone(): boolean;
  /** Performs an act over an open connection. Returns `false` where there is none. */
  perform(act: ActRecord): boolean;
}

export class ClientActs {
  constructor(
    private readonly world: ClientSurroundings,
    private readonly requests: Requests,
    private readonly client: Actor,
  ) {}

  begin(): void {
    for (const act of this.world.plan.acts ?? []) void this.#run(act);
  }

  async #run(act: ActPlan): Promise<void> {
    const { clock, conversation, moments } = this.world;
    if (act.upon !== undefined) await moments.reached(conversation, act.upon, act.nth);
    await clock.sleep(act.pause);
    const id = act.does === "stop turn" ? this.#choose(act) : undefined;
    if (this.client.isGone() || (act.does === "stop turn" && id === undefined)) return;
    const again = act.again;
    void this.#perform(act, id);
    if (again === undefined) return;
    await clock.sleep(again);
    if (!this.client.isGone()) void this.#perform(act, id);
  }

  /** Returns the id of the turn to stop; `undefined` if there is none. */
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

  async #perform({ does, order }: ActPlan, id: string | undefined): Promise<void> {
    const { world } = this;
    const { conversation, client, clock, history, plan } = world;
    const record: ActRecord = {
      conversation,
      user: plan.user,
      does,
      ...(id === undefined ? {} : { turnId: id }),
      ...(does === "reorder" ? { order: order ?? "parallel" } : {}),
      ...(this.client.sendsSignals && SIGNALS[does] ? { id: `act ${client} ${history.acts.length}` } : {}),
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
      if (done === true) answered("done");
      if (record.answer === undefined) await clock.sleep(RETRY_MS);
    }
  }

  async #actOn({ stops, runtime, ingress }: Life, record: ActRecord): Promise<true> {
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
      default:
        return does satisfies never;
    }
  }
}
