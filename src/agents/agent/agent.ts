/**
 * The `Agent` actor: the identity of one agent (persona, projects) and the index of its conversations.
 *
 * IDENT-1  An agent is created once. Its id never refers to another agent.
 * IDENT-2  A persona that does not resolve is refused when it is given, not when it is used.
 * IDENT-3  A declaration in code changes the agent only if it differs from the declaration before. What was changed over
 *          HTTP stays until then.
 */

import { z } from "zod";
import type { DeadLetterWriter } from "../../d1/dead-letters.ts";
import type { Directory } from "../../d1/directory.ts";
import { parseReference } from "../../library/reference.ts";
import { parsePersonaSource } from "../../library/resolve.ts";
import { systemClock } from "../../ports/system.ts";
import { durableStorage } from "../../ports/workers/durable-storage.ts";
import {
  type AgentApi,
  type AgentIdentity,
  CONVERSATION_OPENED,
  type CreateAgent,
} from "../../protocol/agent-api.ts";
import type { Persona, PersonaSource, VersionChain } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { asDone, asResult, DramatisError } from "../../shared/errors.ts";
import { agentIdSchema, definitionIdSchema } from "../../shared/id-schemas.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { canonicalJson, type Json } from "../../shared/json.ts";
import type { PageOptions } from "../../shared/page.ts";
import { mayAuthor, type Principal } from "../../shared/principal.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { toIso } from "../../shared/time.ts";
import { validate } from "../../shared/validation.ts";
import { Mirror } from "../base/mirror/mirror.ts";
import { SessionAgent } from "../base/session-agent.ts";
import { Wakeups } from "../base/timers/wakeups.ts";
import { AgentStore } from "./store.ts";

/** The ports of an application's agents. */
export interface AgentClassPorts<Env> {
  /** Resolves a persona of a tenant. Throws `NOT_FOUND` or `INVALID_INPUT` if that fails. */
  resolve(env: Env, tenant: string, persona: Persona | DefinitionReference): Promise<VersionChain>;
  /** `null` where there is no directory. */
  directory(env: Env): Directory | null;
  deadLetters(env: Env): DeadLetterWriter | null;
}

const projectIds = z.array(definitionIdSchema).min(1, "Give at least one project.").max(100).optional();
const createSchema = z.strictObject({ id: agentIdSchema, persona: z.unknown(), projectIds });
const changeSchema = z.strictObject({ persona: z.unknown().optional(), projectIds });

/** Returns the class `Agent` of an application. */
export function createAgentClass<Env extends Cloudflare.Env>(
  ports: AgentClassPorts<Env>,
): new (
  ctx: DurableObjectState,
  env: Env,
) => SessionAgent<Env> & AgentApi {
  return class Agent extends SessionAgent<Env> implements AgentApi {
    readonly #store = new AgentStore(
      durableStorage(this.ctx.storage),
      () => this.mailboxAddress?.id ?? this.name,
    );
    readonly #wakeups = new Wakeups({ directory: () => this.#listing.wake() });
    readonly #listing = new Mirror({
      clock: systemClock,
      wakeup: this.#wakeups.named("directory"),
      put: async () => ports.directory(this.env)?.putAgent(this.#store.identity()),
      changedAt: () => Date.parse(this.#store.identity().updatedAt),
    });

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      this.lifecycle.use(this.#wakeups);
      this.mailbox.receives(CONVERSATION_OPENED, z.strictObject({}), (_, { envelope: { from } }) => {
        if (from.kind !== "conversation") {
          throw new DramatisError("INVALID_INPUT", "Only a conversation can send this envelope.");
        }
        this.#store.addConversation(from.id, systemClock.now());
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
      return ports.deadLetters(this.env);
    }

    async create(principal: Principal, input: CreateAgent, { isDeclaration = false } = {}) {
      return asResult(async () => {
        checkAuthor(principal);
        const { tenant } = principal;
        const { id, persona, projectIds = ["default"] } = validate(createSchema, input);
        const checked = await this.#checkPersona(persona, tenant);
        const now = toIso(systemClock.now());
        const identity = { id, tenant, persona: checked, projectIds, createdAt: now, updatedAt: now };
        if (isDeclaration) return this.#declare(identity);
        await this.#commit(() => this.#store.create(identity));
        return identity;
      });
    }

    /** Creates the agent, or changes it if the declaration is new (IDENT-3). */
    async #declare(declared: AgentIdentity): Promise<AgentIdentity> {
      const { persona, projectIds } = declared;
      // SAFETY: a persona has passed its schema, which admits only JSON values.
      const hash = await sha256Hex(canonicalJson({ persona, projectIds } as unknown as Json));
      const current = this.#store.find();
      if (current !== undefined && this.#store.declaration() === hash) return current;
      const next = current === undefined ? declared : changed(current, { persona, projectIds });
      await this.#commit(() => this.#store.declare(next, hash));
      return next;
    }

    async identity() {
      return asResult(() => this.#store.identity());
    }

    async update(principal: Principal, change: { persona?: PersonaSource; projectIds?: string[] }) {
      return asResult(async () => {
        checkAuthor(principal);
        const { persona: given, projectIds } = validate(changeSchema, change);
        const persona = given === undefined ? undefined : await this.#checkPersona(given, principal.tenant);
        const identity = changed(this.#store.identity(), defined({ persona, projectIds }));
        await this.#commit(() => this.#store.update(identity));
        return identity;
      });
    }

    async persona(version?: number) {
      return asResult(async () => {
        const { persona, projectIds, tenant } = this.#store.identity();
        const source = version !== undefined && "library" in persona ? { ...persona, version } : persona;
        return { chain: await ports.resolve(this.env, tenant, source), projectIds };
      });
    }

    async conversations(options?: PageOptions) {
      return asResult(() => this.#store.conversations(options));
    }

    /**
     * Serves conversations of release 0.1.0, which call this where later ones send `conversation.opened`. During a deploy
     * such a conversation may still run when its agent is already new. Repeating it changes nothing.
     */
    async addConversation(conversationId: string) {
      return asDone(() => {
        this.#store.addConversation(conversationId, systemClock.now());
      });
    }

    /** Returns a persona as stored. Throws `INVALID_INPUT` if it does not parse or resolve. */
    async #checkPersona(value: unknown, tenant: string): Promise<AgentIdentity["persona"]> {
      try {
        const source = parsePersonaSource(value, "/persona");
        await ports.resolve(this.env, tenant, source);
        return typeof source === "string" ? parseReference(source) : source;
      } catch (error) {
        if (!(error instanceof DramatisError) || error.code !== "NOT_FOUND") throw error;
        const { message } = error;
        throw new DramatisError("INVALID_INPUT", message, { errors: [{ path: "/persona", message }] });
      }
    }

    /** Commits a change of the identity, and publishes it to the directory. */
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

/** The directory keeps the newest update, so its time must ascend even if the clock does not. */
function changed(
  current: AgentIdentity,
  change: Partial<Pick<AgentIdentity, "persona" | "projectIds">>,
): AgentIdentity {
  const updatedAt = Math.max(systemClock.now(), Date.parse(current.updatedAt) + 1);
  return { ...current, ...change, updatedAt: toIso(updatedAt) };
}

function checkAuthor(principal: Principal): void {
  if (!mayAuthor(principal))
    throw new DramatisError("FORBIDDEN", "Only authors may create and change agents.");
}
