/** The application of `../code`, with containers. A container is a process of this machine, because the platform's containers need Docker. */
import { DurableObject } from "cloudflare:workers";

export * from "../code/worker.ts";
export { default } from "../code/worker.ts";

/** Passes requests to the machine with the name of this object. */
export class ShellContainer extends DurableObject<{ MACHINES_URL: string }> {
  override async fetch(request: Request): Promise<Response> {
    return fetch(
      new Request(`${this.env.MACHINES_URL}/${this.ctx.id.name}${new URL(request.url).pathname}`, request),
    );
  }

  async destroy(): Promise<void> {
    await fetch(`${this.env.MACHINES_URL}/${this.ctx.id.name}`, { method: "DELETE" });
  }
}
