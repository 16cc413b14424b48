/**
 * The `Agent` actor: the identity of one agent (persona, projects) and the index of its conversations.
 *
 * IDENT-1  An agent is created once. Its id never refers to another agent.
 * IDENT-2  An unresolvable persona is refused when it is set, not when it is used.
 * IDENT-3  A declaration in code changes the agent only if it differs from the previous declaration. Until then, changes over HTTP stay.
 * IDENT-4  Lists mark an agent whose persona no longer exists, and errors do not offer it. They have the place of an agent in the code.
 */
import { z } from "zod";
import type { Directory } from "../../d1/directory.ts";
import type { IndexPool } from "../../memory/corpus/index/pool.ts";
import { systemClock } from "../../ports/system.ts";
import type { VectorIndex } from "../../ports/vector-index.ts";
import {
  type AgentApi,
  type AgentChange,
  type AgentIdentity,
  type AgentView,
  agentChange,
  CONVERSATION_OPENED,
  type CreateAgent,
  createAgent,
} from "../../protocol/agent-api.ts";
import { BUDGET_LEASE, leaseRequestSchema } from "../../protocol/budget-lease.ts";
import type { ImportPart } from "../../protocol/data-api.ts";
import { ageOf, type Envelope } from "../../protocol/envelope.ts";
import { checkNew } from "../../protocol/location-policy.ts";
import type { Answer, Attempt } from "../../protocol/mailbox-api.ts";
import { MEMORY_SOURCES_ERASED } from "../../protocol/memory.ts";
import { defined } from "../../shared/defined.ts";
import { asDone, asResult, conflict, invalid } from "../../shared/errors.ts";
import { canonicalJson, type Json } from "../../shared/json.ts";
import { jurisdictionOf } from "../../shared/location.ts";
import { MAX_PAGE_SIZE, type PageOptions } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { toIso } from "../../shared/time.ts";
import { validateRequest } from "../../shared/validation.ts";
import type { Application } from "../base/application.ts";
import { Copy } from "../base/copies/copy.ts";
import type { DurableActor } from "../base/durable-actor.ts";
import { durableActor } from "../base/lookup/durable-actors.ts";
import { NotNow } from "../base/mailbox/handlers.ts";
import { newOperationId } from "../base/mailbox/operation-id.ts";
import { AgentBackup } from "./backup.ts";
import { changed, checkAgentSize, checkAuthor, checkedPersona, type Personas } from "./checks.ts";
import { LeaseStore } from "./lease-store.ts";
import { LEASE_WAIT_MS, mayFitLater } from "./leases.ts";
import { AgentMemory, type MemoryStores } from "./memory.ts";
import { MemoryAgent, takeMemories } from "./memory-agent.ts";
import type { MemoryEmbedders } from "./memory-embedder.ts";
import { AgentRemoval } from "./removal.ts";
import { type ConsolidationPorts, runConsolidation } from "./run-consolidation.ts";
import { AgentStore } from "./store.ts";

export interface AgentApplication
  extends Personas,
    Pick<Application, "executor" | "directory" | "stores" | "actors" | "location"> {
  memory: {
    stores: MemoryStores;
    embedders(agent: { tenant: string; id: string }): MemoryEmbedders;
    /** The vector store, or `null` if the deployment has no vector store. */
    vectors(): VectorIndex | null;
    /** Shared by all agents of an isolate. */
    pool: IndexPool;
  };
}

/** Envelopes that only report to an agent. */
const REPORTS: ReadonlySet<string> = new Set([CONVERSATION_OPENED, MEMORY_SOURCES_ERASED]);

export function createAgentClass<Env extends Cloudflare.Env>(
  application: (env: Env) => AgentApplication,
): new (
  ctx: DurableObjectState,
  env: Env,
) => DurableActor<Env> & AgentApi {
  return class Agent extends MemoryAgent<Env> implements AgentApi {
    readonly #application = application(this.env);
    readonly #store = new AgentStore(this.platform, () => this.mailboxAddress?.id ?? this.name);
    readonly #leases = new LeaseStore(this.platform);
    readonly #memory: AgentMemory = new AgentMemory({
      ...this.platform,
      search: {
        pool: this.#application.memory.pool,
        vectors: this.#application.memory.vectors,
        embedder: () => this.#embedders().embedder(),
        formerEmbedder: (id) => this.#embedders().formerEmbedder(id),
      },
      stores: this.#application.memory.stores,
      wakeup: this.wakeups.add("memory", () => (this.#removal.isDeleted ? null : this.#memory.wake())),
      upkeep: {
        upkeep: () => {
          const { tenant, persona } = this.#store.identity();
          return this.#application.upkeep(tenant, persona);
        },
        run: (hook, call) => {
          const coordinator: ConsolidationPorts["coordinator"] = (address) => durableActor(this.env, address);
          const [executor, agent] = [this.#application.executor, this.#store.identity()];
          return runConsolidation({ executor, clock: systemClock, coordinator, agent }, hook, call);
        },
        newOperationId,
        wakeup: this.ownWakeup("upkeep", () => (this.#removal.isDeleted ? null : this.#memory.upkeep.wake())),
      },
      agent: () => this.#store.identity(),
    });

    readonly #listing: Copy = new Copy({
      clock: systemClock,
      wakeup: this.ownWakeup("listing", () =>
        this.#store.find() === undefined ? null : this.#listing.wake(),
      ),
      directory: this.#application.directory,
      put: (directory: Directory) => directory.putAgent(this.#store.identity()),
      changedAt: () => Date.parse(this.#store.identity().updatedAt),
    });

    readonly #removal = new AgentRemoval({
      ...this.platform,
      store: this.#store,
      wakeup: this.wakeups.add("removal", () => this.#removal.wake()),
      stores: this.#application.stores,
      retainVectors: () => this.#memory.retainVectors(),
      forgetMail: () => this.mailbox.forget(),
      conversation: this.#application.actors.conversation,
    });

    readonly #backup = new AgentBackup({
      ...this.platform,
      store: this.#store,
      corpus: this.#memory.corpus,
      wakeup: this.wakeups.add("import", () => this.#backup.wake()),
      check: async (given) => {
        const { tenant, id } = this.mailboxAddress ?? { tenant: "", id: "" };
        checkNew(id, this.#application.location(tenant), "/id");
        return this.#checked(tenant, { ...given, id });
      },
      commit: (change) => this.#commit(change),
    });

    constructor(ctx: DurableObjectState, env: Env) {
      super(ctx, env);
      takeMemories(this.mailbox, this.#memory, (id) => this.#store.removeConversation(id));
      this.mailbox.receives(CONVERSATION_OPENED, z.strictObject({}), (_, { envelope: { from } }) => {
        if (from.kind !== "conversation") throw invalid("Only a conversation can send this envelope.");
        this.#store.addConversation(from.id, systemClock.now());
        return null;
      });
      this.mailbox.receives(BUDGET_LEASE, leaseRequestSchema, (request, { envelope }) => {
        const { from } = envelope;
        if (from.kind !== "conversation") throw invalid("Only a conversation can send this envelope.");
        const { budget = {} } = this.#store.identity();
        const answer = this.#leases.apply(from.id, budget, request);
        const isNew = ageOf(envelope.operationId, systemClock.now()) < LEASE_WAIT_MS;
        if (answer.excess !== undefined && request.ahead !== true && mayFitLater(answer.excess) && isNew)
          throw new NotNow(
            "Other conversations have reserved the remaining budget. Try again when their turns have ended.",
          );
        // SAFETY: an answer is plain data.
        return answer as unknown as Json;
      });
    }

    protected override get mailboxKind() {
      return "agent";
    }

    protected override get memory() {
      return this.#memory;
    }

    protected override async checkExists() {
      if (this.#store.find() !== undefined) return;
      const { tenant, id } = this.mailboxAddress ?? { tenant: "", id: this.name };
      const agents = this.#application.directory()?.agents(tenant, { limit: MAX_PAGE_SIZE });
      const { items } = (await agents?.catch(() => undefined)) ?? { items: [] };
      const registry = this.#application.registry(tenant);
      const usable = items.map(async ({ id: known, persona }) => {
        const isGone = "library" in persona && (await registry.lacksPersona(persona));
        return known === id || isGone ? [] : known;
      });
      this.#store.identity((await Promise.all(usable)).flat());
    }

    protected override checkStorage() {
      super.checkStorage();
      this.#store.checkVersion();
    }

    async create(principal: Principal, input: CreateAgent, { isDeclaration = false } = {}) {
      return asResult(async () => {
        checkAuthor(principal);
        const identity = await this.#checked(principal.tenant, input);
        if (isDeclaration) return this.#declare(identity);
        checkNew(identity.id, this.#application.location(principal.tenant), "/id");
        await this.#commit(() => this.#store.create(identity));
        return identity;
      });
    }

    #embedders() {
      return this.#application.memory.embedders(this.#store.identity());
    }

    /** Returns the identity of a new agent. Throws `INVALID_INPUT`. */
    async #checked(tenant: string, input: unknown): Promise<AgentIdentity> {
      const request = validateRequest(createAgent, input);
      checkAgentSize(request);
      const { id, persona, projectIds = ["default"], budget, metadata, locationHint } = request;
      this.checkPlace();
      const checked = await checkedPersona(this.#application, persona, tenant, budget);
      const now = toIso(systemClock.now());
      return {
        id,
        tenant,
        persona: checked,
        projectIds,
        ...defined({ budget, metadata, jurisdiction: jurisdictionOf(id), locationHint }),
        createdAt: now,
        updatedAt: now,
      };
    }

    /** Creates the agent, or changes it if the declaration is new (IDENT-3). */
    async #declare(declared: AgentIdentity): Promise<AgentIdentity> {
      const { persona, projectIds, budget, metadata } = declared;
      const declaration = { persona, projectIds, ...defined({ budget, metadata }) };
      // SAFETY: a persona has passed its schema, which admits only JSON values.
      const hash = await sha256Hex(canonicalJson(declaration as unknown as Json));
      const current = this.#store.find();
      if (this.#removal.isDeleted)
        throw conflict(`The agent "${declared.id}" was deleted. Declare another id.`);
      if (current !== undefined && this.#store.declaration() === hash) return current;
      if (current === undefined) checkNew(declared.id, this.#application.location(declared.tenant), "/id");
      const next = current === undefined ? declared : changed(systemClock.now(), current, declaration);
      await this.#commit(() => this.#store.declare(next, hash));
      return next;
    }

    async remove(principal: Principal) {
      return asDone(async () => {
        await this.checkExists();
        checkAuthor(principal);
        return this.#removal.remove();
      });
    }

    async exportLines(principal: Principal) {
      return this.ofAgent(() => {
        checkAuthor(principal);
        return this.#backup.export();
      });
    }

    async importLines(principal: Principal, part: ImportPart) {
      return asDone(() => {
        checkAuthor(principal);
        return this.#backup.import(part);
      });
    }

    /** A deleted agent accepts and drops reports of its conversations. */
    override async receive(envelope: Envelope, attempt: Attempt): Promise<Answer> {
      if (REPORTS.has(envelope.type) && this.#removal.isKnownDeleted) return { type: "done", result: null };
      return super.receive(envelope, attempt);
    }

    async identity() {
      return this.ofAgent(() => this.#view());
    }

    #view(): AgentView {
      return { ...this.#store.identity(), ...this.#leases.view() };
    }

    async update(principal: Principal, change: AgentChange) {
      return asResult(async () => {
        checkAuthor(principal);
        const request = validateRequest(agentChange, change);
        checkAgentSize(request);
        const { persona: given, projectIds, budget, metadata } = request;
        await this.checkExists();
        const before = this.#store.identity();
        const limits = (budget === undefined ? before.budget : budget) ?? undefined;
        const source = given ?? (budget?.usd === undefined ? undefined : before.persona);
        const checked =
          source === undefined
            ? undefined
            : await checkedPersona(this.#application, source, principal.tenant, limits);
        const persona = given === undefined ? undefined : checked;
        const { budget: current, metadata: facts, ...others } = this.#store.identity();
        const next = {
          ...others,
          ...defined({
            budget: (budget === undefined ? current : budget) ?? undefined,
            metadata: (metadata === undefined ? facts : metadata) ?? undefined,
          }),
        };
        const identity = changed(systemClock.now(), next, defined({ persona, projectIds }));
        await this.#commit(() => this.#store.update(identity));
        return this.#view();
      });
    }

    async persona(version?: number, projects?: readonly string[]) {
      return this.ofAgent(async () => {
        const { persona, projectIds, tenant, budget } = this.#store.identity();
        const source = version !== undefined && "library" in persona ? { ...persona, version } : persona;
        const project = projects?.find((one) => projectIds.includes(one)) ?? projectIds[0];
        const chain = await this.#application.resolve(tenant, source, project);
        return { chain, projectIds, ...(budget === undefined ? {} : { leased: true as const }) };
      });
    }

    async conversations(options?: PageOptions) {
      return this.ofAgent(() => this.#store.conversations(options));
    }

    /** Commits a change of the identity, and publishes it to the directory. */
    async #commit(change: () => void): Promise<void> {
      const { armed } = this.ctx.storage.transactionSync(() => {
        change();
        return { armed: Promise.all([this.#listing.note(), this.#memory.upkeep.personaChanged()]) };
      });
      await armed;
      await this.#listing.publish();
    }
  };
}
