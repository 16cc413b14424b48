/** One direction of a connection: data arrives later, in order, or not at all. */
import type { WorldClock } from "./clocks.ts";
import type { FaultPlane } from "./faults.ts";
import type { Fault, Port } from "./plan.ts";

export interface LinkOptions<Item> {
  clock: WorldClock;
  latency: number;
  plane: FaultPlane;
  conversation: number;
  port: Port;
  deliver(item: Item): void;
  /** Reports that the actor at one end died. */
  crash(): void;
  /** Breaks the connection silently. `heard` reports the error at once. */
  broken(heard: boolean): void;
}

export class Link<Item> {
  /** Arrival time of the last data. */
  #clear = 0;
  #open = true;

  constructor(private readonly options: LinkOptions<Item>) {}

  send(item: Item): void {
    if (!this.#open) return;
    const { plane, conversation, port, crash, broken } = this.options;
    let copies = 1;
    let extra = 0;
    let dies: Fault | undefined;
    for (const fault of plane.cross(conversation, port)) {
      switch (fault.kind) {
        case "crash":
          dies = fault;
          break;
        case "error":
        case "loss":
          plane.fire(fault);
          this.#open = false;
          broken(fault.kind === "error");
          return;
        case "delay":
          plane.fire(fault);
          extra += fault.ms;
          break;
        case "duplicate":
          plane.fire(fault);
          copies = 2;
          break;
        default:
      }
    }
    if (dies?.kind === "crash" && dies.when === "before") {
      plane.fire(dies);
      crash();
      return;
    }
    for (let copy = 0; copy < copies; copy++) this.#carry(item, extra);
    if (dies !== undefined) {
      plane.fire(dies);
      crash();
    }
  }

  /** Sends the final data, whatever is planned. */
  end(item: Item): void {
    if (!this.#open) return;
    this.#carry(item, 0);
  }

  close(): void {
    this.#open = false;
  }

  #carry(item: Item, extra: number): void {
    const { clock, latency, deliver } = this.options;
    // A delay also delays all later data. Timers with equal times fire in the order of their creation.
    this.#clear = Math.max(this.#clear, clock.elapsed + latency + extra);
    clock.timer(this.#clear - clock.elapsed, () => {
      if (this.#open) deliver(item);
    });
  }
}
