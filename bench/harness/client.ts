/** A minimal HTTP client on one kept-alive connection. It adds little to the measured times. */
import { Agent, request } from "node:http";

export class Client {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** Posts a text and resolves with the response text. Any status except 200 is an error. */
  post(path: string, body: string): Promise<string> {
    const headers = { "content-type": "text/plain", "content-length": Buffer.byteLength(body) };
    const options = {
      host: "127.0.0.1",
      port: this.#port,
      path,
      method: "POST",
      headers,
      agent: this.#agent,
    };
    return new Promise((resolve, reject) => {
      const outgoing = request(options, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.once("error", reject);
        response.once("end", () => {
          const text = Buffer.concat(chunks).toString();
          if (response.statusCode === 200) resolve(text);
          else reject(new Error(`POST ${path} returned ${response.statusCode}: ${text}`));
        });
      });
      outgoing.once("error", reject);
      outgoing.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
