/** One conversation that a release records: its actor plays scenes, then the recording takes all that it has stored. */

import type { ConversationIdentity } from "../../../src/agents/conversation/core/state.ts";
import type { Beginning } from "../../../src/agents/conversation/runtime.ts";
import type { ToolSpec } from "../../../src/model/context.ts";
import type { Persona } from "../../../src/protocol/definitions.ts";
import type { StartTurn } from "../../../src/protocol/requests.ts";
import type { Content } from "../../../src/shared/content.ts";
import { VERSION } from "../../../src/shared/version.ts";
import type { ReplyScript, Script, StepScript } from "../provider-script.ts";
import { dumpStorage, type Recording } from "./format.ts";
import { type Life, Stage } from "./stage.ts";
import { conversationViews } from "./views.ts";

export const RECORDED_USER = "ada";
export const TENANT = "test";

export const say = (text: string): StepScript[] => [{ text }];
export const held = (text: string): StepScript[] => [{ gate: "hold" }, { text }];
export const busy = { status: 503, message: "Busy." };

interface Settings extends Beginning {
  persona?: Persona;
  /** The primary agent; `recorded` when absent. */
  agentId?: string;
  /** The agent has a budget. */
  leased?: true;
  projectId?: string;
  /** The name of the recording when absent. */
  title?: null;
}

interface Message extends Pick<StartTurn, "budget"> {
  id?: string;
  replyToMessageId?: string;
  /** Converts the text to another form of content. */
  as?: (text: string) => Content;
  tools?: ToolSpec[];
  /** More members of the script. */
  script?: Partial<Script>;
}

export class Take {
  readonly stage: Stage;
  life: Life;
  #plays = 0;

  private constructor(readonly name: string) {
    this.stage = new Stage(undefined, seedOf(`${VERSION} ${name}`));
    this.life = this.stage.begin();
  }

  static async begin(name: string, settings: Settings = {}): Promise<Take> {
    const { persona, agentId = "recorded", leased, projectId = "default", title, ...beginning } = settings;
    const take = new Take(name);
    const { stage, life } = take;
    const record = {
      id: `conv_${stage.ids.ulid()}`,
      tenant: TENANT,
      title: title === null ? null : name,
      projectId,
      participants: [
        { type: "user" as const, id: RECORDED_USER },
        { type: "agent" as const, id: agentId },
      ],
      agents: [{ id: agentId, ...(leased && { leased }), chain: await stage.chain(persona) }],
      createdAt: stage.clock.now(),
    } satisfies ConversationIdentity;
    await life.runtime.create(record, beginning);
    return take;
  }

  /** Returns a message with its own script. */
  message(replies: (key: string) => ReplyScript[], more: Message = {}) {
    this.#plays += 1;
    const key = `${VERSION}-${this.name}-${this.#plays}`;
    const { id, as, script, ...data } = more;
    const text = JSON.stringify({ key, ...script, replies: replies(key) } satisfies Script);
    return {
      type: "conversation.user.message" as const,
      ...(id === undefined ? {} : { id }),
      caller: { type: "user" as const, userId: RECORDED_USER },
      data: { content: as?.(text) ?? text, ...data },
    };
  }

  /** Sends a message. */
  async send(...message: Parameters<Take["message"]>) {
    const signal = this.message(...message);
    await this.stage.clock.advance(1_000);
    return this.life.runtime.accept(signal);
  }

  /** Sends a message and waits for the end of its turn. */
  async play(...message: Parameters<Take["send"]>) {
    const started = await this.send(...message);
    await this.stage.until(() => !this.life.runtime.busy);
    return started;
  }

  /** Waits until the journal has this many entries of a type. */
  reached(type: string, count = 1): Promise<void> {
    return this.stage.until(() => this.count(type) >= count);
  }

  /** Returns the number of entries of a type. */
  count(type: string): number {
    const { queries, runtime } = this.life;
    return queries.journal(runtime.state, { limit: 200 }).items.filter((entry) => entry.type === type).length;
  }

  /** Kills and wakes the actor. */
  async die(): Promise<void> {
    this.life = this.stage.begin();
    await this.life.runtime.wake();
  }

  recording(): Recording {
    return recordingOf(this.name, this.stage);
  }
}

/** Returns the recording of a conversation. */
export function recordingOf(name: string, { database, keyValue, clock, life, runs }: Stage): Recording {
  const handles = runs.flatMap(({ input }) => Object(input).handle ?? []);
  const views = conversationViews(life);
  const storage = dumpStorage(database, keyValue);
  const given = handles.length === 0 ? {} : { handles };
  return { name, of: "conversation", now: clock.now(), ...given, storage, views };
}

/** Recordings have their own ids, so that recordings of all releases can coexist. */
export function seedOf(name: string): number {
  return [...name].reduce((seed, character) => Math.imul(seed, 31) + (character.codePointAt(0) ?? 0), 7);
}
