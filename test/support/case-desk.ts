/** A conversation in Node with a scripted provider, for cases that differ in tools, replies and options of a message only. */
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import { startTurnSchema } from "../../src/agents/conversation/inbound/requests.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import type { Library } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { StartTurn } from "../../src/protocol/requests.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { validate } from "../../src/shared/validation.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { scriptedFetch } from "./chat-replies.ts";
import { recordOf } from "./records.ts";

/** Returns the payloads of the reply to a request; `round` counts the requests from 0. */
export type Reply = (round: number, body: JsonObject) => string[];

export interface CaseOptions {
  library: Library;
  toolIds: string[];
  profile?: ModelProfile;
  reply: Reply;
}

export class CaseDesk {
  /** The bodies of the requests to the provider. */
  readonly requests: JsonObject[] = [];
  readonly frames: Frame[] = [];

  private constructor(
    private readonly runtime: ConversationRuntime,
    private readonly clock: VirtualClock,
  ) {}

  static async open({ library, toolIds, profile = CHAT, reply }: CaseOptions): Promise<CaseDesk> {
    const clock = new VirtualClock();
    const database = new NodeSqlDatabase();
    const code = new DeployedCode([library]);
    const fetch = scriptedFetch((body) => {
      // SAFETY: the gateway sends JSON.
      const sent = body as unknown as JsonObject;
      desk.requests.push(sent);
      return reply(desk.requests.length - 1, sent);
    });
    const runtime = new ConversationRuntime({
      database,
      clock,
      keyValue: new NodeKeyValue(database),
      ids: seededIds(5, clock),
      gateway: createModelGateway({ secret: () => undefined, clock, fetch }),
      adapters: adapterFor,
      executor: localExecutor(code, clock),
      gate: () => "allow",
      ...noMail,
      armWakeup: async () => undefined,
      publish: (frames) => void desk.frames.push(...frames),
    });
    const desk: CaseDesk = new CaseDesk(runtime, clock);
    const persona = { identity: { systemPrompt: "Test." }, tools: { toolIds } };
    const chain = await resolveChain(new Registry(code), persona, profile);
    await runtime.create(recordOf(chain, { createdAt: clock.now() }));
    return desk;
  }

  /** Sends a message, and runs all work that follows. */
  async say(input: Partial<StartTurn> = {}) {
    const { idempotencyKey: _key, ...data } = validate(startTurnSchema, { content: "Go", ...input });
    const caller = { type: "user", userId: "ada" } as const;
    const { turnId } = await this.runtime.accept({ type: "conversation.user.message", caller, data });
    await this.settle();
    return new ConversationQueries(this.runtime.store).turn(this.runtime.state, turnId);
  }

  async settle(): Promise<void> {
    for (let idle = 0; idle < 3; ) {
      for (let step = 0; step < 40; step++) await new Promise((resolve) => setImmediate(resolve));
      const isDue = this.clock.pending > 0 && (this.clock.nextDue ?? Infinity) <= this.clock.now() + 2_000;
      if (isDue) await this.clock.runNext();
      idle = isDue ? 0 : idle + 1;
    }
  }
}

const CHAT: ModelProfile = { provider: "openai", modelId: "scripted", baseUrl: "http://provider/v1" };
