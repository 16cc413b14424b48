/**
 * Slack: events by the SDK's verified webhook, and texts by `chat.postMessage` and `chat.update`.
 *
 * SLACK-1  A request without a valid signature of the last five minutes has no effect.
 * SLACK-2  An answer of Slack is `failed`, and repeated after a rate limit or a fault of Slack. A lost answer is `uncertain`.
 * SLACK-4  The sender is the person in the person's own workspace. A guest of a shared channel is no person of the workspace with the app.
 * SLACK-3  A request for approval has two buttons. The button names the call, and the person who presses it answers.
 */
import { type SlackIngressPayload, slackWebhook } from "agents/experimental/channels/slack";
import { z } from "zod";
import type { ChannelAdapter, ChannelDelivery, ChannelText } from "../../../protocol/channels.ts";
import { type DramatisError, errorText, unavailable } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { eventOf } from "./events.ts";

export interface SlackOptions {
  /** The token of the bot, `xoxb-…`, with the scope `chat:write`. */
  botToken: string;
  /** The signing secret of the app. */
  signingSecret: string;
  /** The address of Slack's API. Default: `https://slack.com/api`. */
  apiUrl?: string;
}

/** The longest text of a block of Markdown. */
const MAX_LENGTH = 12_000;
/** Names of the buttons that the SDK's webhook reads. */
const BUTTONS = [
  { text: "Approve", decision: "approve", action_id: "cloudflare_channels_approve_v1", style: "primary" },
  { text: "Deny", decision: "reject", action_id: "cloudflare_channels_reject_v1", style: "danger" },
] as const;
const PASSING = new Set([
  "ratelimited",
  "rate_limited",
  "service_unavailable",
  "internal_error",
  "fatal_error",
]);

const surfaceSchema = z.looseObject({ channelId: z.string(), threadTs: z.string().optional() });
const answerSchema = z.looseObject({
  ok: z.boolean(),
  error: z.string().optional(),
  ts: z.string().optional(),
  channel: z.string().optional(),
});

/**
 * Connects a Slack app. Without a token or a secret, its requests and texts fail with `UNAVAILABLE`.
 *
 * @example
 * adapter: (env) => slack({ botToken: env.SLACK_BOT_TOKEN, signingSecret: env.SLACK_SIGNING_SECRET })
 */
export function slack({
  botToken,
  signingSecret,
  apiUrl = "https://slack.com/api",
}: SlackOptions): ChannelAdapter {
  const call = async (method: string, body: object, signal?: AbortSignal): Promise<ChannelDelivery> => {
    if (!botToken) throw unset("botToken");
    let response: Response;
    try {
      response = await fetch(`${apiUrl}/${method}`, {
        method: "POST",
        headers: { authorization: `Bearer ${botToken}`, "content-type": "application/json; charset=utf-8" },
        body: JSON.stringify(body),
        redirect: "manual",
        signal: signal ?? null,
      });
    } catch (error) {
      return { status: "uncertain", error: { code: "NETWORK", message: errorText(error) } };
    }
    return resultOf(response);
  };
  return {
    maxLength: MAX_LENGTH,
    async receive(request) {
      if (!signingSecret) throw unset("signingSecret");
      const webhook = slackWebhook({ signingSecret, path: new URL(request.url).pathname });
      const received = await webhook.receive(request);
      if (received === null) return { events: [], response: new Response(null, { status: 404 }) };
      const events = received.events.map(({ event, raw }) => {
        const isMessage = event.type === "message";
        const read = eventOf(
          event,
          isMessage ? textOf(event.message.text, event.message.isMention === true) : "",
        );
        // Slack reports a mention as two events, if the app subscribes to both.
        return { ...read, id: isMessage ? event.message.id : read.id, sender: senderOf(raw) };
      });
      return { events, response: received.response };
    },
    deliver(surface, text, signal) {
      const { channelId, threadTs } = surfaceSchema.parse(surface);
      const thread = threadTs === undefined ? {} : { thread_ts: threadTs };
      return call("chat.postMessage", { channel: channelId, ...thread, ...contentOf(text) }, signal);
    },
    edit(surface: Json, reference, text, signal) {
      const { channelId } = surfaceSchema.parse(surface);
      return call("chat.update", { channel: channelId, ts: reference, ...contentOf(text) }, signal);
    },
  };
}

/** Returns a text as Slack shows it: Markdown, and buttons for an approval. `text` is for notices. */
function contentOf({ text, approval }: ChannelText): object {
  const buttons = approval && {
    type: "actions",
    elements: BUTTONS.map(({ text: label, decision, ...button }) => ({
      ...{ type: "button", text: { type: "plain_text", text: label }, ...button },
      value: JSON.stringify({ v: 1, approvalId: approval.operationId, decision }),
    })),
  };
  // A model must not notify a whole channel, and Slack must not open addresses that a model writes.
  const escaped = text.replaceAll(/<(?=[!@#])/g, "&lt;");
  // The full-width sign is as long as the sign that it replaces.
  const shown = escaped.length <= MAX_LENGTH ? escaped : text.replaceAll(/<(?=[!@#])/g, "＜");
  const blocks = [{ type: "markdown", text: shown }, ...(buttons === undefined ? [] : [buttons])];
  return { text: shown, blocks, unfurl_links: false, unfurl_media: false };
}

/** Reads an answer of Slack's API (SLACK-2). */
async function resultOf(response: Response): Promise<ChannelDelivery> {
  const seconds = Number(response.headers.get("retry-after"));
  const wait = seconds > 0 ? { retryAfterMs: seconds * 1_000 } : {};
  const body = answerSchema.safeParse(await response.json().catch(() => undefined)).data;
  if (response.ok && body?.ok === true) return { status: "delivered", reference: body.ts };
  const code = body?.error ?? `HTTP ${response.status}`;
  const error = { code, message: `Slack answered ${response.status}.` };
  // Slack may have shown the text before a fault.
  if (response.status >= 500 && body === undefined) return { status: "uncertain", error };
  if (response.ok && body === undefined) return { status: "uncertain", error };
  return { status: "failed", retryable: response.status === 429 || PASSING.has(code), ...wait, error };
}

function unset(option: keyof SlackOptions): DramatisError {
  return unavailable(
    `The Slack channel has no \`${option}\`. Set the secret of the Worker that it comes from.`,
  );
}

/** Returns the person of an event in the person's own workspace (SLACK-4). */
function senderOf(raw: SlackIngressPayload): string {
  const { team, user } =
    raw.type === "event_callback"
      ? { team: raw.event.user_team ?? raw.event.team ?? raw.team_id, user: raw.event.user }
      : { team: raw.user?.team_id ?? raw.team?.id, user: raw.user?.id };
  return `slack:${String(team)}:user:${String(user)}`;
}

/** Returns the text of a message without the mention of the bot at its beginning. Slack writes `<` as `&lt;`. */
function textOf(text: string, isMention: boolean): string {
  const rest = isMention ? text.replace(/^\s*<@[A-Z0-9]+>[\s:,]*/, "") : text;
  return rest.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
