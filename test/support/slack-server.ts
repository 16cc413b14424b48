/**
 * The API of Slack on loopback, as far as texts need it, and mails as JSON. `/api/METHOD` is Slack's. The other paths are for tests:
 *
 *   GET  /channels/C         the messages of a channel, and the number of calls
 *   POST /plans/C            the outcomes of the next calls, each `ok`, an error of Slack, `429`, `500`, `cut`: the message is shown and the connection breaks, `hang`: the message is shown and no answer comes, or `slow`: after 500 ms the message is shown
 *   POST /mails/ADDRESS      stores a mail
 *   GET  /mails/ADDRESS      the mails to an address
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";

const SLACK_TOKEN = "xoxb-test";

export interface SlackMessage {
  ts: string;
  thread_ts?: string;
  text: string;
  blocks?: { type: string; elements?: { action_id: string; value: string }[] }[];
  /** The texts before. */
  edits: string[];
}

export interface SlackChannel {
  messages: SlackMessage[];
  calls: number;
}

export interface SentMail {
  from: string;
  to: string | { email: string }[];
  subject: string;
  text: string;
  headers: Record<string, string>;
}

export async function startSlackServer() {
  const channels = new Map<string, SlackChannel & { plan: string[] }>();
  const mails = new Map<string, SentMail[]>();
  let count = 0;
  const channelOf = (name: string) => {
    const channel = channels.get(name) ?? { messages: [], calls: 0, plan: [] };
    channels.set(name, channel);
    return channel;
  };
  const http = createServer(async (request, response) => {
    const [, kind, name = ""] = (request.url ?? "").split("/");
    const answer = (body: unknown, status = 200, headers: Record<string, string> = {}) =>
      void response
        .writeHead(status, { "content-type": "application/json", ...headers })
        .end(JSON.stringify(body));
    // SAFETY: tests and the adapter send these.
    const body = request.method === "POST" ? ((await json(request)) as never) : undefined;
    if (kind === "mails") {
      const list = mails.get(name) ?? [];
      mails.set(name, list);
      if (body !== undefined) list.push(body);
      return answer(body === undefined ? list : { messageId: `mail-${++count}` });
    }
    if (kind === "channels") return answer(channelOf(name));
    if (kind === "plans") return answer(channelOf(name).plan.push(...(body as unknown as string[])));
    if (request.headers.authorization !== `Bearer ${SLACK_TOKEN}`)
      return answer({ ok: false, error: "invalid_auth" });
    const { channel: id, ts, ...message } = body as unknown as SlackMessage & { channel: string };
    const channel = channelOf(id);
    channel.calls += 1;
    const planned = channel.plan.shift() ?? "ok";
    if (planned === "429") return answer({ ok: false, error: "ratelimited" }, 429, { "retry-after": "1" });
    if (planned === "500") return void response.writeHead(500).end("<html>");
    if (planned === "slow") await setTimeout(500);
    if (!["ok", "cut", "hang", "slow"].includes(planned)) return answer({ ok: false, error: planned });
    const known = channel.messages.find((one) => one.ts === ts);
    if (name === "chat.update" && known === undefined)
      return answer({ ok: false, error: "message_not_found" });
    const shown = known ?? { ts: `${++count}.000001`, text: "", edits: [] };
    if (known === undefined) channel.messages.push(shown);
    else shown.edits.push(known.text);
    Object.assign(shown, message);
    if (planned === "cut") return void response.destroy();
    if (planned === "hang") return;
    answer({ ok: true, channel: id, ts: shown.ts });
  });
  await once(http.listen(0, "127.0.0.1"), "listening");
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
}
