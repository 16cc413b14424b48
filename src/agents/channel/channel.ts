/** The `Channel` actor: a thread of a channel, such as a thread of Slack or of mails. It starts turns and posts answers. */
import {
  type ChannelAdapter,
  type ChannelApi,
  type ChannelInput,
  channelInput,
} from "../../protocol/channels.ts";
import { charactersOf } from "../../protocol/ids.ts";
import { newConversationIdOf } from "../../protocol/location-policy.ts";
import { CONVERSATION_FRAMES, conversationFrames } from "../../protocol/subscribers.ts";
import { asDone, invalid } from "../../shared/errors.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { validateRequest } from "../../shared/validation.ts";
import type { Application } from "../base/application.ts";
import { DurableActor } from "../base/durable-actor.ts";
import { ChannelRuntime } from "./runtime.ts";
import type { ChannelRecord } from "./store.ts";

export interface ChannelApplication extends Pick<Application, "actors" | "location"> {
  /** Throws `UNAVAILABLE`, retriable, if the application has no such channel. */
  adapter(channel: string): ChannelAdapter;
  /** The address of the server, which has the console; absent if it is unknown. */
  server?: string | undefined;
}

export function createChannelClass<Env extends Cloudflare.Env>(
  application: (env: Env) => ChannelApplication,
): new (
  ctx: DurableObjectState,
  env: Env,
) => DurableActor<Env> & ChannelApi {
  return class Channel extends DurableActor<Env> implements ChannelApi {
    readonly #application = application(this.env);

    readonly #runtime = new ChannelRuntime({
      ...this.platform,
      armWakeup: this.wakeups.add("channel", () => {
        this.#runtime.reconcile();
        return this.#runtime.dueIn;
      }).arm,
      adapter: (channel) => this.#application.adapter(channel),
      server: this.#application.server,
      conversation: (tenant, id) => this.#application.actors.conversation(tenant, id),
      conversationIdOf: (...of) => this.#conversationIdOf(...of),
      self: () => {
        const address = this.mailboxAddress;
        if (address === null) throw invalid("The actor of a thread needs the name `{tenant}:{id}`.");
        return address;
      },
    });

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      this.mailbox.receives(CONVERSATION_FRAMES, conversationFrames, (body, { envelope, afterCommit }) => {
        this.#runtime.receive(body, envelope.from.id, afterCommit);
        return null;
      });
    }

    protected override get mailboxKind() {
      return "channel";
    }

    protected override checkStorage() {
      super.checkStorage();
      this.#runtime.store.find();
    }

    protected override get work() {
      return this.#runtime;
    }

    async take(input: ChannelInput) {
      return asDone(async () => {
        const checked = validateRequest(channelInput, input);
        // Ids of events may be long, and may name people.
        await this.#runtime.take({ ...checked, id: await sha256Hex(checked.id) });
      });
    }

    async #conversationIdOf(
      { tenant, channel, thread, agentId, generation }: ChannelRecord,
      owner: string,
    ): Promise<string> {
      const key = JSON.stringify([tenant, channel, thread, agentId, generation, owner]);
      const plain = `conv_${charactersOf(await sha256Hex(key))}`;
      return newConversationIdOf(plain, agentId, {}, this.#application.location(tenant));
    }
  };
}
