/** The properties of a tree of calls once all is at rest. Each returns its violations in words. */

import type { ConversationState } from "../../../src/agents/conversation/core/state.ts";
import type { Turn } from "../../../src/agents/conversation/core/turn.ts";
import { type Amounts, addAmounts, NOTHING } from "../../../src/model/spending.ts";
import type { JournalEntryView } from "../../../src/protocol/conversation-schemas.ts";
import { calledConversationId, operationId } from "../../../src/protocol/ids.ts";
import { callsIn, isCalm, type WorkPlan, worksIn, worksOf } from "./plan.ts";
import { isCareful, workIn, workIndex } from "./talk.ts";
import type { TreeWorld } from "./world.ts";

/** Time for a cancellation to arrive without faults, in milliseconds. */
const ARRIVAL_MS = 1_000;

/** A conversation at rest. */
interface Room {
  id: string;
  state: ConversationState;
  turns: Turn[];
  entries: Pick<JournalEntryView, "type" | "data" | "operationId">[];
}

export function violationsOf(world: TreeWorld): string[] {
  const rooms = roomsOf(world);
  return [
    ...world.log.filter((line) => !line.endsWith(" crash")),
    ...rest(world, rooms),
    ...outcomes(rooms),
    ...survivors(world, rooms),
    ...spending(world, rooms),
    ...ledger(world, rooms),
    ...secrets(world, rooms),
    ...approvals(world, rooms),
    ...readers(rooms),
    ...work(world),
  ];
}

function roomsOf({ actors }: TreeWorld): Room[] {
  return [...actors.values()].flatMap((actor): Room[] => {
    const { runtime } = actor.awake();
    if (!runtime.exists) return [];
    const { state } = runtime;
    const turns = Array.from({ length: state.turns }, (_, index) => runtime.turn(index + 1)).flatMap(
      (turn) => turn ?? [],
    );
    const entries = runtime.store.journal
      .forward(1, 100_000)
      .flatMap(({ entries: all }) => all)
      .map(({ type, turn, item, data }) => {
        const found = turns.find(({ n }) => n === turn);
        const operation = found === undefined || item === undefined ? undefined : operationId(found, item);
        return { type, data, operationId: operation } as Room["entries"][number];
      });
    return [{ id: actor.id, state, turns, entries }];
  });
}

/** Every turn ends, every conversation of a call is closed, and no call outlives its caller. */
function rest(world: TreeWorld, rooms: readonly Room[]): string[] {
  return rooms.flatMap(({ id, state, turns }) => [
    ...turns.filter(({ status }) => status === "active").map(({ n }) => `turn ${n} of ${id} is still active`),
    ...(state.record.call !== undefined && state.status !== "completed" ? [`${id} was never closed`] : []),
    ...turns.flatMap(({ operations }) =>
      operations
        .filter(({ result }) => result === undefined)
        .map(({ item }) => `operation ${item} of ${id} has no result`),
    ),
    ...(world.actor(id).keyValue.list("mailbox:out:", 1).length > 0 ? [`${id} has envelopes under way`] : []),
  ]);
}

/** Each call has one outcome at its caller, and each conversation belongs to a call. */
function outcomes(rooms: readonly Room[]): string[] {
  const opened = new Set<string>();
  const problems = rooms.flatMap(({ id, turns, entries }) =>
    turns.flatMap((turn) =>
      turn.operations.flatMap(({ agent, item, attempt }): string[] => {
        if (agent?.mode !== "delegate") return [];
        const operation = operationId(turn, item);
        for (let one = 1; one <= attempt; one++) opened.add(calledConversationId(operation, one));
        const ends = entries.filter(
          (entry) =>
            entry.operationId === operation && /^tool\.(completed|failed|cancelled)$/.test(entry.type),
        );
        return ends.length === 1 ? [] : [`call ${operation} of ${id} has ${ends.length} outcomes`];
      }),
    ),
  );
  const strangers = rooms.filter(({ id, state }) => state.record.call !== undefined && !opened.has(id));
  return [...problems, ...strangers.map(({ id }) => `${id} belongs to no call`)];
}

/** Without faults, no call continues after its caller has given up. */
function survivors({ plan }: TreeWorld, rooms: readonly Room[]): string[] {
  if (plan.crashes > 0 || plan.badDeliveries > 0) return [];
  return rooms.flatMap(({ turns }) =>
    turns.flatMap((turn) =>
      turn.operations.flatMap(({ agent, item, status, attempt, completedAt = 0 }): string[] => {
        if (agent?.mode !== "delegate" || status !== "cancelled") return [];
        const below = calledConversationId(operationId(turn, item), attempt);
        const [work] = rooms.find(({ id }) => id === below)?.turns ?? [];
        const end = work?.completedAt ?? 0;
        return end > completedAt + ARRIVAL_MS ? [`${below} worked on for ${end - completedAt} ms`] : [];
      }),
    ),
  );
}

/** The caller counts the usage of each call once. The budget holds, except for one call of each conversation. */
function spending({ plan, requests }: TreeWorld, rooms: readonly Room[]): string[] {
  const problems = rooms.flatMap(({ id, entries }) => {
    const charged = new Map<string, Amounts>();
    for (const { type, data, operationId: operation = "" } of entries) {
      if (!/^agent_call\.(completed|failed|charged)$/.test(type)) continue;
      const { spent } = data as unknown as { spent: Amounts };
      charged.set(operation, addAmounts(charged.get(operation) ?? NOTHING, { ...spent, nanoDollars: 0 }));
    }
    return [...charged].flatMap(([operation, amounts]): string[] => {
      // Each attempt has a separate conversation.
      const below = rooms.filter(({ state }) => state.record.call?.operationId === operation);
      const spent = below.reduce<Amounts>((sum, { state }) => addAmounts(sum, state.spent), NOTHING);
      const isEqual = spent.tokens === amounts.tokens && spent.modelCalls === amounts.modelCalls;
      return isEqual
        ? []
        : [`${id} was charged ${amounts.tokens} tokens for ${operation}, which used up ${spent.tokens}`];
    });
  });
  const uncharged = rooms.flatMap(({ id, state }) => {
    const { call } = state.record;
    if (call === undefined || state.spent.modelCalls === 0) return [];
    const caller = rooms.find((room) => room.id === call.from);
    const isKnown = caller?.entries.some(
      ({ type, operationId: operation }) => operation === call.operationId && type.startsWith("agent_call."),
    );
    const isCharged = caller?.entries.some(
      ({ type, operationId: operation }) =>
        operation === call.operationId && /^agent_call\.(completed|failed|charged)$/.test(type),
    );
    return isKnown && !isCharged ? [`${id} was never charged`] : [];
  });
  const limit = plan.budget?.tokens;
  const root = rooms.find(({ state }) => state.record.call === undefined);
  if (limit === undefined || root === undefined) return [...problems, ...uncharged];
  const answered = requests.filter((request) => request.answered).map(({ tokens }) => tokens);
  const used = answered.reduce((sum, tokens) => sum + tokens, 0);
  // The reservation of a call exceeds the provider's count, so only the final call may overrun the limit.
  const most = limit + Math.max(0, ...answered);
  return [
    ...problems,
    ...uncharged,
    ...(used > most ? [`${used} tokens were used of a budget of ${limit}`] : []),
  ];
}

/**
 * The root has spent at least the provider's count for the whole tree. If every request was answered and no actor
 * crashed, no usage is estimated, and both are equal.
 */
function ledger({ plan, requests }: TreeWorld, rooms: readonly Room[]): string[] {
  const root = rooms.find(({ state }) => state.record.call === undefined);
  if (root === undefined) return [];
  const counted = requests.filter(({ answered }) => answered).reduce((sum, { tokens }) => sum + tokens, 0);
  const spent = root.state.spent.tokens;
  const isExact = plan.crashes === 0 && requests.every(({ answered }) => answered);
  const isRight = isExact ? spent === counted : spent >= counted;
  return isRight ? [] : [`the root has spent ${spent} tokens, and the provider counted ${counted}`];
}

/** A model sees only the secrets of its own work and of the works below it. */
function secrets({ plan, requests }: TreeWorld, rooms: readonly Room[]): string[] {
  const all = worksIn(plan);
  return requests.flatMap(({ conversation, messages }) => {
    // The root is above all works of its tree.
    const isRoot = rooms.find(({ id }) => id === conversation)?.state.record.call === undefined;
    if (isRoot) return [];
    const text = JSON.stringify(messages);
    const own = all.find(({ id }) => id === workIn(messages));
    const allowed = new Set(own === undefined ? [] : worksOf(own).map(({ secret }) => secret));
    return all
      .filter(({ secret }) => text.includes(`"${secret}`) || text.includes(`: ${secret}`))
      .filter(({ secret }) => !allowed.has(secret))
      .map(({ id }) => `the model of ${conversation} saw the secret of work ${id}`);
  });
}

/** Only approved calls run. At rest, no request for approval is open. */
function approvals({ plan }: TreeWorld, rooms: readonly Room[]): string[] {
  const planned = callsIn(plan);
  return rooms.flatMap(({ id, turns }) =>
    turns.flatMap((turn) =>
      turn.operations.flatMap(({ name, item, input, agent, approval }): string[] => {
        const operation = operationId(turn, item);
        const asks = (agent?.asks ?? []).map((ask) => `${operation} of ${id} still asks ${ask.operationId}`);
        if (!isCareful(name)) return asks;
        const { id: workId } = JSON.parse(String(input.message)) as WorkPlan;
        const answer = planned.find(({ work }) => work.id === workId)?.approval?.answer;
        const outcome = approval?.outcome;
        const isOpened = rooms.some(({ state }) => state.record.call?.operationId === operation);
        return [
          ...asks,
          ...(isOpened && outcome !== "approved" ? [`${operation} of ${id} ran, and it is ${outcome}`] : []),
          ...(outcome === "approved" && answer !== "approve"
            ? [`${operation} of ${id} has no approval`]
            : []),
          ...answersAbove(plan, rooms, operation, outcome),
          ...(outcome === "denied" && answer !== "deny" ? [`${operation} of ${id} has no denial`] : []),
        ];
      }),
    ),
  );
}

/** The readers of a call's conversation equal its caller's readers at the end of the attempt. */
function readers(rooms: readonly Room[]): string[] {
  const roomAt = (id: string) => rooms.find((room) => room.id === id);
  /** The readers of a conversation after its entries before `end`. */
  const readersOf = (room: Room, end: number): string[] => {
    const { call } = room.state.record;
    let list = call === undefined ? ["ada"] : (readersGivenTo(room) ?? call.readers);
    for (const { type, data } of room.entries.slice(0, end)) {
      const { participant, readers: newer } = (data ?? {}) as Partial<Membership>;
      if (type === "conversation.readers") list = newer ?? list;
      if (participant?.type !== "user") continue;
      const others = list.filter((id) => id !== participant.id);
      if (type === "participant.joined") list = [...others, participant.id];
      if (type === "participant.left") list = others;
    }
    return [...list];
  };
  /** The readers of the conversation of a call as its caller would have them at the end of the attempt, or at its beginning. */
  const readersGivenTo = ({ state }: Room, atEnd = false): string[] | undefined => {
    const { call } = state.record;
    const caller = call && roomAt(call.from);
    if (call === undefined || caller === undefined) return undefined;
    const own = caller.entries.flatMap(({ type, operationId: operation }, at) =>
      operation === call.operationId ? [{ type, at }] : [],
    );
    const starts = own.filter(({ type }) => type === "agent_call.started");
    const start = starts[call.attempt - 1]?.at;
    if (start === undefined) return undefined;
    const end = own.find(({ type, at }) => at > start && ENDS.test(type))?.at;
    return readersOf(caller, atEnd ? (end ?? caller.entries.length) : start);
  };
  return rooms.flatMap((room) => {
    const expected = readersGivenTo(room, true);
    const found = room.state.record.call?.readers;
    if (expected === undefined || found === undefined) return [];
    const isRight = expected.toSorted().join() === found.toSorted().join();
    return isRight ? [] : [`${room.id} may be read by ${found}, and its caller by ${expected}`];
  });
}

/** The entries that end an attempt of a call. */
const ENDS = /^(?:tool\.(?:call\.failed|completed|failed|cancelled)|agent_call\.(?:completed|failed))$/;

/** The data of entries about who takes part, or reads. */
interface Membership {
  participant: { type: string; id: string };
  readers: string[];
}

/** The agents above a call receive its answer unchanged. Without faults and stops they always receive it. */
function answersAbove(
  plan: TreeWorld["plan"],
  rooms: readonly Room[],
  operation: string,
  outcome: string | undefined,
): string[] {
  return rooms.flatMap(({ id, entries }) =>
    entries.flatMap(({ type, data }) => {
      const told = data as { of?: { operationId: string }; outcome?: string } | undefined;
      if (type !== "approval.resolved" || told?.of?.operationId !== operation) return [];
      // A stopped call has no own outcome.
      const mayBeStopped = outcome === undefined || !isCalm(plan);
      const isRight = told.outcome === outcome || (told.outcome === "expired" && mayBeStopped);
      return isRight ? [] : [`${id} has the outcome ${told.outcome} of ${operation}, but it is ${outcome}`];
    }),
  );
}

/**
 * Work that has ended is not done again: each model answers each step once. A crash repeats at most the calls that its conversation had
 * running: one for each turn.
 */
function work({ plan, requests, log }: TreeWorld): string[] {
  const steps = new Map<string, number>();
  for (const { conversation, messages, answered } of requests) {
    if (!answered) continue;
    const since = workIndex(messages);
    const key = `${conversation}:${messages[since]?.content}:${messages.length - since}`;
    steps.set(key, (steps.get(key) ?? 0) + 1);
  }
  const repeated = [...steps].filter(([, times]) => times > 1);
  const crashes = log.filter((line) => line.endsWith(" crash")).length;
  const again = repeated.reduce((sum, [, times]) => sum + times - 1, 0);
  if (again <= crashes * (1 + plan.more.length)) return [];
  return repeated.map(([key, times]) => `${key} was answered ${times} times, with ${crashes} crashes`);
}
