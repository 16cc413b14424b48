/**
 * The faults of a simulation: plain data that names a port and one of its crossings, counted from 1.
 *
 * FAULT-1  A plan determines its faults. The same plan gives the same run.
 * FAULT-2  A crash `during` a call of a tool: the caller dies while the tool runs. The run waits until the caller begins its next attempt, or
 *          for `MAX_HELD_MS`. Then both runs go on at the same time.
 */

/** The kinds of faults that `simulate` injects. */
export const FAULT_KINDS = ["crash", "loss", "delay", "duplicate", "failure"] as const;

/**
 * A kind of fault. `crash`: an actor dies. `loss`: a request or its answer never arrives. `delay`: an answer comes after the time limit.
 * `duplicate`: a request arrives twice. `failure`: a tool or a model fails in a way that may pass.
 */
export type FaultKind = (typeof FAULT_KINDS)[number];

/** The ports with faults. `storage`: statements and transactions of actors. `mail`: envelopes between actors. */
export type FaultPort = "storage" | "message" | "model" | "tool" | "mail";

/** A fault: its kind, its port, and the crossing of the port. */
export interface PlannedFault {
  kind: FaultKind;
  port: FaultPort;
  nth: number;
  /** `before` the request takes effect, or `after`. A crash may also strike `during` a run of a tool. */
  when: "before" | "during" | "after";
}

/** The faults that each port can have. */
export const FAULTS_OF: Readonly<Record<FaultPort, readonly FaultKind[]>> = {
  storage: ["crash"],
  message: ["loss", "duplicate"],
  model: ["crash", "failure"],
  tool: ["crash", "loss", "delay", "duplicate", "failure"],
  mail: ["loss", "delay", "duplicate"],
};

export const PORTS = Object.keys(FAULTS_OF) as FaultPort[];

export class InjectedFault extends Error {
  override readonly name = "InjectedFault";
}

/** Counts the crossings of the ports, and gives each crossing its fault. */
export class FaultPlane {
  readonly counts: Record<FaultPort, number> = { storage: 0, message: 0, model: 0, tool: 0, mail: 0 };
  /** The faults that took effect. */
  readonly fired: PlannedFault[] = [];
  readonly #planned: Map<string, PlannedFault>;

  constructor(faults: readonly PlannedFault[] = []) {
    this.#planned = new Map(faults.map((fault) => [`${fault.port} ${fault.nth}`, fault]));
  }

  cross(port: FaultPort): PlannedFault | undefined {
    const fault = this.#planned.get(`${port} ${++this.counts[port]}`);
    if (fault !== undefined) this.fired.push(fault);
    return fault;
  }

  disarm(): void {
    this.#planned.clear();
  }
}

export function faultText({ kind, port, nth, when }: PlannedFault): string {
  return `${kind} ${when} ${port} ${nth}`;
}
