/**
 * The faults of a plan, at their ports.
 *
 * FAULT-1  A fault counts as fired only when it took effect.
 */
import { type Fault, faultName, type Port } from "./plan.ts";

/** The actor has died: every port that it still uses throws this. */
export class Crash extends Error {
  override readonly name = "Crash";
}

/** A failure of a port that the actor survives. */
export class InjectedError extends Error {
  override readonly name = "InjectedError";
}

export interface FaultHost {
  jump(ms: number): void;
  note(conversation: number, text: string): void;
}

export class FaultPlane {
  readonly fired: Fault[] = [];
  readonly #due = new Map<string, Fault[]>();
  readonly #crossings = new Map<string, number>();
  #armed = false;

  constructor(
    faults: readonly Fault[],
    private readonly host: FaultHost,
  ) {
    for (const fault of faults) {
      const key = keyOf(fault.conversation, fault.port);
      this.#due.set(key, [...(this.#due.get(key) ?? []), fault]);
    }
  }

  arm(): void {
    this.#armed = true;
  }

  disarm(): void {
    this.#armed = false;
  }

  /** Counts a crossing and returns its planned fault. The port that applies the fault reports it with `fire`. */
  cross(conversation: number, port: Port): readonly Fault[] {
    if (!this.#armed) return [];
    const key = keyOf(conversation, port);
    const planned = this.#due.get(key);
    if (planned === undefined) return [];
    const n = (this.#crossings.get(key) ?? 0) + 1;
    this.#crossings.set(key, n);
    const due = planned.filter(
      (fault) => fault.nth === n || (fault.kind === "error" && n > fault.nth && n < fault.nth + fault.times),
    );
    for (const fault of due) {
      if (fault.kind !== "jump") continue;
      this.host.jump(fault.ms);
      this.fire(fault);
    }
    return due;
  }

  fire(fault: Fault): void {
    this.fired.push(fault);
    const { conversation, nth } = fault;
    const ms = "ms" in fault ? ` by ${fault.ms} ms` : "";
    const when = fault.kind === "crash" ? ` ${fault.when} it` : "";
    this.host.note(conversation, `fault: ${faultName(fault)} number ${nth}${when}${ms}`);
  }
}

function keyOf(conversation: number, port: Port): string {
  return `${conversation} ${port}`;
}
