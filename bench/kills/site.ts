/** The server under test, the hit server, and their history. */
import type { Bundle } from "../harness/bundle.ts";
import { type History, newHistory } from "./history.ts";
import { HitServer } from "./hit-server.ts";
import { RestartedServer } from "./restarted-server.ts";

export class Site {
  readonly history: History;
  readonly hits: HitServer;
  readonly #server: RestartedServer;

  private constructor(history: History, hits: HitServer, server: RestartedServer) {
    this.history = history;
    this.hits = hits;
    this.#server = server;
  }

  /** Serves the bundle from its own directory. */
  static async open(bundle: Bundle, directory: string): Promise<Site> {
    const history = newHistory();
    const hits = new HitServer(history);
    await hits.start();
    return new Site(history, hits, await RestartedServer.open(bundle, directory, hits.baseUrl));
  }

  get baseUrl(): string {
    return this.#server.baseUrl;
  }

  /** Kills the process, starts the next process and records both. Resolves when it accepts connections. */
  async kill(): Promise<void> {
    this.history.kills.push(await this.#server.kill());
  }

  async close(): Promise<void> {
    await this.#server.close();
    await this.hits.close();
  }

  /** Returns the output of workerd and the Worker. */
  output(): string {
    return this.#server.output();
  }
}
