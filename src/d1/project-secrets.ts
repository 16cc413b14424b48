/**
 * The secrets of projects: credentials that requests of the project's actions carry to certain hosts.
 *
 * SECRET-1  A secret goes only to its hosts, in its header. Nobody can read its value: no route, no model, no expression and no action.
 * SECRET-2  D1 has only encrypted values. A value that was copied to another project, id, host or header cannot be used.
 * SECRET-3  If a secret cannot be read, no request is sent without it.
 */
import { CompactEncrypt, compactDecrypt } from "jose";
import type { ProjectSecretBody, ProjectSecretView } from "../protocol/project-secrets.ts";
import { DramatisError, unavailable } from "../shared/errors.ts";
import { addressProblem } from "../shared/host-rules.ts";
import { toIso } from "../shared/time.ts";
import { D1Queries } from "./queries.ts";

const MAX_SECRETS = 50;
const MIN_KEY_BYTES = 32;

const PUT = `INSERT INTO project_secrets (tenant, project, id, target, sealed, updated_at)
SELECT tenant, id, ?3, ?4, ?5, ?6 FROM projects
WHERE tenant = ?1 AND id = ?2
  AND (SELECT count(*) FROM project_secrets WHERE tenant = ?1 AND project = ?2 AND id <> ?3) < ${MAX_SECRETS}
ON CONFLICT DO UPDATE SET target = excluded.target, sealed = excluded.sealed, updated_at = excluded.updated_at
RETURNING id`;
const LIST =
  "SELECT id, target, updated_at FROM project_secrets WHERE tenant = ?1 AND project = ?2 ORDER BY id";
const READ = "SELECT id, target, sealed FROM project_secrets WHERE tenant = ?1 AND project = ?2 ORDER BY id";
const REMOVE = "DELETE FROM project_secrets WHERE tenant = ?1 AND project = ?2 AND id = ?3 RETURNING id";

interface ProjectPlace {
  tenant: string;
  projectId: string;
}

type Target = Omit<ProjectSecretBody, "value">;

/** A header of a request. `secret` is the part of its value that must not be shown. */
export interface Credential {
  header: string;
  value: string;
  secret: string;
}

export class D1ProjectSecrets {
  readonly #queries: D1Queries;

  /** `key` encrypts the values. Without it, secrets can be listed and deleted only. */
  constructor(
    database: D1Database,
    private readonly key: string | undefined,
  ) {
    this.#queries = new D1Queries(database);
  }

  /**
   * Stores a secret, and returns it without its value. Returns `undefined` if the project is not there, or has as many secrets as it may have.
   * Throws `UNSUPPORTED` without a key. `now` is in milliseconds since the epoch.
   */
  async put(
    { tenant, projectId }: ProjectPlace,
    id: string,
    { value, ...target }: ProjectSecretBody,
    now: number,
  ): Promise<ProjectSecretView | undefined> {
    const bound = JSON.stringify(target);
    const sealed = await new CompactEncrypt(new TextEncoder().encode(value))
      .setProtectedHeader({ alg: "dir", enc: "A256GCM", for: [tenant, projectId, id, bound] })
      .encrypt(await this.#encryptionKey());
    const [stored] = await this.#queries.change(PUT, tenant, projectId, id, bound, sealed, now);
    return stored === undefined ? undefined : { id, ...target, updatedAt: toIso(now) };
  }

  /** The reason why no secret can be stored or read now; `undefined` with a key. */
  get keyProblem(): string | undefined {
    if (new TextEncoder().encode(this.key).byteLength >= MIN_KEY_BYTES) return undefined;
    return `Secrets of projects need the variable SECRETS_KEY with at least ${MIN_KEY_BYTES} bytes, for example of \`openssl rand -base64 48\`. Set it in .dev.vars or with \`npx wrangler secret put SECRETS_KEY\`, then restart the server.`;
  }

  /** Returns the secrets of a project without their values, by their ids. */
  async list({ tenant, projectId }: ProjectPlace): Promise<ProjectSecretView[]> {
    const rows = await this.#queries.read<{ id: string; target: string; updated_at: number }>(
      ...[LIST, tenant, projectId],
    );
    // SAFETY: only `put` writes this column.
    return rows.map(({ id, target, updated_at }) => ({
      ...{ id, updatedAt: toIso(updated_at) },
      ...(JSON.parse(target) as Target),
    }));
  }

  /** Deletes a secret. Returns `false` if it is not there. */
  async remove({ tenant, projectId }: ProjectPlace, id: string): Promise<boolean> {
    return (await this.#queries.change(REMOVE, tenant, projectId, id)).length > 0;
  }

  /**
   * Returns the credentials of a project for an address (SECRET-1). Of several secrets with one header, the last id counts. Throws `UNAVAILABLE`
   * if a secret cannot be read (SECRET-3).
   */
  async credentials({ tenant, projectId }: ProjectPlace, url: URL): Promise<Credential[]> {
    const rows = await this.#queries.read<{ id: string; target: string; sealed: string }>(
      ...[READ, tenant, projectId],
    );
    const credentials = new Map<string, Credential>();
    for (const { id, target, sealed } of rows) {
      // SAFETY: only `put` writes this column, and the sealed value names it.
      const { hosts, header, prefix = "" } = JSON.parse(target) as Target;
      if (addressProblem(url, hosts) !== null) continue;
      const secret = await this.#open(sealed, [tenant, projectId, id, target]);
      credentials.set(header, { header, value: `${prefix}${secret}`, secret });
    }
    return [...credentials.values()];
  }

  async #open(
    sealed: string,
    place: [tenant: string, project: string, id: string, target: string],
  ): Promise<string> {
    const key = await this.#encryptionKey();
    const opened = await compactDecrypt(sealed, key).catch(() => undefined);
    // The header is authenticated, so a row of another place does not pass (SECRET-2).
    if (JSON.stringify(opened?.protectedHeader.for) === JSON.stringify(place))
      return new TextDecoder().decode(opened?.plaintext);
    const [, project, id] = place;
    throw unavailable(
      `The secret "${id}" of the project "${project}" cannot be read with this SECRETS_KEY. Set the secret again.`,
    );
  }

  /** Returns the key. Throws `UNSUPPORTED` without one. */
  async #encryptionKey(): Promise<Uint8Array> {
    const { keyProblem } = this;
    if (keyProblem !== undefined) throw new DramatisError("UNSUPPORTED", keyProblem);
    const bytes = new TextEncoder().encode(this.key);
    return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  }
}
