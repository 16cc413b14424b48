/**
 * The `Agent` actor: the identity of one agent (persona, projects) and the index of its conversations.
 *
 * IDENT-1  An agent is created once; its id never means another.
 * IDENT-2  A persona that does not resolve is refused when it is given, not when it is used.
 */

import { z } from "zod";
import type { DeadLetterDirectory } from "../../d1/dead-letters.ts";
import type { Directory } from "../../d1/directory.ts";
import { parseReference } from "../../library/reference.ts";
import type { Registry } from "../../library/registry.ts";
import { parsePersonaSource, resolveChain } from "../../library/resolve.ts";
import type { ModelProfile } from "../../model/profile.ts";
import { systemClock } from "../../ports/system.ts";
import { DurableKeyValue, DurableSqlDatabase } from "../../ports/workers/durable-storage.ts";
import type { AgentApi, AgentIdentity, CreateAgent } from "../../protocol/agent-api.ts";
import type { Persona } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { asResult, DramatisError } from "../../shared/errors.ts";
import {
  CHOSEN_ID_RULE,
  type DefinitionReference,
  isChosenId,
  isConversationId,
} from "../../shared/identifiers.ts";
import type { PageOptions } from "../../shared/page.ts";
import { mayAuthor, type Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import { Mirror } from "../base/mirror/mirror.ts";
import { SessionAgent } from "../base/session-agent.ts";
import { Wakeups } from "../base/timers/wakeups.ts";
import { CONVERSATION_OPENED, conversationOpenedSchema, openedConversation } from "./envelopes.ts";
import { AgentStore } from "./store.ts";

/** What an application gives its agents. */
export interface AgentClassPorts<Env> {
  /** What the agents of a tenant can refer to. */
  registry(env: Env, tenant: string): Registry;
  defaultProfile(env: Env): ModelProfile;
  /** A profile with what the environment adds to it. */
  completeProfile(env: Env, profile: ModelProfile): ModelProfile;
  /** `null` where there is no directory. */
  directory(env: Env): Directory | null;
  deadLetters(env: Env): DeadLetterDirectory | null;
}

const chosenId = z.string().refine(isChosenId, CHOSEN_ID_RULE);
const projectIds = z.array(chosenId).min(1, "Give at least one project.").max(100);
const createSchema = z.strictObject({
  id: chosenId,
  persona: z.unknown(),
  projectIds: projectIds.optional(),
});
const changeSchema = z.strictObject({ persona: z.unknown().optional(), projectIds: projectIds.optional() });

/** The class `Agent` of an application. */
export function createAgentClass<Env extends Cloudflare.Env>(
  services: AgentClassPorts<Env>,
): new (
  ctx: DurableObjectState,
  env: Env,
) => SessionAgent<Env> & AgentApi {
  return class Agent extends SessionAgent<Env> implements AgentApi {
    readonly #store = new AgentStore(
      new DurableSqlDatabase(this.ctx.storage),
      new DurableKeyValue(this.ctx.storage),
    );
    readonly #wakeups = new Wakeups({ directory: () => this.#listing.wake() });
    readonly #listing = new Mirror({
      clock: systemClock,
      wakeup: this.#wakeups.named("directory"),
      put: async () => services.directory(this.env)?.putAgent(this.#store.identity()),
      changedAt: () => Date.parse(this.#store.identity().updatedAt),
    });

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      this.lifecycle.use(this.#wakeups);
      this.mailbox.receives(CONVERSATION_OPENED, conversationOpenedSchema, (_, { envelope }) => {
        this.#store.addConversation(openedConversation(envelope), systemClock.now());
        return null;
      });
    }

    protected override get mailboxKind() {
      return "agent";
    }

    protected override checkStorage() {
      super.checkStorage();
      this.#store.checkVersion();
    }

    protected override deadLetterDirectory() {
      return services.deadLetters(this.env);
    }

    async create(principal: Principal, input: CreateAgent) {
      return asResult(async () => {
        checkAuthor(principal);
        const checked = validate(createSchema, input);
        const persona = await this.#checkedPersona(checked.persona, principal.tenant);
        const now = new Date(systemClock.now()).toISOString();
        const identity: AgentIdentity = {
          id: checked.id,
          tenant: principal.tenant,
          persona,
          projectIds: checked.projectIds ?? ["default"],
          createdAt: now,
          updatedAt: now,
        };
        await this.#commit(() => this.#store.create(identity));
        return identity;
      });
    }

    async identity() {
      return asResult(() => this.#store.identity());
    }

    async update(
      principal: Principal,
      change: { persona?: Persona | DefinitionReference; projectIds?: string[] },
    ) {
      return asResult(async () => {
        checkAuthor(principal);
        const checked = validate(changeSchema, change);
        const persona =
          checked.persona === undefined
            ? undefined
            : await this.#checkedPersona(checked.persona, principal.tenant);
        const current = this.#store.identity();
        // The directory keeps the newest: an update is newer than the one before, whatever the clock says.
        const updatedAt = Math.max(systemClock.now(), Date.parse(current.updatedAt) + 1);
        const identity: AgentIdentity = {
          ...current,
          ...defined({ persona, projectIds: checked.projectIds }),
          updatedAt: new Date(updatedAt).toISOString(),
        };
        await this.#commit(() => this.#store.update(identity));
        return identity;
      });
    }

    async persona(version?: number) {
      return asResult(async () => {
        const { persona, projectIds, tenant } = this.#store.identity();
        const source = version !== undefined && "library" in persona ? { ...persona, version } : persona;
        return { chain: await this.#resolve(source, tenant), projectIds };
      });
    }

    async conversations(options?: PageOptions) {
      return asResult(() => this.#store.conversations(options));
    }

    /**
     * For conversations of release 0.1.0, which call this where later ones send `conversation.opened`: during a deploy
     * such a conversation may still run when its agent is already new. Twice is once.
     */
    async addConversation(conversationId: string) {
      return asResult(() => {
        if (!isConversationId(conversationId))
          throw new DramatisError("INVALID_INPUT", "Give a conversation id.");
        this.#store.addConversation(conversationId, systemClock.now());
        return null;
      });
    }

    #resolve(persona: Persona | DefinitionReference, tenant: string) {
      const { env } = this;
      return resolveChain(services.registry(env, tenant), persona, services.defaultProfile(env), (profile) =>
        services.completeProfile(env, profile),
      );
    }

    /** A persona as it is stored. Throws `INVALID_INPUT` if it does not parse or names what does not exist. */
    async #checkedPersona(value: unknown, tenant: string): Promise<AgentIdentity["persona"]> {
      try {
        const source = parsePersonaSource(value, "/persona");
        await this.#resolve(source, tenant);
        return typeof source === "string" ? parseReference(source) : source;
      } catch (error) {
        if (!(error instanceof DramatisError) || error.code !== "NOT_FOUND") throw error;
        const { message } = error;
        throw new DramatisError("INVALID_INPUT", message, { errors: [{ path: "/persona", message }] });
      }
    }

    /** Commits a change of the identity, and tells the directory of it. */
    async #commit(change: () => void): Promise<void> {
      const { armed } = this.ctx.storage.transactionSync(() => {
        change();
        return { armed: this.#listing.note() };
      });
      await armed;
      await this.#listing.publish();
    }
  };
}

function checkAuthor(principal: Principal): void {
  if (!mayAuthor(principal))
    throw new DramatisError("FORBIDDEN", "Only authors may create and change agents.");
}
