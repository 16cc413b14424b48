/** The stores of an application, by the bindings of its environment. A store without its bindings is `null`. */
import { memoryEmbedders } from "./agents/agent/memory-embedder.ts";
import { Artifacts } from "./artifacts/artifacts.ts";
import { ArtifactTypes } from "./artifacts/types.ts";
import { ArtifactVectors } from "./artifacts/vectors.ts";
import { AttachmentStore } from "./attachments/attachment-store.ts";
import { objectsInTime } from "./attachments/objects-in-time.ts";
import { D1Artifacts } from "./d1/artifacts.ts";
import { D1Directory } from "./d1/d1-directory.ts";
import { D1DeadLetters, type DeadLetterDirectory } from "./d1/dead-letters.ts";
import type { Directory } from "./d1/directory.ts";
import { listsMoveOf } from "./d1/move-lists.ts";
import { D1OwnedRows } from "./d1/owned-rows.ts";
import { D1ProjectSecrets } from "./d1/project-secrets.ts";
import { D1ProjectSettings, type KnownSettings } from "./d1/project-settings.ts";
import { D1Repositories } from "./d1/repositories.ts";
import type { TenantDatabases } from "./d1/tenant-databases.ts";
import { D1Triggers, type TriggerDirectory } from "./d1/triggers.ts";
import { GitCaches } from "./git/caches.ts";
import { Projects } from "./git/projects.ts";
import type { DramatisEnv, DramatisOptions } from "./options.ts";
import { systemClock, systemIds } from "./ports/system.ts";
import { R2ObjectStore } from "./ports/workers/r2-object-store.ts";
import { unavailable } from "./shared/errors.ts";

type Embeddings = Parameters<typeof memoryEmbedders>[2];
type EmbeddedAgent = Parameters<typeof memoryEmbedders>[3];

/** `embeddings` returns the models that embed texts. All requests of an isolate share caches, pauses and known settings. */
export function storesOf(options: DramatisOptions, embeddings: (env: DramatisEnv) => Embeddings) {
  const objects = ({ BUCKET }: DramatisEnv) =>
    BUCKET === undefined ? null : objectsInTime(new R2ObjectStore(BUCKET), systemClock);
  const caches = new GitCaches();
  const repositories = (env: DramatisEnv) =>
    withStore(objects(env), (store) =>
      env.DB === undefined
        ? null
        : { rows: new D1Repositories(env.DB), objects: store, ids: systemIds, caches },
    );
  const vectors = (env: DramatisEnv) => options.memory?.vectors?.(env) ?? null;
  const embedding = options.memory?.embedder ?? "static";
  const hasVectors = options.memory?.vectors !== undefined && embedding !== "none";
  const types = new ArtifactTypes(
    options.artifactTypes ?? [],
    hasVectors ? JSON.stringify(embedding) : undefined,
  );
  const embedders = (env: DramatisEnv, agent: EmbeddedAgent) =>
    memoryEmbedders(env, embedding, embeddings(env), agent);
  const vectorPauses = new Map<string, number>();
  const artifactVectors = (env: DramatisEnv, index: D1Artifacts) => {
    const store = hasVectors ? vectors(env) : null;
    const embedder = (tenant: string) => embedders(env, { tenant, id: "" }).embedder();
    return (
      store &&
      new ArtifactVectors({ store, embedder, index, types, pauses: vectorPauses, clock: systemClock })
    );
  };
  const artifacts = (env: DramatisEnv) =>
    withStore(repositories(env), (git) => {
      if (env.DB === undefined) return null;
      const index = new D1Artifacts(env.DB, systemClock);
      const own = artifactVectors(env, index);
      return new Artifacts({ git, index, types, clock: systemClock, ...(own && { vectors: own }) });
    });
  const projects = (env: DramatisEnv) =>
    withStore(repositories(env), (git) => {
      const own = env.DB && artifactVectors(env, new D1Artifacts(env.DB, systemClock));
      return new Projects(git, own);
    });
  const known: KnownSettings = new Map();
  return {
    directory: withDatabases<Directory>((databases) => new D1Directory(databases)),
    deadLetters: withDatabases<DeadLetterDirectory>((databases) => new D1DeadLetters(databases)),
    triggers: withDatabases<TriggerDirectory>((databases) => new D1Triggers(databases)),
    rows: withDatabases((databases) => new D1OwnedRows(databases)),
    settings: ({ DB }: DramatisEnv) =>
      DB === undefined ? null : new D1ProjectSettings(DB, known, systemClock),
    secrets: ({ DB, SECRETS_KEY }: DramatisEnv) =>
      DB === undefined ? null : new D1ProjectSecrets(DB, SECRETS_KEY),
    attachments: (env: DramatisEnv) => withStore(objects(env), (store) => new AttachmentStore(store)),
    ...{ objects, vectors, embedders, artifacts, projects },
  };
}

function withDatabases<Port>(create: (databases: TenantDatabases) => Port) {
  return (env: DramatisEnv): Port | null => {
    const lists = listsMoveOf(env, systemClock);
    return lists === null ? null : create(lists.databases);
  };
}

function withStore<Store, Port>(store: Store | null, create: (store: Store) => Port): Port | null {
  return store === null ? null : create(store);
}

/** Returns the port. Throws `UNAVAILABLE` without it. */
export function required<Port>(port: Port | null, need: string): Port {
  if (port !== null) return port;
  throw unavailable(`${need}; add it to the Worker's configuration.`);
}
