/** The actor of a conversation with its mailbox, in Node: it wakes when called, dies at a crossing, and wakes on the same database. */
import { adapterFor } from "../../../src/adapters/formats/lookup.ts";
import { Mailbox } from "../../../src/agents/base/mailbox/mailbox.ts";
import type { Wakeup } from "../../../src/agents/base/timers/wakeups.ts";
import { takeAgentCalls } from "../../../src/agents/conversation/agent-calls.ts";
import type { ConversationState } from "../../../src/agents/conversation/core/state.ts";
import { Opening } from "../../../src/agents/conversation/opening.ts";
import { outgoing } from "../../../src/agents/conversation/outgoing.ts";
import { ConversationRuntime } from "../../../src/agents/conversation/runtime.ts";
import { allowAll } from "../../../src/policy/gate.ts";
import type { Clock } from "../../../src/ports/clock.ts";
import { sleepWith } from "../../../src/ports/deadline.ts";
import type { KeyValue } from "../../../src/ports/key-value.ts";
import { NodeKeyValue } from "../../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../../src/ports/node/node-sql-database.ts";
import type { ActorDatabase } from "../../../src/ports/sql-database.ts";
import { AGENT_CANCEL } from "../../../src/protocol/agent-call.ts";
import type { Envelope } from "../../../src/protocol/envelope.ts";
import type { Answer, Attempt } from "../../../src/protocol/mailbox-api.ts";
import { defined } from "../../../src/shared/defined.ts";
import { TENANT, type TreeWorld } from "./world.ts";

class Death extends Error {
  override readonly name = "Death";
}

const JOB = "job:";
/** A delay before a wake-up that failed is repeated. */
const AGAIN_MS = 5_000;

/** One life of an actor. */
export interface Life {
  alive: boolean;
  runtime: ConversationRuntime;
  mailbox: Mailbox;
  opening: Opening;
}

export class TreeActor {
  readonly database = new NodeSqlDatabase();
  readonly keyValue = new NodeKeyValue(this.database);
  #life: Life | null = null;
  lives = 0;
  /** It has stopped a call, or waited too long for it. */
  hasGivenUp = false;

  constructor(
    readonly world: TreeWorld,
    readonly id: string,
  ) {}

  /** Returns the present life; begins one after a death. */
  awake(): Life {
    if (this.#life?.alive) return this.#life;
    const life = this.#begin();
    this.#life = life;
    this.lives += 1;
    if (life.runtime.exists) life.runtime.wake().catch((error: unknown) => this.world.swallow(error));
    return life;
  }

  async receive(envelope: Envelope, attempt: Attempt): Promise<Answer> {
    return this.awake().mailbox.receive(envelope, attempt);
  }

  /** The state in memory; `null` for an actor that is dead, or was not created. */
  get state(): ConversationState | null {
    return this.#life?.alive === true && this.#life.runtime.exists ? this.#life.runtime.state : null;
  }

  /** The earliest job that is armed. */
  get due(): number | undefined {
    const times = this.keyValue.list<number>(JOB, 10).map(([, time]) => time);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** Runs the jobs that are due, as the SDK's queue does. */
  fire(): void {
    for (const [key, time] of this.keyValue.list<number>(JOB, 10)) {
      if (time > this.world.clock.now()) continue;
      let again: number | null = AGAIN_MS;
      let life: Life | null = null;
      try {
        life = this.awake();
        again = handlers(life)[key.slice(JOB.length)]?.() ?? null;
      } catch (error) {
        this.world.swallow(error);
      }
      if (this.keyValue.get<number>(key) !== time) continue;
      if (life !== null && !life.alive) again = AGAIN_MS;
      if (again === null) this.keyValue.delete(key);
      else this.keyValue.put(key, this.world.clock.now() + Math.max(1, again));
    }
  }

  #begin(): Life {
    const { world, id } = this;
    const { ids } = world;
    const life = { alive: true } as Life;
    const clock = clockOf(life, world.clock);
    const cross = <Value>(operation: () => Value): Value => {
      if (!life.alive) throw new Death("dead");
      if (world.strikes()) {
        life.alive = false;
        throw new Death("struck");
      }
      return operation();
    };
    const keyValue = crossed(this.keyValue, cross);
    const database = this.#database(cross, () => life.alive);
    const wakeup = (name: string): Wakeup => ({
      arm: (milliseconds) => {
        const [known, wanted] = [keyValue.get<number>(JOB + name), clock.now() + milliseconds];
        if (known === undefined || known <= clock.now() || known > wanted) keyValue.put(JOB + name, wanted);
        return Promise.resolve();
      },
      disarm: () => {
        keyValue.delete(JOB + name);
      },
    });
    life.mailbox = new Mailbox({
      database,
      keyValue,
      clock,
      checkStorage: () => undefined,
      whenArmed: () => life.runtime.whenArmed(),
      self: () => ({ kind: "conversation", tenant: TENANT, id }),
      deliver: (envelope, attempt) => world.carry(life, envelope, attempt),
      arm: wakeup("mail").arm,
      directory: () => null,
    });
    const mail = outgoing(() => life.mailbox);
    life.runtime = new ConversationRuntime({
      database,
      keyValue,
      clock,
      ids,
      gateway: world.gatewayFor(life, id),
      adapters: adapterFor,
      executor: { run: () => Promise.reject(new Error("No agent has code.")) },
      gate: allowAll,
      armWakeup: wakeup("window").arm,
      ...defined({ calls: world.plan.calls }),
      ...mail,
      send: (envelope) => {
        if (envelope.type === AGENT_CANCEL) this.hasGivenUp = true;
        return mail.send(envelope);
      },
      announce: () => [],
      invite: (_record, agent) => world.invite(agent),
      publish: (frames) => world.ask(this, frames),
    });
    life.opening = new Opening({
      clock,
      ids,
      keyValue,
      transaction: (body) => database.transaction(body),
      runtime: life.runtime,
      agent: world.agent,
      location: () => ({}),
      send: mail.send,
      expel: () => undefined,
    });
    takeAgentCalls(life.mailbox, {
      opening: life.opening,
      begin: () => life.runtime.begin(),
      turn: (n) => life.runtime.turn(n),
    });
    return life;
  }

  /** Rolls back if the process died within the transaction. */
  #database(cross: <Value>(operation: () => Value) => Value, isAlive: () => boolean): ActorDatabase {
    const { database } = this;
    return {
      run: (statement, ...values) => cross(() => database.run(statement, ...values)),
      all: (statement, ...values) => cross(() => database.all(statement, ...values)),
      each: (statement, ...values) => cross(() => database.each(statement, ...values)),
      transaction: (body) =>
        cross(() =>
          database.transaction(() => {
            const result = body();
            if (!isAlive()) throw new Death("died in a transaction");
            return result;
          }),
        ),
      isInTransaction: () => database.isInTransaction(),
    };
  }
}

/** Timers end with the life that set them. */
function clockOf(life: Life, clock: Clock): Clock {
  const timer: Clock["timer"] = (milliseconds, callback) =>
    clock.timer(milliseconds, () => {
      if (!life.alive) return;
      try {
        callback();
      } catch (error) {
        // A crash that it struck; anything else is a defect.
        if (life.alive) throw error;
      }
    });
  return {
    now: () => clock.now(),
    timer,
    sleep: (milliseconds, signal) => sleepWith(timer, milliseconds, signal),
  };
}

function handlers({ runtime, mailbox }: Life): Record<string, () => number | null> {
  return {
    window: () => {
      runtime.reconcile();
      return runtime.exists ? runtime.dueIn : null;
    },
    mail: () => mailbox.wake(),
  };
}

function crossed(keyValue: KeyValue, cross: <Value>(operation: () => Value) => Value): KeyValue {
  return {
    get: (key) => cross(() => keyValue.get(key)),
    put: (key, value) => cross(() => keyValue.put(key, value)),
    delete: (key) => cross(() => keyValue.delete(key)),
    list: (prefix, limit) => cross(() => keyValue.list(prefix, limit)),
  };
}
