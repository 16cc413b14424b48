/** The address of a server that `wrangler dev` starts. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** Returns the address that wrangler prints. */
export async function wranglerAddress(server: ChildProcess): Promise<string> {
  const told: string[] = [];
  const listening = new Promise<string>((resolve) => {
    for (const input of [server.stdout, server.stderr]) {
      if (input === null) continue;
      createInterface({ input }).on("line", (line) => {
        told.push(line);
        const [, url] = /Ready on (http:\S+)/.exec(line) ?? [];
        if (url !== undefined) resolve(url);
      });
    }
  });
  const ended = once(server, "exit").then(() => {
    throw new Error(`wrangler dev has ended:\n${told.join("\n")}`);
  });
  return Promise.race([listening, ended]);
}
