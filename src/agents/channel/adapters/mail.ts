/**
 * Mail, by Cloudflare Email Routing and the binding of Cloudflare's Email Service, on the SDK's mail channel.
 *
 * EMAIL-1  A mail of a program, such as a notice of absence, gets no answer. An answer says that it is of a program, so that programs do not
 *          answer each other.
 * EMAIL-2  An address is no proof of its sender, so memories of a mail are tainted.
 * EMAIL-3  The sender is the address that the mail server gave, and the answer goes to this address only. Each sender has a thread of his or
 *          her own. So a forged mail shows no conversation of another sender.
 */
import { type EmailSendBinding, email } from "agents/experimental/channels/email";
import type { ChannelAdapter } from "../../../protocol/channels.ts";
import { shorten } from "../../../shared/text.ts";
import { eventOf } from "./events.ts";

export interface MailOptions {
  /** A binding `send_email` of the Worker. */
  binding: EmailSendBinding;
  /** The address of the agent. It takes mails to this address, and answers from it. */
  address: string;
}

/**
 * Connects an address of mail.
 *
 * @example
 * adapter: (env) => mail({ binding: env.EMAIL, address: "help@acme.example" })
 */
export function mail({ binding, address }: MailOptions): ChannelAdapter {
  const channel = email({ binding, from: address, participant: () => null, inbound: { to: address } });
  return {
    async receiveMail(message) {
      const received = await channel.emailIngress?.receive(message);
      if (received === undefined || received === null) return null;
      const sender = message.from.toLowerCase();
      // A returned mail has no sender.
      if (sender === "" || sender === address.toLowerCase()) return [];
      return received.events.map(({ event }) => {
        const read = eventOf(event, textOf(event));
        return {
          ...read,
          ...{ sender, id: `${sender} ${read.id}`, thread: `${sender} ${read.thread}`, isUnproven: true },
          surface: { ...Object(read.surface), from: address, to: sender, headers: AUTOMATIC },
        };
      });
    },
    async deliver(surface, { text }) {
      if (channel.deliver === undefined) throw new TypeError("The SDK's mail channel sends no mails.");
      const place = { channelKey: "mail", version: 1, address: surface, label: address } as const;
      return channel.deliver(place, { markdown: text });
    },
  };
}

/** The header of mails that a program writes (EMAIL-1). */
const AUTOMATIC = { "Auto-Submitted": "auto-replied" };

/** Longest text of a mail, in UTF-16 units. The rest is left out. */
const MAX_LENGTH = 100_000;

function textOf(event: Parameters<typeof eventOf>[0]): string {
  if (event.type !== "message") return "";
  const { title, text, attachments = [], reply } = event.message;
  const names = attachments.map(({ name }) => name ?? "without a name");
  const parts = [
    ...(title === undefined || reply !== undefined ? [] : [title]),
    text,
    ...(names.length === 0 ? [] : [`(Attachments, which cannot be read: ${names.join(", ")})`]),
  ];
  return shorten(parts.filter((part) => part !== "").join("\n\n"), MAX_LENGTH);
}
