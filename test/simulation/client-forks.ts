/** The forks of one client: it requests them, says something in them, and erases an entry of them. */
import { isErased } from "../../src/agents/conversation/core/erasure.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import { textOf } from "../../src/client/state.ts";
import { messageId, operationId } from "../../src/protocol/ids.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { TENANT } from "./actor.ts";
import { type ClientSurroundings, RETRY_MS } from "./client.ts";
import { knownTurn } from "./client-acts.ts";
import { type Erased, type ForkRecord, nextStep, type SentMessage } from "./history.ts";
import type { Life } from "./life.ts";
import { tagOf, words } from "./model-script.ts";
import type { MessagePlan } from "./plan.ts";
import { type PlannedFork, plannedForks } from "./planned-forks.ts";
import { Requests } from "./requests.ts";
import { conversationId } from "./scope.ts";

/** Requests for one result, at most. */
const TRIES = 12;

export class ClientForks {
  constructor(
    private readonly world: ClientSurroundings,
    private readonly requests: Requests,
    private readonly isGone: () => boolean,
  ) {}

  begin(): void {
    const { conversation, client, history } = this.world;
    for (const planned of plannedForks(history.plan))
      if (planned.of === conversation && planned.client === client) void this.#run(planned);
  }

  async #run({ number, fork }: PlannedFork): Promise<void> {
    const { clock, conversation, history, moments } = this.world;
    const { upon, nth, pause, whose, again, message, erases } = fork;
    if (upon !== undefined) await moments.reached(conversation, upon, nth);
    await clock.sleep(pause);
    const turnId = knownTurn(this.world, whose);
    if (this.isGone() || turnId === undefined) return;
    const record: ForkRecord = {
      ...{ conversation: number, of: conversation, turnId },
      ...{ requests: 0, step: nextStep(history), answers: [], left: [] },
    };
    history.forks.push(record);
    const first = this.#ask(record);
    if (again !== undefined) {
      await clock.sleep(again);
      if (!this.isGone()) void this.#ask(record);
    }
    if (!(await first)) return;
    const place = new Requests({ ...this.world, actor: this.world.fork(number), conversation: number });
    if (message !== undefined) await this.#say(message, number, place);
    if (erases !== undefined) await this.#erase(erases, record, place);
  }

  /** Requests the fork until there is a response. Returns `true` if the response is the fork. */
  async #ask(record: ForkRecord): Promise<boolean> {
    const { conversation, turnId } = record;
    const input = { id: conversationId(conversation), turnId };
    const view = await this.#untilAnswered(
      this.requests,
      (life) => {
        record.requests += 1;
        return life.forking.fork.fork(this.#principal, input);
      },
      (code) => record.answers.push(code),
    );
    if (view === undefined) return false;
    record.answers.push("done");
    return true;
  }

  /** Says something in the fork, and waits for the end of its turn. */
  async #say({ length }: MessagePlan, number: number, place: Requests): Promise<void> {
    const { clock, history, plan, note } = this.world;
    const tag = tagOf(number, 0, 0);
    const sent: SentMessage = {
      ...{ conversation: number, client: 0, user: plan.user, tag, isAnswered: false },
      content: `${tag} ${words(Math.max(1, length), number)}`,
      sentAt: clock.elapsed,
    };
    history.sent.push(sent);
    note(number, `client sends ${tag}`);
    const started = await this.#untilAnswered(
      place,
      (life) =>
        life.runtime.accept({
          type: "conversation.user.message",
          id: tag,
          caller: { type: "user", userId: plan.user },
          data: { content: sent.content },
        }),
      (code) => history.incidents.push(`A message in a fork was refused: ${code}`),
    );
    if (started === undefined) return;
    Object.assign(sent, { turnId: started.turnId, isAnswered: true, acknowledgedAt: clock.elapsed });
    for (let isOver = false; !isOver && !this.isGone(); ) {
      await clock.sleep(RETRY_MS);
      const turn = await place.send((life) => life.queries.turn(life.runtime.state, started.turnId));
      isOver = turn !== undefined && turn.status !== "active";
    }
  }

  async #erase(number: number, record: ForkRecord, place: Requests): Promise<void> {
    const entries = await this.#untilAnswered(place, async (life) => entriesIn(life));
    const entry = entries?.[number % entries.length];
    if (entry === undefined) return;
    record.erased = entry;
    this.world.note(record.conversation, `client erases ${entry.id}`);
    const done = await this.#untilAnswered(
      place,
      (life) => life.forking.erasing.erase(this.#principal, entry.id).then(() => true),
      (code) => (entry.answer = code),
    );
    if (done) entry.answer = "done";
  }

  get #principal(): Principal {
    return { subject: this.world.plan.user, tenant: TENANT, roles: ["admin"] };
  }

  /** Sends a request until there is a response. Returns `undefined` without a response, and after a final rejection. */
  async #untilAnswered<Value>(
    requests: Requests,
    use: (life: Life) => Promise<Value>,
    onRefused?: (code: string) => void,
  ): Promise<Value | undefined> {
    let isRefused = false;
    for (let tries = 0; tries < TRIES && !isRefused && !this.isGone(); tries++) {
      const answer = await requests.send(use, ({ code }) => {
        isRefused = true;
        onRefused?.(code);
      });
      if (answer !== undefined) return answer;
      await this.world.clock.sleep(RETRY_MS);
    }
    return undefined;
  }
}

/** The beginning of a reply names its request. */
const REPLY = /\[#[^\]]+\]/;

/** Returns the entries of ended turns that can be erased, with texts that only they have. */
function entriesIn({ runtime }: Life): Erased[] {
  const turns = Array.from({ length: runtime.state.turns }, (_, index) => runtime.store.turn(index + 1));
  return turns.flatMap((turn) => (turn === null || turn.status === "active" ? [] : entriesOf(turn)));
}

function entriesOf(turn: Turn): Erased[] {
  const said = /^\S+ \S+/.exec(textOf(turn.input))?.[0];
  const entries = [
    ...(said === undefined ? [] : [{ item: 0, id: messageId(turn, 0), text: said }]),
    ...turn.replies.flatMap(({ item, text }) => {
      const [begin] = REPLY.exec(text) ?? [];
      return begin === undefined ? [] : [{ item, id: messageId(turn, item), text: begin }];
    }),
    // The state of a tool is its own.
    ...turn.operations.flatMap(({ item, name, input: { call } }) =>
      name === "note" || typeof call !== "string" ? [] : [{ item, id: operationId(turn, item), text: call }],
    ),
  ];
  return entries.flatMap(({ item, ...entry }) => (isErased(turn, item) ? [] : [entry]));
}
