/**
 * The D1 databases of a Worker. `DB` has the libraries and repositories of all tenants, and the lists of the tenants without another place. `DB_1`, `DB_2` …
 * have the lists of tenants that were moved there.
 *
 * DATABASE-1  Each statement of a list names one tenant, and runs in the database of that tenant.
 * DATABASE-2  A Worker with one database reads once in an isolate whether tenants have places, and no places if there are none.
 * DATABASE-3  An isolate uses a place for `PLACE_MS` after its request for the place. While a tenant moves, its lists are read from the old database, and writes are refused
 *             with `UNAVAILABLE`. Actors repeat refused writes, so the lists are complete after the move, and no erasure is missed.
 * DATABASE-4  A place with a database that the Worker lacks is `UNAVAILABLE`.
 * DATABASE-5  A refused write takes the next steps of the move. So a move ends without its administrator.
 */
import type { Clock } from "../ports/clock.ts";
import { type DramatisError, unavailable } from "../shared/errors.ts";
import { migrate } from "./migrate.ts";

/** Time from the request for a tenant's place in which an isolate uses the place, in milliseconds. */
export const PLACE_MS = 10_000;

export const FIRST_DATABASE = "DB";
/** The names of further databases. */
const FURTHER_DATABASE = /^DB_[1-9]\d{0,2}$/;

export interface TenantPlace {
  readonly name: string;
  /** The database that the lists move to. */
  readonly target: string | null;
  /** The database with rows that remain to be deleted after a move. */
  readonly left: string | null;
  /** The table and the key of the last copied row. */
  readonly copied: string | null;
  /** Start of the current step of a move, in milliseconds since the epoch. */
  readonly since: number;
}

interface KnownPlace {
  readonly place: TenantPlace | null;
  /** The place is used until this time, in milliseconds since the epoch. */
  readonly until: number;
}

const FIND =
  'SELECT name, target, left_name AS "left", copied, since FROM tenant_databases WHERE tenant = ?1';
const FIND_ANY = "SELECT 1 FROM tenant_databases LIMIT 1";

/** The databases of one isolate. Pass the binding's own objects. */
export class TenantDatabases {
  readonly #known = new Map<string, KnownPlace>();
  #hasPlaces: boolean | undefined;

  /** `databases` has `DB` and the further databases, by the names of their bindings. `advance` takes the next steps of a tenant's move. */
  constructor(
    readonly databases: ReadonlyMap<string, D1Database>,
    private readonly clock: Pick<Clock, "now">,
    private readonly advance: (tenant: string) => Promise<unknown>,
  ) {}

  /** Returns the database to read a tenant's lists from. Throws `UNAVAILABLE`. */
  async forReads(tenant: string): Promise<D1Database> {
    const place = await this.#placeOf(tenant);
    return this.named(place?.name ?? FIRST_DATABASE);
  }

  /** Returns the database to write a tenant's lists to. Throws `UNAVAILABLE`, also while the tenant moves. */
  async forWrites(tenant: string): Promise<D1Database> {
    const place = await this.#placeOf(tenant);
    if (movingTo(place) === null) return this.named(place?.name ?? FIRST_DATABASE);
    await this.advance(tenant);
    throw unavailableLists("The lists of the tenant move to another database. Retry in a moment.");
  }

  /** Returns the database of a binding. Throws `UNAVAILABLE` without it. */
  named(name: string): D1Database {
    const database = this.databases.get(name);
    if (database !== undefined) return database;
    throw unavailableLists(
      `The lists of the tenant are in ${name}. Add this D1 binding to the Worker's configuration.`,
    );
  }

  /** Reads the place of a tenant from `DB`; `null` without an own place. */
  async read(tenant: string): Promise<TenantPlace | null> {
    return (await this.#find(tenant)).place;
  }

  async #placeOf(tenant: string): Promise<TenantPlace | null> {
    if (this.databases.size === 1) {
      this.#hasPlaces ??= (await (await this.#first()).prepare(FIND_ANY).first()) !== null;
      if (!this.#hasPlaces) return null;
    }
    const isCurrent = ({ until }: KnownPlace) => this.clock.now() < until;
    const known = this.#known.get(tenant);
    if (known !== undefined && isCurrent(known)) return known.place;
    const found = await this.#find(tenant);
    if (isCurrent(found)) return found.place;
    throw unavailableLists("The database of the tenant's lists was not found in time. Retry in a moment.");
  }

  /** Reads a place, and remembers it unless the place of a later request is known. */
  async #find(tenant: string): Promise<KnownPlace> {
    const first = await this.#first();
    const until = this.clock.now() + PLACE_MS;
    const place = await first.prepare(FIND).bind(tenant).first<TenantPlace>();
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    const known = this.#known.get(tenant);
    if (known === undefined || known.until <= until) this.#known.set(tenant, { place, until });
    return { place, until };
  }

  async #first(): Promise<D1Database> {
    const first = this.named(FIRST_DATABASE);
    await migrate(first);
    return first;
  }
}

const MAX_KNOWN = 10_000;

/** Returns the database that a tenant moves to, until no old row is left; `null` without a move. */
export function movingTo(place: TenantPlace | null): string | null {
  if (place === null) return null;
  return place.target ?? (place.left === null ? null : place.name);
}

/** Returns the D1 databases among a Worker's bindings, by their names; `null` without `DB`. */
export function databasesOf(env: object): ReadonlyMap<string, D1Database> | null {
  const names = Object.keys(env).filter((name) => name === FIRST_DATABASE || FURTHER_DATABASE.test(name));
  // SAFETY: a binding with such a name is a database.
  const bound = env as Readonly<Record<string, D1Database | undefined>>;
  const databases = new Map(
    names.flatMap((name) => (bound[name] === undefined ? [] : [[name, bound[name]]])),
  );
  return databases.has(FIRST_DATABASE) ? databases : null;
}

function unavailableLists(message: string): DramatisError {
  return unavailable(message, { retriable: true });
}
