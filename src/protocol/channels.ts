/**
 * Channels: places outside of Dramatis where people write to an agent, such as Slack or mail. An adapter reads events and sends texts.
 *
 * CHANNEL-1  An adapter verifies each request. It returns events only of a request that the platform signed.
 */
import { z } from "zod";
import { type DramatisError, notFound, type Result, unavailable } from "../shared/errors.ts";
import type { Json } from "../shared/json.ts";

const answer = z.strictObject({ operationId: z.string().max(200), approved: z.boolean() });

export const channelEvent = z.strictObject({
  /** The same for each repetition of the event. */
  id: z.string().min(1),
  /** The thread of the message. The messages of a thread share a conversation. */
  thread: z.string().min(1),
  /** The place for answers, as JSON. Only the adapter reads it. */
  surface: z.custom<Json>((value) => value !== undefined),
  /** The person, as the channel names it, such as `slack:T1:user:U2` or `ada@example.com`. */
  sender: z.string(),
  /** Text of the message; empty for an answer. */
  text: z.string(),
  /** The person answers a request for approval. */
  answer: answer.exactOptional(),
  /** The message is in a direct conversation with the agent. */
  isDirect: z.boolean(),
  /** The message names the agent. */
  isMention: z.boolean(),
  /** A program wrote the message, such as a notice of absence. It gets no answer. */
  isAutomatic: z.boolean(),
  /** The channel does not prove who the sender is. Memories of such a message are tainted. */
  isUnproven: z.literal(true).exactOptional(),
});

/** A verified event of a channel: a message of a person, or an answer to a request for approval. */
export type ChannelEvent = z.infer<typeof channelEvent>;

/** A text for a channel, in Markdown. */
export interface ChannelText {
  text: string;
  /** The text asks a person to approve a call. An adapter with buttons shows them. */
  approval?: { operationId: string };
}

/** The result of a delivery. `failed`: the person got nothing. `uncertain`: the person may have got it. */
export type ChannelDelivery =
  | { status: "delivered"; reference?: string | undefined }
  | {
      status: "failed";
      retryable: boolean;
      /** Milliseconds before the next attempt, as the platform asks. */
      retryAfterMs?: number;
      error: { code: string; message: string };
    }
  | { status: "uncertain"; reference?: string | undefined; error: { code: string; message: string } };

/** A mail, as Cloudflare Email Routing gives it to a Worker. */
export interface ChannelMail {
  from: string;
  to: string;
  headers: Headers;
  raw: ReadableStream<Uint8Array>;
  setReject(reason: string): void;
}

/** Connects a platform. */
export interface ChannelAdapter {
  /** Verifies and reads a request of the platform (CHANNEL-1). Returns the answer for the platform, and the events. */
  receive?(request: Request): Promise<{ events: ChannelEvent[]; response: Response }>;
  /** Reads a mail. Returns `null` if the mail is not for this channel. */
  receiveMail?(mail: ChannelMail): Promise<ChannelEvent[] | null>;
  /**
   * Sends a text to a surface. Does not throw if the platform answers. An adapter with `edit` returns the `reference` of the text. The signal
   * aborts after 30 seconds.
   */
  deliver(surface: Json, text: ChannelText, signal?: AbortSignal): Promise<ChannelDelivery>;
  /** Replaces a sent text. Absent: the channel sends only complete texts. If it fails, and not `retryable`, another text takes its place. */
  edit?(surface: Json, reference: string, text: ChannelText, signal?: AbortSignal): Promise<ChannelDelivery>;
  /** The longest text, in UTF-16 units. A longer text becomes several. */
  maxLength?: number;
}

/** The user of Dramatis that a person of a channel is. The default tenant is `local`. */
export interface ChannelUser {
  subject: string;
  tenant?: string;
}

export interface Channel {
  agent: string;
  adapter: ChannelAdapter;
  /** Returns the user that the sender of an event is; `null` refuses the event. The user has no roles. */
  user(event: ChannelEvent): ChannelUser | null | Promise<ChannelUser | null>;
  /** Reports whether a message gets an answer. Default: direct messages, mentions, mails, and answers to requests for approval. */
  accepts?(event: ChannelEvent): boolean;
}

/** A channel of an application, for each environment. */
export interface ChannelOptions<Env> extends Omit<Channel, "adapter"> {
  adapter(env: Env): ChannelAdapter;
}

export const channelInput = z.strictObject({
  channel: z.string(),
  tenant: z.string(),
  agentId: z.string(),
  thread: z.string(),
  id: z.string(),
  subject: z.string(),
  surface: z.custom<Json>((value) => value !== undefined),
  text: z.string(),
  answer: answer.exactOptional(),
  untrusted: z.literal(true).exactOptional(),
});

export type ChannelInput = z.infer<typeof channelInput>;

/** The actor of a thread. */
export interface ChannelApi {
  /** Takes an event. A repeated event is a no-op. Resolves when the event is stored. `QUEUE_OVERFLOW` if too many events wait. */
  take(input: ChannelInput): Promise<Result<null>>;
}

/** The name of a channel, in `channels` and in its address. */
export const CHANNEL_NAME = /^[a-z][a-z0-9-]{0,39}$/;

/** The error of an actor whose channel is absent, such as after a rollback. */
export function absentChannel(name: string): DramatisError {
  return unavailable(`The application has no channel ${JSON.stringify(name)} now.`, { retriable: true });
}

/** Returns a channel by its name. Throws `NOT_FOUND`. */
export function channelOf(channels: ReadonlyMap<string, Channel>, name: string): Channel {
  const channel = channels.get(name);
  if (channel !== undefined) return channel;
  throw notFound(`The application has no channel ${JSON.stringify(name)}. Add it to \`channels\`.`);
}
