/**
 * Takes the events of channels.
 *
 * CHANNEL-8  An event reaches an agent only as the user that the application names for its sender. The user has no roles. An event of a
 *            program, or of a sender without a user, has no effect.
 */
import type { ActorLookup } from "../protocol/actor-lookup.ts";
import {
  CHANNEL_NAME,
  type Channel,
  type ChannelEvent,
  type ChannelMail,
  type ChannelOptions,
  channelEvent,
} from "../protocol/channels.ts";
import { charactersOf } from "../protocol/ids.ts";
import { defined } from "../shared/defined.ts";
import { invalid, unwrap } from "../shared/errors.ts";
import { isUsable, type Principal } from "../shared/principal.ts";
import { sha256Hex } from "../shared/sha256.ts";

interface ChannelPorts {
  actors: Pick<ActorLookup, "channel">;
  /** Counts a request of a user. Throws `RATE_LIMITED`. */
  count(principal: Principal): Promise<void>;
}

/** Returns a function that makes the channels of an application for an environment. Throws `INVALID_INPUT` for a wrong name. */
export function channelsOf<Env>(options: Readonly<Record<string, ChannelOptions<Env>>>) {
  for (const name of Object.keys(options))
    if (!CHANNEL_NAME.test(name))
      throw invalid(
        `The channel ${JSON.stringify(name)} needs a name of 1 to 40 lower-case letters, digits and hyphens that begins with a letter.`,
      );
  const at = (env: Env, { adapter, ...rest }: ChannelOptions<Env>): Channel => ({
    ...rest,
    // A factory that throws stops only its own channel.
    get adapter() {
      return adapter(env);
    },
  });
  return (env: Env): ReadonlyMap<string, Channel> =>
    new Map(Object.entries(options).map(([name, channel]) => [name, at(env, channel)]));
}

/** Passes the events of a verified request to the actors of their threads. Resolves when they are stored. */
export async function takeEvents(
  { actors, count }: ChannelPorts,
  name: string,
  { agent, user, accepts = isForAgent }: Channel,
  events: readonly ChannelEvent[],
): Promise<void> {
  for (const given of events) {
    const event = checkedEvent(name, given);
    if (event.isAutomatic || (event.answer === undefined && !accepts(event))) continue;
    const found = await user(event);
    if (found === null) continue;
    const principal: Principal = { tenant: "local", ...found, roles: [] };
    if (!isUsable(principal)) continue;
    await count(principal);
    const { subject, tenant } = principal;
    const { thread, id, surface, text, answer, isUnproven } = event;
    const key = charactersOf(await sha256Hex(JSON.stringify([name, thread])));
    const actor = await actors.channel(tenant, `${name}-${key}`);
    const input = { channel: name, tenant, agentId: agent, thread, id, subject, surface, text };
    unwrap(await actor.take({ ...input, ...defined({ answer, untrusted: isUnproven }) }));
  }
}

/** Takes a mail by the first channel that its address belongs to. Rejects other mails. */
export async function takeMail(
  ports: ChannelPorts,
  channels: ReadonlyMap<string, Channel>,
  mail: ChannelMail,
): Promise<void> {
  for (const [name, channel] of channels) {
    const events = (await channel.adapter.receiveMail?.(mail)) ?? null;
    if (events !== null) return takeEvents(ports, name, channel, events);
  }
  mail.setReject("No agent has this address.");
}

/** Checks an event of an adapter. Throws `INVALID_INPUT`. */
function checkedEvent(name: string, event: ChannelEvent): ChannelEvent {
  const { data, error } = channelEvent.safeParse(event);
  if (data !== undefined) return data;
  const [issue] = error.issues;
  throw invalid(
    `The adapter of the channel "${name}" returned an event with a wrong \`${issue?.path.join(".")}\`: ${issue?.message}`,
  );
}

function isForAgent({ isDirect, isMention, isUnproven, text }: ChannelEvent): boolean {
  return text.trim() !== "" && (isDirect || isMention || isUnproven === true);
}
