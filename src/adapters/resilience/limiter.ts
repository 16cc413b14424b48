/**
 * Shares units among the concurrent calls of one isolate: slots of a host, or bytes of memory. Calls without room wait in a queue. Waiting
 * calls poll: actors of one isolate cannot wake each other, because the continuation of a promise would run in the wrong actor.
 *
 * LIMITER-1  Calls hold at most `total` units together, and the calls of one tenant at most `perTenant`. A larger claim is granted while no
 *            other call, or no other call of its tenant, holds any.
 * LIMITER-2  Tenants take turns, and the calls of a tenant are granted in order of arrival. If a call stops waiting, it leaves the queue
 *            without using a unit or a turn.
 * LIMITER-3  A claim that is not released becomes free when its lease ends. A waiting call that has not polled for `LOST_AFTER_MS` loses
 *            its place.
 * LIMITER-4  If the queue is full, a call fails at once, unless all waiting calls belong to other tenants. A call also fails if its tenant
 *            has its maximum of waiting calls.
 * LIMITER-5  A call may pass a call that waits for more room, until `total` units have passed that call. A tenant that holds its share
 *            delays no other tenant.
 */
import type { Clock } from "../../ports/clock.ts";
import { ModelFailure } from "../errors/model-errors.ts";

export interface Limit {
  /** Units that all calls may hold together. */
  total: number;
  /** Units that the calls of one tenant may hold together. Default: `total`. */
  perTenant?: number;
  /** Maximum number of waiting calls. Without it there is no limit. */
  queued?: number;
  /** Maximum number of waiting calls of one tenant. Without it there is no limit. */
  queuedPerTenant?: number;
}

export interface Claim {
  /** Default: 1. */
  units?: number;
  tenant: string;
  /** Milliseconds. It must exceed the time that the call holds the units. */
  leaseMs: number;
}

/** A call's claim in the queue, or granted. */
export interface Slot {
  /** The number of waiting calls before this call. */
  readonly ahead: number;
  /** Takes the units if it is the call's turn. Reports whether the call holds them. */
  take(): boolean;
  /** Releases the units, or leaves the queue. */
  release(): void;
}

/** Milliseconds. */
export const LOST_AFTER_MS = 5_000;
/** Poll interval of the first waiting call, in milliseconds. Later calls poll less often. */
const POLL_MS = 20;
const MAX_POLL_MS = 500;

interface Place extends Required<Claim> {
  /** The turn of the tenant for this call. */
  turn: number;
  /** Units that passed the call while it waited. */
  passed: number;
  /** The end of a holder's lease. For a waiting call, the time after which it is lost. */
  until: number;
}

export class Limiter {
  readonly #held = new Set<Place>();
  /** In the order of turns, then of arrival. */
  #queue: Place[] = [];
  /** The newest granted turn, of all tenants and of each tenant with a possible claim. */
  #turn = 0;
  readonly #turns = new Map<string, number>();

  constructor(
    private readonly limit: Limit,
    private readonly clock: Pick<Clock, "now" | "sleep">,
  ) {}

  get isIdle(): boolean {
    return this.#held.size === 0 && this.#queue.length === 0;
  }

  get held(): number {
    this.#forgetLost();
    return sumOf(this.#held);
  }

  /** Waits for units. Returns a function that releases them. Throws as `claim` does, and the signal's reason. */
  async enter(claim: Claim, signal: AbortSignal): Promise<() => void> {
    const slot = this.claim(claim);
    try {
      while (!slot.take()) await this.clock.sleep(Math.min(MAX_POLL_MS, POLL_MS * (1 + slot.ahead)), signal);
      return slot.release;
    } catch (error) {
      slot.release();
      throw error;
    }
  }

  /** Claims units, which the call then holds or waits for. Throws `ModelFailure` if the queue is full. */
  claim({ units = 1, tenant, leaseMs }: Claim): Slot {
    const { queued = Number.POSITIVE_INFINITY, queuedPerTenant = Number.POSITIVE_INFINITY } = this.limit;
    const place: Place = { units, tenant, leaseMs, turn: this.#nextTurn(tenant), passed: 0, until: 0 };
    if (!this.#take(place)) {
      const others = this.#without(place);
      const own = others.filter((other) => other.tenant === tenant).length;
      const isFull = others.length >= queued && (others.length === 0 || own > 0);
      if (isFull || own >= queuedPerTenant) {
        this.#queue = others;
        throw new ModelFailure("rate_limit", "Too many calls to this model server are waiting.");
      }
    }
    let isOver = false;
    const ahead = () => Math.max(0, this.#queue.indexOf(place));
    return {
      get ahead() {
        return ahead();
      },
      take: () => !isOver && this.#take(place),
      release: () => {
        if (isOver) return;
        isOver = true;
        this.#held.delete(place);
        this.#queue = this.#without(place);
      },
    };
  }

  #take(place: Place): boolean {
    if (this.#held.has(place)) return true;
    const now = this.clock.now();
    place.until = now + LOST_AFTER_MS;
    this.#forgetLost();
    if (!this.#queue.includes(place)) {
      const behind = this.#queue.findIndex(({ turn }) => turn > place.turn);
      this.#queue.splice(behind < 0 ? this.#queue.length : behind, 0, place);
    }
    if (!this.#isNext(place)) return false;
    this.#queue = this.#without(place);
    place.until = now + place.leaseMs;
    this.#held.add(place);
    this.#grantTurn(place);
    return true;
  }

  /** Reports whether there is room for a waiting call and for the earlier calls that it must not pass. Records the calls that it passes. */
  #isNext(place: Place): boolean {
    const { total, perTenant = total } = this.limit;
    const shares = new Map<string, number>();
    for (const { tenant, units } of this.#held) shares.set(tenant, (shares.get(tenant) ?? 0) + units);
    let room = total - sumOf(this.#held);
    // Both values only grow below, so most polls end here without reading the queue.
    const tenantShare = shares.get(place.tenant) ?? 0;
    if (place.units > room && room !== total) return false;
    if (tenantShare > 0 && tenantShare + place.units > perTenant) return false;
    const passed: Place[] = [];
    /** The units that may still pass waiting calls, in total and per tenant. */
    let mayPass = Number.POSITIVE_INFINITY;
    const mayPassByTenant = new Map<string, number>();
    for (const call of this.#queue) {
      if (room <= 0) return false;
      const { tenant, units } = call;
      const share = shares.get(tenant) ?? 0;
      const isInShare = share === 0 || share + units <= perTenant;
      const hasRoom = units <= room || room === total;
      const tenantLimit = mayPassByTenant.get(tenant) ?? Number.POSITIVE_INFINITY;
      if (isInShare && hasRoom && units <= Math.min(mayPass, tenantLimit)) {
        if (call === place) {
          for (const waiting of passed) waiting.passed += units;
          return true;
        }
        room -= units;
        shares.set(tenant, share + units);
        continue;
      }
      if (call === place) return false;
      const left = total - call.passed;
      if (isInShare) mayPass = Math.min(mayPass, left);
      else mayPassByTenant.set(tenant, Math.min(tenantLimit, left));
      if (isInShare || tenant === place.tenant) passed.push(call);
    }
    return false;
  }

  #nextTurn(tenant: string): number {
    const granted = this.#turns.get(tenant) ?? -1;
    const own = this.#queue.findLast((place) => place.tenant === tenant)?.turn ?? granted;
    return Math.max(this.#presentTurn(), 1 + Math.max(own, granted));
  }

  /** Returns the turn that is granted now. It is older than the newest turn if its call was passed. */
  #presentTurn(): number {
    return Math.min(this.#turn, this.#queue[0]?.turn ?? this.#turn);
  }

  #grantTurn({ tenant, turn }: Place): void {
    this.#turn = Math.max(this.#turn, turn);
    this.#turns.set(tenant, Math.max(turn, this.#turns.get(tenant) ?? 0));
    const present = this.#presentTurn();
    for (const [other, last] of this.#turns) if (last < present) this.#turns.delete(other);
  }

  #without(place: Place): Place[] {
    return this.#queue.filter((other) => other !== place);
  }

  /** Removes calls with an expired lease, and calls that no longer poll. */
  #forgetLost(): void {
    const now = this.clock.now();
    for (const lost of this.#held) if (lost.until <= now) this.#held.delete(lost);
    if (this.#queue.some(({ until }) => until <= now))
      this.#queue = this.#queue.filter(({ until }) => until > now);
  }
}

function sumOf(places: Iterable<Place>): number {
  let sum = 0;
  for (const { units } of places) sum += units;
  return sum;
}
