/** Channels on the real Worker: Slack's signed events and a server with Slack's API, and mails. */

import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env, exports } from "cloudflare:workers";
import { getAgentByName } from "agents";
import { beforeAll, describe, expect, test } from "vitest";
import { charactersOf } from "../../src/protocol/ids.ts";
import { sha256Hex } from "../../src/shared/sha256.ts";
import type { SentMail, SlackChannel, SlackMessage } from "../support/slack-server.ts";
import { postTool } from "./authoring.ts";
import { Play } from "./provider.ts";
import { email } from "./worker.ts";
import { request } from "./world.ts";

const TEAM = "T0TEAM";
const BUTTON = { approve: "cloudflare_channels_approve_v1", reject: "cloudflare_channels_reject_v1" };

beforeAll(async () => {
  for (const id of ["channel-guide", "channel-other"]) {
    const body = JSON.stringify({ id, persona: "test/careful" });
    const created = await request("/api/agents", { method: "POST", body });
    expect([201, 409]).toContain(created.status);
  }
});

async function signature(text: string, time: number, secret = "the signing secret of the tests") {
  const encode = (value: string) => new TextEncoder().encode(value);
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encode(secret), algorithm, false, ["sign"]);
  const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", key, encode(`v0:${time}:${text}`)));
  return `v0=${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

const deliver = (channel: string, init: RequestInit) =>
  exports.default.fetch(`http://dramatis.test/api/channels/${channel}`, init);

/** Sends a request to the channel as Slack does. */
async function slackSends(
  text: string,
  { type = "application/json", time = Math.floor(Date.now() / 1_000), secret = "" } = {},
) {
  const headers = {
    "content-type": type,
    "x-slack-request-timestamp": `${time}`,
    "x-slack-signature": await signature(text, time, secret || undefined),
  };
  return deliver("slack", { method: "POST", body: text, headers });
}

let made = 0;

/** A channel of Slack that no other test uses. */
class Place {
  readonly channel: string;
  /** The person who writes. */
  readonly user: string;
  #events = 0;

  constructor(readonly kind: "D" | "C" = "D") {
    this.channel = `${kind}0${++made}${Date.now()}`;
    this.user = `U0${this.channel}`;
  }

  event(text: string, more: { user?: string; thread?: string; ts?: string } = {}): string {
    const { user = this.user, thread, ts = `${Date.now()}.${++this.#events}` } = more;
    const mention = { type: "app_mention", text: `<@U0BOT> ${text}` };
    return JSON.stringify({
      type: "event_callback",
      event_id: `Ev${this.channel}${ts}`,
      team_id: TEAM,
      event: {
        ...(this.kind === "D" ? { type: "message", channel_type: "im", text } : mention),
        ...{ user, ts, channel: this.channel },
        ...(thread !== undefined && { thread_ts: thread }),
      },
    });
  }

  async say(text: string, more: Parameters<Place["event"]>[1] = {}): Promise<void> {
    const response = await slackSends(this.event(text, more));
    expect(response.status).toBe(200);
  }

  async press(message: SlackMessage, decision: "approve" | "reject", user = this.user): Promise<Response> {
    const buttons = message.blocks?.flatMap(({ elements = [] }) => elements) ?? [];
    const action = buttons.find(({ action_id: id }) => id === BUTTON[decision]);
    const payload = {
      ...{ type: "block_actions", team: { id: TEAM }, user: { id: user }, channel: { id: this.channel } },
      message: { ts: message.ts, ...(message.thread_ts !== undefined && { thread_ts: message.thread_ts }) },
      actions: [{ ...action, action_ts: `${Date.now()}.9` }],
    };
    const text = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
    return slackSends(text, { type: "application/x-www-form-urlencoded" });
  }

  async seen(): Promise<SlackChannel> {
    const response = await fetch(`${env.SLACK_URL}/channels/${this.channel}`);
    return response.json();
  }

  /** The texts that Slack shows, without placeholders, once they are complete and there are `count`. */
  async texts(count: number): Promise<string[]> {
    let texts: string[] = [];
    await expect
      .poll(async () => {
        texts = (await this.seen()).messages.flatMap(({ text }) => (text === "…" ? [] : [text]));
        return texts.filter((text) => !text.endsWith(" …")).length;
      })
      .toBe(count);
    return texts;
  }

  /** The user that the application names for a person. */
  principal(user = this.user) {
    return { subject: `slack:${TEAM}:user:${user}`, tenant: "test", roles: ["member"] };
  }

  /** The ids of a person's conversations, the newest first. */
  async conversations(user = this.user): Promise<string[]> {
    const list = await request("/api/conversations?limit=9", {}, this.principal(user));
    return ((await list.json()) as { conversations: { id: string }[] }).conversations.map(({ id }) => id);
  }

  /** The actor of a direct conversation. */
  async actor() {
    const thread = `slack:${TEAM}:channel:${this.channel}`;
    const id = `slack-${charactersOf(await sha256Hex(JSON.stringify(["slack", thread])))}`;
    return { id, thread, stub: await getAgentByName(exports.Channel, `test:${id}`) };
  }

  /** Gives a message to the actor, as an application whose channel has another agent. */
  async sayTo(agentId: string, text: string): Promise<void> {
    const { thread, stub } = await this.actor();
    const { subject, tenant } = this.principal();
    const surface = { channelId: this.channel };
    const input = {
      channel: "slack",
      agentId,
      id: crypto.randomUUID(),
      subject,
      surface,
      tenant,
      text,
      thread,
    };
    expect(await stub.take(input)).toMatchObject({ ok: true });
  }

  async plan(...outcomes: string[]): Promise<void> {
    await fetch(`${env.SLACK_URL}/plans/${this.channel}`, { method: "POST", body: JSON.stringify(outcomes) });
  }
}

describe("I15 Slack", () => {
  test("CHANNEL-1 SLACK-1 answers the address check of Slack, and takes no event with a wrong, old or absent signature", async () => {
    const check = await slackSends(JSON.stringify({ type: "url_verification", challenge: "the challenge" }));
    expect(await check.json()).toEqual({ challenge: "the challenge" });
    const place = new Place();
    const event = place.event(new Play({ replies: [[{ text: "Hello." }]] }).content);
    const old = Math.floor(Date.now() / 1_000) - 301;
    expect((await slackSends(event, { secret: "another secret" })).status).toBe(401);
    expect((await slackSends(event, { time: old })).status).toBe(401);
    expect((await deliver("slack", { method: "POST", body: event })).status).toBe(401);
    expect((await deliver("absent", { method: "POST", body: event })).status).toBe(404);
    expect((await place.seen()).calls).toBe(0);
  });

  test("CHANNEL-2 CHANNEL-4 a direct message is answered once, also if Slack repeats it, and the next message continues", async () => {
    const place = new Place();
    const play = new Play({ replies: [[{ text: "Good morning." }]] });
    const event = place.event(play.content);
    for (const response of await Promise.all([slackSends(event), slackSends(event)]))
      expect(response.status).toBe(200);
    expect(await place.texts(1)).toEqual(["Good morning."]);
    expect((await slackSends(event)).status).toBe(200);
    const next = new Play({ replies: [[{ text: "As I said." }]] });
    await place.say(next.content);
    expect(await place.texts(2)).toEqual(["Good morning.", "As I said."]);
    expect(await play.requests()).toHaveLength(1);
    const [asked] = await next.requests();
    expect(asked?.body.messages.map(({ content }) => content)).toContain("Good morning.");
  });

  test("CHANNEL-3 CHANNEL-8 people of a thread share a conversation, others and programs have no effect", async () => {
    const place = new Place("C");
    const first = new Play({ replies: [[{ text: "One." }]] });
    await place.say(first.content, { ts: "100.1" });
    expect(await place.texts(1)).toEqual(["One."]);
    const second = new Play({ replies: [[{ text: "Two." }]] });
    await place.say(second.content, { thread: "100.1", user: "U0BEN" });
    expect(await place.texts(2)).toEqual(["One.", "Two."]);
    expect((await place.seen()).messages.map(({ thread_ts: thread }) => thread)).toEqual(["100.1", "100.1"]);
    const [asked] = await second.requests();
    expect(JSON.stringify(asked?.body.messages)).toContain("One.");
    const other = new Play({ replies: [[{ text: "Never." }]] });
    await place.say(other.content, { thread: "100.1", user: "U0STRANGER" });
    const bot = JSON.parse(place.event(other.content, { thread: "100.1" }));
    bot.event.bot_id = "B1";
    expect((await slackSends(JSON.stringify(bot))).status).toBe(200);
    const third = new Play({ replies: [[{ text: "Three." }]] });
    await place.say(third.content, { ts: "200.1" });
    expect(await place.texts(3)).toEqual(["One.", "Two.", "Three."]);
    expect(JSON.stringify((await third.requests())[0]?.body.messages)).not.toContain("One.");
    expect(await other.requests()).toEqual([]);
  });

  test("CHANNEL-5 SLACK-2 a post is repeated after a rate limit and a fault of Slack", async () => {
    const place = new Place();
    await place.plan("429", "ok", "internal_error");
    await place.say(new Play({ replies: [[{ text: "At last." }]] }).content);
    expect(await place.texts(1)).toEqual(["At last."]);
  });

  test("CHANNEL-5 a text is shown once, also if the answers to its placeholder and to its text are lost", async () => {
    const place = new Place("C");
    await place.plan("cut", "ok", "cut");
    await place.say(new Play({ replies: [[{ text: "Once." }]] }).content, { ts: "1.1" });
    expect(await place.texts(1)).toEqual(["Once."]);
    await place.say(new Play({ replies: [[{ text: "The next." }]] }).content, { thread: "1.1" });
    expect(await place.texts(2)).toEqual(["Once.", "The next."]);
  });

  test("CHANNEL-5 a text is shown once if all actors crash before Slack answers", async () => {
    const place = new Place("C");
    await place.plan("ok", "hang");
    await place.say(new Play({ replies: [[{ text: "Once." }]] }).content, { ts: "1.1" });
    expect(await place.texts(1)).toEqual(["Once."]);
    await abortAllDurableObjects();
    await place.say(new Play({ replies: [[{ text: "The next." }]] }).content, { thread: "1.1" });
    expect(await place.texts(2)).toEqual(["Once.", "The next."]);
  });

  test("CHANNEL-2 CHANNEL-3 after the deletion of the conversation, an earlier event has no effect, waiting texts are deleted, and the next message begins another one", async () => {
    const place = new Place();
    const first = place.event(new Play({ replies: [[{ text: "One." }]] }).content);
    await slackSends(first);
    await place.texts(1);
    const user = place.principal();
    const [id] = await place.conversations();
    await place.plan(...Array<string>(3).fill("internal_error"));
    const late = new Play({ replies: [[{ text: "Late." }]] });
    await place.say(late.content);
    await expect.poll(async () => (await place.seen()).calls).toBeGreaterThan(2);
    expect((await request(`/api/conversations/${id}`, { method: "DELETE" }, user)).status).toBe(204);
    expect((await slackSends(first)).status).toBe(200);
    await place.say(new Play({ replies: [[{ text: "Anew." }]] }).content);
    expect(await place.texts(2)).toEqual(["One.", "Anew."]);
  });

  test("CHANNEL-3 a conversation names its channel, in lists and in its export, and its fork has none", async () => {
    const place = new Place();
    await place.say(new Play({ replies: [[{ text: "One." }]] }).content);
    await place.texts(1);
    const user = { subject: `slack:${TEAM}:user:${place.user}`, tenant: "test", roles: ["member"] };
    const read = async <Body>(path: string, init = {}): Promise<Body> =>
      (await request(`/api/conversations${path}`, init, user)).json();
    const { conversations } = await read<{ conversations: { id: string }[] }>("?limit=1");
    expect(conversations).toEqual([expect.objectContaining({ channel: "slack" })]);
    const path = `/${conversations[0]?.id}`;
    expect(await read(path)).toMatchObject({ channel: "slack" });
    const exported = await request(`/api/conversations${path}/export`, {}, user);
    expect(await exported.text()).toContain('"channel":"slack"');
    const fork = await read(`${path}/fork`, { method: "POST", body: "{}" });
    expect(fork).toMatchObject({ forkedFrom: { conversationId: conversations[0]?.id } });
    expect(fork).not.toHaveProperty("channel");
  });

  test("CHANNEL-3 a conversation that is gone without a notice is replaced", async () => {
    const place = new Place();
    await place.say(new Play({ replies: [[{ text: "One." }]] }).content);
    await place.texts(1);
    const user = place.principal();
    const [id] = await place.conversations();
    const { stub } = await place.actor();
    const record = () => runInDurableObject(stub, (_, { storage }) => storage.kv.get<object>("channel"));
    const before = await record();
    expect(before).toMatchObject({ generation: 0, conversation: { id, owner: user.subject } });
    expect((await request(`/api/conversations/${id}`, { method: "DELETE" }, user)).status).toBe(204);
    await expect.poll(record).toMatchObject({ generation: 1 });
    await runInDurableObject(stub, (_, { storage }) => storage.kv.put("channel", before));
    await abortAllDurableObjects();
    await place.say(new Play({ replies: [[{ text: "Anew." }]] }).content);
    expect(await place.texts(2)).toEqual(["One.", "Anew."]);
  });

  test("SLACK-4 a guest of a shared channel is a person of the guest's workspace", async () => {
    const place = new Place("C");
    const play = new Play({ replies: [[{ text: "Hello, guest." }]] });
    const event = JSON.parse(place.event(play.content, { user: "U0STRANGER" }));
    event.event.user_team = "T0OTHER";
    expect((await slackSends(JSON.stringify(event))).status).toBe(200);
    event.event_id += "b";
    event.event = { ...event.event, user: place.user, ts: "9.9" };
    expect((await slackSends(JSON.stringify(event))).status).toBe(200);
    await place.texts(1);
    const guest = { subject: `slack:T0OTHER:user:${place.user}`, tenant: "test", roles: ["member"] };
    const list = await request("/api/conversations?limit=9", {}, guest);
    expect(((await list.json()) as { conversations: object[] }).conversations).toHaveLength(1);
  });

  test("SLACK-2 a text notifies no whole channel, and Slack opens no addresses of a text", async () => {
    const place = new Place();
    await place.say(new Play({ replies: [[{ text: "<!channel> 1 < 2 <https://a.example>" }]] }).content);
    expect(await place.texts(1)).toEqual(["&lt;!channel> 1 < 2 <https://a.example>"]);
    expect((await place.seen()).messages[0]).toMatchObject({ unfurl_links: false, unfurl_media: false });
    await place.say(new Play({ replies: [[{ text: "<!".repeat(6_000) }]] }).content);
    expect((await place.texts(2)).at(-1)).toBe("＜!".repeat(6_000));
  });

  test("CHANNEL-7 the answer grows in one message while the model writes", async () => {
    const place = new Place();
    const play = new Play({
      replies: [[{ text: "The beginning" }, { gate: "rest" }, { text: " and the end." }]],
    });
    await place.say(play.content);
    await play.reached("rest");
    await expect
      .poll(async () => (await place.seen()).messages.map(({ text }) => text))
      .toEqual(["The beginning …"]);
    await play.open("rest");
    expect(await place.texts(1)).toEqual(["The beginning and the end."]);
    // The place of the message is stored before its text is shown.
    expect((await place.seen()).messages[0]?.edits).toEqual(["…", "The beginning …"]);
  });

  test("CHANNEL-5 CHANNEL-7 the answer replaces its preview, also if Slack takes long over the preview", async () => {
    const place = new Place();
    await place.plan("ok", "slow");
    const play = new Play({
      replies: [[{ text: "The beginning" }, { gate: "rest" }, { text: " and the end." }]],
    });
    await place.say(play.content);
    await expect.poll(async () => (await place.seen()).calls).toBe(2);
    await play.open("rest");
    await expect.poll(async () => (await place.seen()).messages[0]?.edits.length).toBe(2);
    expect(await place.texts(1)).toEqual(["The beginning and the end."]);
  });

  test("CHANNEL-6 CHANNEL-7 a preview passes no text that waits", async () => {
    const place = new Place();
    await place.plan("429");
    await place.say(new Play({ replies: [[{ text: "One." }]] }).content);
    await expect.poll(async () => (await place.seen()).calls).toBe(1);
    const play = new Play({ replies: [[{ text: "Two begins" }, { gate: "rest" }, { text: "." }]] });
    await place.say(play.content);
    await expect
      .poll(async () => (await place.seen()).messages.map(({ text }) => text), { timeout: 10_000 })
      .toEqual(["One.", "Two begins …"]);
    await play.open("rest");
    expect(await place.texts(2)).toEqual(["One.", "Two begins."]);
  });

  test("CHANNEL-2 an event of the same message starts no second turn", async () => {
    const place = new Place("C");
    const play = new Play({ replies: [[{ text: "Once." }]] });
    const event = JSON.parse(place.event(play.content, { ts: "1.1" }));
    for (const id of ["EvOne", "EvTwo"]) {
      const sent = await slackSends(JSON.stringify({ ...event, event_id: `${id}${place.channel}` }));
      expect(sent.status).toBe(200);
    }
    const next = new Play({ replies: [[{ text: "The next." }]] });
    await place.say(next.content, { thread: "1.1" });
    await expect.poll(async () => (await place.texts(2)).includes("The next.")).toBe(true);
    expect(await play.requests()).toHaveLength(1);
  });

  test("CHANNEL-3 CHANNEL-4 a changed agent answers the next message, and the turn and the request of the earlier one end", async () => {
    const place = new Place();
    const asking = new Play((key) => ({
      replies: [[{ call: "transfer", input: { key, to: "Bob" } }], [{ text: "Paid." }]],
    }));
    await place.say(asking.content);
    await place.texts(1);
    const [question] = (await place.seen()).messages;
    if (question === undefined) throw new Error("There is no question.");
    const running = new Play({ replies: [[{ gate: "rest" }, { text: "Of the first agent." }]] });
    await place.say(running.content);
    await running.reached("rest");
    const other = new Play({ replies: [[{ text: "Of the other agent." }]] });
    await place.sayTo("channel-other", other.content);
    expect((await place.texts(2)).at(-1)).toBe("Of the other agent.");
    await running.open("rest");
    expect((await place.texts(3)).at(-1)).toBe("Of the first agent.");
    expect((await place.press(question, "approve")).status).toBe(200);
    expect((await place.texts(4)).at(-1)).toBe("Paid.");
    expect(await asking.runs()).toHaveLength(1);
    expect(await place.conversations()).toHaveLength(2);
    const again = new Play({ replies: [[{ text: "Still the other." }]] });
    await place.sayTo("channel-other", again.content);
    expect((await place.texts(5)).at(-1)).toBe("Still the other.");
    expect(await place.conversations()).toHaveLength(2);
  });

  test("CHANNEL-4 each life asks for the frames of the conversation", async () => {
    const place = new Place();
    await place.say(new Play({ replies: [[{ text: "One." }]] }).content);
    await place.texts(1);
    const [id] = await place.conversations();
    const conversation = await getAgentByName(exports.Conversation, `test:${id}`);
    const to = { kind: "channel", tenant: "test", id: (await place.actor()).id };
    expect(await conversation.unsubscribeActor(place.principal(), to)).toMatchObject({ ok: true });
    await abortAllDurableObjects();
    await place.say(new Play({ replies: [[{ text: "Two." }]] }).content);
    expect(await place.texts(2)).toEqual(["One.", "Two."]);
  });

  test("CHANNEL-5 CHANNEL-7 after a crash of all actors the answer replaces the preview, and each message has one turn", async () => {
    const place = new Place();
    const play = new Play({
      replies: [
        [
          { text: "The beginning" },
          { gate: "more" },
          { text: ", more" },
          { gate: "rest" },
          { text: " and the end." },
        ],
      ],
    });
    await place.say(play.content);
    await expect.poll(async () => (await place.seen()).messages.length).toBe(1);
    await play.open("more");
    // The place of the preview is stored before its text is replaced.
    await expect.poll(async () => (await place.seen()).messages[0]?.text).toBe("The beginning, more …");
    await abortAllDurableObjects();
    await play.open("rest");
    expect(await place.texts(1)).toEqual(["The beginning, more and the end."]);
    const next = new Play({ replies: [[{ text: "Again." }]] });
    await place.say(next.content);
    expect(await place.texts(2)).toEqual(["The beginning, more and the end.", "Again."]);
  });

  test("SLACK-3 CHANNEL-6 a person approves a call by a button, it runs once, and the answer follows", async () => {
    const place = new Place();
    const play = new Play((key) => ({
      replies: [[{ call: "transfer", input: { key, to: "Bob" } }], [{ text: "Paid." }]],
    }));
    await place.say(play.content);
    const [question] = await place.texts(1);
    expect(question).toContain("`transfer` needs an approval");
    expect(question).toContain('"Bob"');
    const [message] = (await place.seen()).messages;
    if (message === undefined) throw new Error("There is no question.");
    expect(await play.runs()).toEqual([]);
    expect((await place.press(message, "approve", "U0STRANGER")).status).toBe(200);
    // A person who has not written in the thread may not approve.
    expect((await place.press(message, "approve", "U0OTHER")).status).toBe(200);
    expect((await place.texts(2)).at(-1)).toBe("I cannot take this message now.");
    expect(await play.runs()).toEqual([]);
    expect((await place.press(message, "approve")).status).toBe(200);
    expect((await place.press(message, "approve")).status).toBe(200);
    expect((await place.texts(3)).at(-1)).toBe("Paid.");
    expect(await play.runs()).toHaveLength(1);
    expect((await place.press(message, "reject")).status).toBe(200);
    expect((await place.texts(4)).at(-1)).toContain("I cannot take this message");
  });

  test("CHANNEL-9 A2ACALL-12 a button answers the question of a server, and its answer counts for this question only", async () => {
    const a2a = `${env.A2A_URL}/channel-${crypto.randomUUID()}`;
    const tool = await postTool(`channel-${crypto.randomUUID().slice(0, 8)}`, "ask_far", { a2a });
    const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };
    const id = `channel-far-${crypto.randomUUID().slice(0, 8)}`;
    const body = JSON.stringify({ id, persona: { identity, tools: { toolIds: [tool] } } });
    expect((await request("/api/agents", { method: "POST", body })).status).toBe(201);
    const place = new Place();
    const say = async (input: object) => {
      const play = new Play({ replies: [[{ call: "ask_far", input }], [{ text: "Done." }]] });
      await place.sayTo(id, play.content);
      return play;
    };
    const first = await say({ message: "confirm Refund 5?" });
    await place.texts(1);
    const told = JSON.stringify((await first.requests())[1]?.body.messages);
    const [, task_id] = /task_id\W+([\w-]+)/.exec(told) ?? [];
    await say({ message: "approve", task_id });
    const [, question] = await place.texts(2);
    expect(question).toContain("> Refund 5?");
    const message = (await place.seen()).messages.at(-1);
    if (message === undefined) throw new Error("There is no question.");
    expect((await place.press(message, "approve")).status).toBe(200);
    expect((await place.texts(3)).at(-1)).toBe("Done.");
    const runs = await fetch(a2a.replace(/\/([^/]+)$/, "/control/$1/runs"));
    expect(await runs.json()).toEqual([
      "confirm Refund 5?",
      expect.stringMatching(/^approve .*op_Refund 5\?$/),
    ]);
  });

  test("CHANNEL-9 a workflow that waits for a person is announced in the thread", async () => {
    const library = `channel-flow-${crypto.randomUUID().slice(0, 8)}`;
    const inputSchema = { type: "object" };
    const steps = [{ ref: "ask", action: { kind: "human.approve", prompt: "Send it?" } }];
    const nodes = [{ ref: "ask", task: "ask" }];
    const identity = { systemPrompt: "You are a test.", modelProfileId: "test/scripted" };
    for (const [path, body] of [
      [`libraries/${library}/tasks`, { id: "ask", inputSchema, steps }],
      [
        `libraries/${library}/workflows`,
        { id: "flow", inputSchema, initialNode: "ask", nodes, transitions: [] },
      ],
      [
        `libraries/${library}/tools`,
        {
          ...{ id: "asks", name: "asks", description: "Asks." },
          target: { workflow: `${library}/flow` },
        },
      ],
      ["agents", { id: library, persona: { identity, tools: { toolIds: [`${library}/asks`] } } }],
    ] as const) {
      const posted = await request(`/api/${path}`, { method: "POST", body: JSON.stringify(body) });
      expect(posted.status, await posted.text()).toBe(201);
    }
    const place = new Place();
    const play = new Play({ replies: [[{ call: "asks", input: {} }], [{ text: "I asked." }]] });
    await place.sayTo(library, play.content);
    expect(await place.texts(1)).toEqual([
      "A workflow waits for an answer of a person. Answer in the console.",
    ]);
    const inbox = await request("/api/approvals?kind=gate&limit=100", {}, place.principal());
    const { approvals } = (await inbox.json()) as { approvals: { runId: string; operationId: string }[] };
    const [{ runId, operationId } = { runId: "", operationId: "" }] = approvals;
    const path = `/api/runs/${runId}/gates/${operationId}`;
    const body = JSON.stringify({ answer: { approved: true } });
    const answered = await request(path, { method: "POST", body }, place.principal());
    expect(answered.status, await answered.text()).toBe(200);
    expect((await place.texts(2)).at(-1)).toBe("I asked.");
  });

  test("SLACK-3 a button in a thread without a conversation begins none", async () => {
    const place = new Place();
    const value = JSON.stringify({ v: 1, approvalId: "op_1", decision: "approve" });
    const blocks = [{ type: "actions", elements: [{ action_id: BUTTON.approve, value }] }];
    const pressed = await place.press({ ts: "1.1", text: "", edits: [], blocks }, "approve");
    expect(pressed.status).toBe(200);
    expect(await place.texts(1)).toEqual(["I cannot take this message now."]);
    expect(await place.conversations()).toEqual([]);
  });

  test("CHANNEL-3 after the end of the conversation the next message begins another one", async () => {
    const place = new Place();
    await place.say(new Play({ replies: [[{ text: "One." }]] }).content);
    await place.texts(1);
    const user = place.principal();
    const [id] = await place.conversations();
    const ended = await request(`/api/conversations/${id}/complete`, { method: "POST", body: "{}" }, user);
    expect(ended.status).toBe(200);
    const play = new Play({ replies: [[{ text: "Anew." }]] });
    await place.say(play.content);
    expect(await place.texts(2)).toEqual(["One.", "Anew."]);
    expect(JSON.stringify((await play.requests())[0]?.body.messages)).not.toContain("One.");
  });
});

describe("I15 mail", () => {
  const sent = async (address: string): Promise<SentMail[]> =>
    (await fetch(`${env.SLACK_URL}/mails/${address}`)).json();
  const mailOf = (from: string, subject: string, text: string, more: Record<string, string> = {}) => {
    const lines = {
      From: from,
      To: "help@dramatis.test",
      Subject: subject,
      "Message-ID": `<${crypto.randomUUID()}@x>`,
      ...more,
    };
    const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}`);
    const raw = new Response(`${head.join("\r\n")}\r\n\r\n${text}\r\n`).body as ReadableStream<Uint8Array>;
    const rejected: string[] = [];
    return {
      mail: {
        from,
        to: "help@dramatis.test",
        headers: new Headers(lines),
        raw,
        setReject: (why: string) => void rejected.push(why),
      },
      rejected,
      id: lines["Message-ID"],
    };
  };

  test("EMAIL-1 EMAIL-2 EMAIL-3 CHANNEL-2 a mail is answered in its thread, once, and a notice of absence is not answered", async () => {
    const from = `ada-${crypto.randomUUID()}@example.com`;
    const play = new Play({ replies: [[{ text: "It is here." }]] });
    const first = mailOf(from, "Where is it?", play.content, { "In-Reply-To": "<earlier@x>" });
    await email(first.mail, env);
    await expect.poll(() => sent(from)).toHaveLength(1);
    const [answer] = await sent(from);
    expect(answer).toMatchObject({
      from: "help@dramatis.test",
      subject: "Re: Where is it?",
      text: "It is here.",
    });
    expect(answer?.headers["In-Reply-To"]).toBe(first.id);
    expect(answer?.headers["Auto-Submitted"]).toBe("auto-replied");
    const absent = new Play({ replies: [[{ text: "Never." }]] });
    await email(mailOf(from, "Away", absent.content, { "Auto-Submitted": "auto-replied" }).mail, env);
    const next = new Play({ replies: [[{ text: "As I wrote." }]] });
    const reply = { "In-Reply-To": first.id, References: `<earlier@x> ${first.id}` };
    const second = mailOf(from, "Re: Where is it?", next.content, reply);
    await email(second.mail, env);
    await expect.poll(() => sent(from)).toHaveLength(2);
    expect(JSON.stringify((await next.requests())[0]?.body.messages)).toContain("It is here.");
    expect(await absent.requests()).toEqual([]);
    // A forged mail into the thread: the answer goes to the sender, who sees nothing of the conversation.
    const eve = `eve-${crypto.randomUUID()}@example.com`;
    const forged = new Play({ replies: [[{ text: "Who are you?" }]] });
    const copied = { ...reply, "Reply-To": `help@dramatis.test, ${eve}` };
    const forgery = mailOf(from, "Re: Where is it?", forged.content, copied);
    await email({ ...forgery.mail, from: eve }, env);
    await expect.poll(() => sent(eve)).toHaveLength(1);
    expect((await sent(eve))[0]?.to).toBe(eve);
    expect(JSON.stringify((await forged.requests())[0]?.body.messages)).not.toContain("It is here.");
    for (const sender of ["", "help@dramatis.test"])
      await email({ ...mailOf(sender, "Loop", absent.content).mail, from: sender }, env);
    const last = new Play({ replies: [[{ text: "Good bye." }]] });
    await email(mailOf(from, "The last", last.content).mail, env);
    await expect.poll(() => sent(from)).toHaveLength(3);
    expect(await absent.requests()).toEqual([]);
    expect(await sent("help@dramatis.test")).toEqual([]);
    const lost = mailOf(from, "Hello", "Hello.");
    await email({ ...lost.mail, to: "nobody@dramatis.test" }, env);
    expect(lost.rejected).toEqual(["No agent has this address."]);
  });
});

test("CHANNEL-4 answers to turns of others in the conversation are not posted", async () => {
  const place = new Place();
  await place.say(new Play({ replies: [[{ text: "One." }]] }).content);
  await place.texts(1);
  const user = place.principal();
  const [id] = await place.conversations();
  const play = new Play({ replies: [[{ text: "In the console." }]] });
  const body = JSON.stringify({ content: play.content });
  expect((await request(`/api/conversations/${id}/turns`, { method: "POST", body }, user)).status).toBe(202);
  await play.closes(1);
  await place.say(new Play({ replies: [[{ text: "Two." }]] }).content);
  expect(await place.texts(2)).toEqual(["One.", "Two."]);
});
