/** Generates a plan from a seed. A fault at a tool's result or an approval gets a call that reaches it. Most plans are small, because a short failing plan is easier to understand. */

import { Random } from "../../src/testing/random.ts";
import { withForkFaults, withForks } from "./generate-forks.ts";
import { withReplacements } from "./generate-replacements.ts";
import {
  type ActPlan,
  CAREFUL_NAMES,
  type CallPlan,
  type ClientPlan,
  type ConversationPlan,
  FAULTS_OF,
  type Fault,
  type FaultKind,
  type HookPlan,
  JOB_NAMES,
  type MemoryPlan,
  type MessagePlan,
  MODEL_FAILURES,
  MOMENTS,
  type Plan,
  PORTS,
  type Port,
  type ReplyPlan,
  SUMMARY_ANSWERS,
  type SummaryPlan,
  TOOL_NAMES,
  UNFIT_ANSWERS,
} from "./plan.ts";

const USERS = ["ada", "bob", "eve"] as const;
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

export function generatePlan(seed: number): Plan {
  const random = new Random(seed);
  const shape = random.fork("shape");
  const conversations = random.list(shape.chance(0.15) ? 2 : 1, (index) =>
    conversationPlan(random.fork(`conversation ${index}`)),
  );
  const faults = random.list(faultCount(shape), (index) =>
    faultPlan(random.fork(`fault ${index}`), conversations.length),
  );
  const plan = aimed({ seed, conversations, faults }, random.fork("aim"));
  return withForkFaults(plan, random.fork("faults of forks"), (own, port, conversation) =>
    faultAt(own, [port, own.pick(FAULTS_OF[port])], conversation),
  );
}

/** Number of faults: zero in 5 % of the plans, a storm of crashes in 2 %. */
function faultCount(shape: Random): number {
  if (shape.chance(0.05)) return 0;
  return shape.chance(0.02) ? shape.int(20, 40) : shape.int(1, 8);
}

function conversationPlan(random: Random): ConversationPlan {
  const order = random.fork("order");
  const hooks = hooksPlan(random.fork("hooks"));
  const signalled = withSignals(
    withMemory(
      {
        maxMoves: random.chance(0.2) ? random.int(1, 2) : 8,
        ...(random.chance(0.35) ? { fallbacks: random.int(1, 2) } : {}),
        ...(random.chance(0.2) ? { history: random.int(1, 3) } : {}),
        ...(order.chance(0.4) ? { order: order.pick(["queued", "interrupt"] as const) } : {}),
        ...hooks,
        ...budgetPlan(random.fork("budget")),
        clients: random.list(random.small(1, 3), (index) => clientPlan(random.fork(`client ${index}`))),
      },
      random.fork("memory"),
    ),
    random.fork("signals"),
    random.fork("life"),
  );
  const replacing = withReplacements(signalled, random.fork("replacements"), editPlan);
  const titled = withTitles(replacing, random.fork("titles"));
  const plan = withForks(titled, random.fork("forks"), editPlan);
  return hooks.hooks?.assembly === undefined ? plan : withTextOnly(plan);
}

/** An edited message. Its turn has the tools and the output of the replaced turn, and calls tools that need no person. */
function editPlan(random: Random): MessagePlan {
  const { images: _images, output: _output, replies, ...message } = messagePlan(random);
  const needsPerson = ({ tool }: CallPlan) => tool === "ask" || CAREFUL_NAMES.some((name) => name === tool);
  return withCycles({
    ...message,
    replies: replies.map((reply) => ({ ...reply, calls: reply.calls.filter((call) => !needsPerson(call)) })),
  });
}

/**
 * Lets some clients send their messages as signals, in batches. Few batches are larger than the number of active turns.
 * Some conversations end.
 */
function withSignals(plan: ConversationPlan, random: Random, life: Random): ConversationPlan {
  const clients = plan.clients.map((client): ClientPlan => {
    if (client.channel !== "http" || !random.chance(0.5)) return client;
    const messages = client.messages.map((message): MessagePlan => {
      return random.chance(0.5) ? { ...message, waitsFor: "nothing" } : message;
    });
    return { ...client, channel: "signals", messages };
  });
  const burst = random.chance(0.03) ? [burstPlan(random.fork("burst"))] : [];
  const [first, ...others] = clients;
  const ends = life.chance(burst.length > 0 ? 0.5 : 0.12) ? [endPlan(life)] : [];
  const ending = first && ends.length > 0 ? { ...first, acts: [...(first.acts ?? []), ...ends] } : first;
  return { ...plan, clients: [...(ending === undefined ? [] : [ending]), ...others, ...burst] };
}

function burstPlan(random: Random): ClientPlan {
  const message: MessagePlan = { waitsFor: "nothing", pause: 0, length: 1, replies: [] };
  return {
    user: random.pick(USERS),
    channel: "signals",
    joins: random.small(0, 3_000),
    latency: random.int(1, 80),
    absences: [],
    messages: random.list(random.int(65, 100), () => message),
  };
}

function endPlan(random: Random): ActPlan {
  return {
    does: "end",
    ...(random.chance(0.8) ? { upon: random.pick(MOMENTS) } : {}),
    nth: random.small(1, 4),
    pause: random.small(0, 4_000),
    ...(random.chance(0.25) ? { again: random.small(0, 500) } : {}),
  };
}

/** Gives a quarter of the conversations a small budget, and more and longer messages. Some are stopped in a compaction. */
function withMemory(plan: ConversationPlan, random: Random): ConversationPlan {
  if (random.chance(0.75)) return plan;
  // In one of seven, every attempt at the first compaction fails.
  const isLost = random.chance(0.15);
  const memory: MemoryPlan = {
    contextTokens: random.int(1_000, 1_500),
    summaries: random.list(isLost ? 3 : random.small(0, 4), () => ({
      says: random.chance(0.6) ? "summary" : random.pick(SUMMARY_ANSWERS),
      ...(isLost || random.chance(0.3) ? summaryFailure(random, isLost) : {}),
      pace: random.chance(0.3) ? random.int(100, 2_000) : random.int(0, 30),
    })),
  };
  const clients = plan.clients.map((client, index): ClientPlan => {
    const messages = client.messages.map(({ length, ...message }): MessagePlan => {
      return { ...message, length: length + random.small(0, 120) };
    });
    if (index > 0) return { ...client, messages };
    const more = random.list(random.small(0, 5), (n) => messagePlan(random.fork(`message ${n}`)));
    const acts = [...(client.acts ?? []), ...stopIn("summary", random.fork("stop"))];
    return { ...client, messages: [...messages, ...more], ...(acts.length === 0 ? {} : { acts }) };
  });
  return { ...plan, memory, clients };
}

/** A failure of a request for a summary. If `mayPass`, the request is retried after it. */
function summaryFailure(random: Random, mayPass: boolean): Partial<SummaryPlan> {
  if (random.chance(mayPass ? 0.4 : 0.15)) return { kills: true };
  const failures = mayPass ? (["server error", "truncated stream"] as const) : MODEL_FAILURES;
  return { failure: random.pick(failures) };
}

function stopIn(upon: "summary" | "title", random: Random): ActPlan[] {
  if (random.chance(0.7)) return [];
  const when = { upon, nth: random.small(1, 3) } as const;
  const pause = random.small(0, 300);
  return [
    { does: "stop", ...when, pause },
    { does: "resume", ...when, pause: pause + random.small(0, 2_000) },
  ];
}

/** Lets a model write the titles of a third of the conversations. Some are stopped or renamed meanwhile. */
function withTitles(plan: ConversationPlan, random: Random): ConversationPlan {
  if (random.chance(0.67)) return plan;
  const isLost = random.chance(0.15);
  const titles = random.list(
    isLost ? 3 : random.small(0, 3),
    (): SummaryPlan => ({
      says: random.chance(0.6) ? "summary" : random.pick(SUMMARY_ANSWERS),
      ...(isLost || random.chance(0.3) ? summaryFailure(random, isLost) : {}),
      pace: random.chance(0.3) ? random.int(100, 2_000) : random.int(0, 30),
    }),
  );
  const [first, ...others] = plan.clients;
  if (first === undefined) return plan;
  const when = { upon: "title", nth: random.small(1, 3) } as const;
  const pause = random.small(0, 300);
  const renames: ActPlan[] = random.chance(0.3) ? [{ does: "rename", ...when, pause }] : [];
  const stops = stopIn("title", random.fork("stop"));
  const acts = [...(first.acts ?? []), ...renames, ...stops];
  return { ...plan, titles, clients: [{ ...first, ...(acts.length === 0 ? {} : { acts }) }, ...others] };
}

function hooksPlan(random: Random): Pick<ConversationPlan, "hooks"> {
  if (random.chance(0.75)) return {};
  const hook = (own: Random): HookPlan => ({
    effect: own.pick(["pure", "idempotent", "once"] as const),
    ms: own.chance(0.1) ? own.int(5_000, 40_000) : own.small(0, 1_000),
    failures: own.chance(0.3) ? own.int(1, 4) : 0,
  });
  const kind = random.int(1, 3);
  return {
    hooks: {
      ...(kind === 2 ? {} : { assembly: hook(random.fork("assembly")) }),
      ...(kind === 1 ? {} : { extraction: hook(random.fork("extraction")) }),
    },
  };
}

/** A planned context hook builds requests of text only, for the first model. */
function withTextOnly({ fallbacks: _fallbacks, clients, ...plan }: ConversationPlan): ConversationPlan {
  const textOf = ({ images: _images, output: _output, ...message }: MessagePlan): MessagePlan => message;
  return {
    ...plan,
    clients: clients.map((client) => ({ ...client, messages: client.messages.map(textOf) })),
  };
}

/** A budget of calls: most are used up. */
function budgetPlan(random: Random): Pick<ConversationPlan, "budget"> {
  if (random.chance(0.8)) return {};
  const budget = {
    ...(random.chance(0.6) ? { modelCalls: random.small(0, 8) } : {}),
    ...(random.chance(0.4) ? { toolCalls: random.small(0, 6) } : {}),
    ...(random.chance(0.3) ? { tokens: random.int(4_000, 20_000) } : {}),
  };
  return Object.keys(budget).length === 0 ? {} : { budget };
}

function clientPlan(random: Random): ClientPlan {
  const channel = random.chance(0.5) ? "socket" : random.pick(["http", "stream"] as const);
  const leaves = random.chance(0.3) ? { leaves: random.int(1_000, 40_000) } : {};
  return {
    user: random.pick(USERS),
    channel,
    joins: random.small(0, 3_000),
    latency: random.chance(0.1) ? random.int(500, 4_000) : random.int(1, 80),
    ...leaves,
    absences: random.list(random.chance(0.3) ? random.int(1, 2) : 0, () => ({
      at: random.int(100, 15_000),
      ms: random.int(100, 20_000),
    })),
    messages: random.list(random.small(channel === "socket" ? 0 : 1, 4), (index) =>
      messagePlan(random.fork(`message ${index}`)),
    ),
    ...actsPlan(random.fork("acts")),
  };
}

function actsPlan(random: Random): Pick<ClientPlan, "acts"> {
  if (random.chance(0.7)) return {};
  return { acts: random.list(random.small(1, 3), (index) => actPlan(random.fork(`act ${index}`))).flat() };
}

/** A stopped conversation mostly resumes, so that most messages get an answer. */
function actPlan(random: Random): ActPlan[] {
  const moment = (pause: number) => ({
    ...(random.chance(0.8) ? { upon: random.pick(MOMENTS) } : {}),
    nth: random.small(1, 4),
    pause,
    ...(random.chance(0.25) ? { again: random.small(0, 500) } : {}),
  });
  const pause = random.chance(0.5) ? random.small(0, 60) : random.small(0, 4_000);
  switch (random.pick(["stop turn", "stop turn", "stop turn", "stop", "reorder"] as const)) {
    case "stop turn":
      return [
        { does: "stop turn", whose: random.pick(["own", "own", "other", "past"] as const), ...moment(pause) },
      ];
    case "stop": {
      const stop: ActPlan = { does: "stop", ...moment(pause) };
      if (random.chance(0.15)) return [stop];
      return [stop, { ...stop, does: "resume", pause: pause + random.small(0, 5_000) }];
    }
    case "reorder":
      return [
        {
          does: "reorder",
          order: random.pick(["parallel", "queued", "queued", "interrupt"] as const),
          ...moment(pause),
        },
      ];
  }
}

function messagePlan(random: Random): MessagePlan {
  return withCycles({
    waitsFor: random.pick(["nothing", "acknowledgement", "answer"] as const),
    pause: random.small(0, 3_000),
    length: random.small(1, 12),
    ...(random.chance(0.2) ? { images: random.int(1, 2) } : {}),
    ...(random.chance(0.2)
      ? { output: random.list(random.small(0, 3), () => random.pick(UNFIT_ANSWERS)) }
      : {}),
    replies: random.list(random.small(0, 3), (index) => replyPlan(random.fork(`reply ${index}`))),
  });
}

/** The simulated model finds its place in a turn of several cycles by their answers, and an empty answer is not sent back. */
function withCycles({ replies, ...message }: MessagePlan): MessagePlan {
  const hasCycles = replies.some(({ calls }) => calls.some(({ tool }) => BACKGROUND.has(tool)));
  const wordy = (reply: ReplyPlan) => ({ ...reply, length: Math.max(1, reply.length) });
  return { ...message, replies: hasCycles ? replies.map(wordy) : replies };
}

/** Tools that run in the background. */
const BACKGROUND: ReadonlySet<string> = new Set([...JOB_NAMES, "remit"]);

function replyPlan(random: Random): ReplyPlan {
  return {
    failures: random.list(failureCount(random), () => random.pick(MODEL_FAILURES)),
    length: random.chance(0.1) ? 0 : random.small(1, 30),
    pace: random.chance(0.1) ? random.int(100, 2_000) : random.int(0, 30),
    calls: random.list(random.chance(0.75) ? random.small(1, 4) : 0, (index) =>
      callPlan(random.fork(`call ${index}`)),
    ),
  };
}

/** Failures of a reply. Some exhaust a whole chain of models. */
function failureCount(random: Random): number {
  if (random.chance(0.06)) return random.int(3, 9);
  return random.chance(0.25) ? random.small(1, 3) : 0;
}

function callPlan(random: Random): CallPlan {
  if (random.chance(0.12)) return clientCallPlan(random);
  const attempts = random.fork("attempts");
  const background = random.fork("background");
  const tool = random.chance(0.05) ? "unknown" : random.pick(TOOL_NAMES);
  const careful = carefulPlan(random.fork("careful"));
  return {
    tool: background.chance(0.3) ? background.pick(JOB_NAMES) : tool,
    arguments: random.chance(0.9) ? "valid" : random.pick(["wrong", "broken"] as const),
    ms: random.chance(0.3) ? random.int(100, 8_000) : random.int(0, 70),
    outcome: random.chance(0.8) ? "answer" : random.pick(["error", "throw", "never"] as const),
    progress: random.chance(0.25) ? random.int(1, 3) : 0,
    ...(attempts.chance(0.25) ? { failures: attempts.int(1, 4) } : {}),
    ...careful,
  };
}

/** Makes a seventh of the calls need an approval. Some requests for approval stay unanswered. */
function carefulPlan(random: Random): Partial<CallPlan> {
  if (random.chance(0.85)) return {};
  const tool = random.pick(CAREFUL_NAMES);
  if (random.chance(0.1)) return { tool };
  return {
    tool,
    approval: {
      approves: random.chance(0.7),
      ms: random.chance(0.15) ? random.int(20_000, 90_000) : random.small(0, 5_000),
      ...(random.chance(0.3) ? { again: random.pick(["same", "different"] as const) } : {}),
      ...(random.chance(0.15) ? { rivals: true } : {}),
    },
  };
}

function clientCallPlan(random: Random): CallPlan {
  return {
    tool: "ask",
    arguments: random.chance(0.95) ? "valid" : "broken",
    ms: random.chance(0.15) ? random.int(20_000, 90_000) : random.int(0, 5_000),
    outcome: random.chance(0.7) ? "answer" : random.pick(["error", "never"] as const),
    progress: 0,
    ...(random.chance(0.3) ? { again: random.pick(["same", "different"] as const) } : {}),
    ...(random.chance(0.15) ? { rivals: true } : {}),
  };
}

/** Ports that a run crosses only in one of its own calls, in the order of these calls. */
const AIMED = ["tool.result", "tool.report", "tool.request", "approval"] as const;

/** Lets the first message of a conversation make the calls that its faults at `AIMED` ports need. */
function aimed({ seed, conversations, faults }: Plan, random: Random): Plan {
  const crashes: Fault[] = [];
  const changed = conversations.map((plan, conversation): ConversationPlan => {
    const own = faults.filter((fault) => fault.conversation === conversation);
    const ports = AIMED.filter((port) => own.some((fault) => fault.port === port));
    // A result is late if its actor dies while the tool runs.
    if (ports.includes("tool.result"))
      crashes.push({ conversation, port: "tool.request", nth: 1, kind: "crash", when: "after" });
    if (ports.length === 0) return plan;
    const called = withCalls(plan, ports, random.fork(`conversation ${conversation}`));
    return plan.hooks?.assembly === undefined ? called : withTextOnly(called);
  });
  const first = faults.map((fault): Fault => {
    if (!AIMED.some((port) => port === fault.port)) return fault;
    const isSecond = crashes.some(
      ({ conversation, port }) => conversation === fault.conversation && port === fault.port,
    );
    return { ...fault, nth: isSecond ? 2 : 1 };
  });
  return { seed, conversations: changed, faults: [...first, ...crashes] };
}

function withCalls(
  plan: ConversationPlan,
  ports: readonly (typeof AIMED)[number][],
  random: Random,
): ConversationPlan {
  const { budget, maxMoves } = plan;
  // A stop may end a call before its report, and before somebody answers.
  const clients =
    ports.includes("approval") || random.chance(0.5)
      ? plan.clients.map(({ acts: _, ...left }) => left)
      : plan.clients;
  const [client = clientPlan(random.fork("client")), ...others] = clients;
  const [message = messagePlan(random.fork("message")), ...later] = client.messages;
  const [first = "approval", ...next] = ports.filter((port) => port !== "approval" || ports.length === 1);
  const beside = ports.includes("approval") && first !== "approval" ? (["approval"] as const) : [];
  const replies = [[first, ...beside], ...next.map((port) => [port])].map(
    (together): ReplyPlan => ({
      ...{ failures: [], length: 3, pace: 5 },
      calls: together.map((port) => aimedCall(port, random.fork(port))),
    }),
  );
  const { modelCalls, toolCalls, tokens } = budget ?? {};
  const more = replies.length + 1;
  return {
    ...plan,
    maxMoves: Math.max(maxMoves, more),
    ...(budget && {
      budget: {
        ...(modelCalls === undefined ? {} : { modelCalls: modelCalls + more }),
        ...(toolCalls === undefined ? {} : { toolCalls: toolCalls + more }),
        ...(tokens === undefined ? {} : { tokens: tokens + 2_000 * more }),
      },
    }),
    clients: [
      {
        ...client,
        channel: client.channel === "signals" ? "http" : client.channel,
        ...(client.leaves === undefined ? {} : { leaves: client.leaves + 20_000 }),
        messages: [
          withCycles({
            ...message,
            ...(plan.order === "interrupt" ? { waitsFor: "answer" } : {}),
            replies: [...replies, ...message.replies],
          }),
          ...later,
        ],
      },
      ...others,
    ],
  };
}

function aimedCall(port: (typeof AIMED)[number], random: Random): CallPlan {
  const call = { arguments: "valid", ms: random.int(50, 1_000), outcome: "answer", progress: 0 } as const;
  if (port !== "approval") return { ...call, tool: random.pick(["look_up", "save", "charge"] as const) };
  return {
    ...call,
    tool: random.pick(CAREFUL_NAMES),
    approval: { approves: random.chance(0.7), ms: random.small(0, 1_500) },
  };
}

/** Range of crossings for faults, by port: about as many as a run has. */
const REACH: Readonly<Partial<Record<Port, number>>> = {
  "sql.run": 60,
  "sql.all": 40,
  "sql.each": 3,
  "kv.put": 4,
  "window.open": 5,
  "model.request": 6,
  "model.piece": 40,
  "tool.request": 2,
  "tool.report": 4,
  "tool.result": 1,
  "object.head": 2,
  "object.get": 4,
  "directory.put": 2,
  "http.request": 3,
  "http.answer": 3,
  "socket.open": 3,
  "socket.up": 4,
  "socket.down": 30,
  "stream.read": 15,
  alarm: 3,
  idle: 3,
  "fork.request": 4,
  "fork.answer": 4,
};
const REACH_OF_OTHERS = 20;

type Place = readonly [Port, FaultKind];

/** The places of faults. Forks have their own. */
const PLACES: readonly Place[] = PORTS.filter((port) => !port.startsWith("fork.")).flatMap((port) =>
  FAULTS_OF[port].map((kind) => [port, kind] as const),
);

function faultPlan(random: Random, conversations: number): Fault {
  const place = random.pick(PLACES);
  return faultAt(random, place, random.int(0, conversations - 1));
}

function faultAt(random: Random, [port, kind]: Place, conversation: number): Fault {
  const nth = random.small(1, REACH[port] ?? REACH_OF_OTHERS);
  return { conversation, port, nth, ...details(random, kind) };
}

function details(random: Random, kind: FaultKind) {
  switch (kind) {
    case "crash":
      return { kind, when: random.pick(["before", "after"] as const) };
    case "error":
      return { kind, times: random.chance(0.7) ? 1 : random.int(2, 5) };
    case "delay":
      return { kind, ms: random.chance(0.7) ? random.int(1, 2_000) : random.int(5_000, 150_000) };
    case "jump":
      return { kind, ms: random.chance(0.5) ? -random.int(1, 30_000) : random.int(MINUTE, 3 * DAY) };
    case "loss":
    case "duplicate":
    case "evict":
      return { kind };
    default:
      return kind satisfies never;
  }
}
