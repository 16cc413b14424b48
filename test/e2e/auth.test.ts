/** Authentication as a deployment has it: `npm start` with a secret, a real browser, and the client library. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectConversation, createClient } from "../../src/client/index.ts";
import { hasChromium, launchChromium, NO_CHROMIUM } from "../support/browser.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";
import { processTree } from "../support/processes.ts";

const SECRET = "an e2e secret of more than thirty-two bytes";
const folder = mkdtempSync(join(tmpdir(), "dramatis-auth-"));
let start: RunningStart;

/** A token that is good for so many seconds. */
function sign(seconds: number): Promise<string> {
  // The server is half a minute lenient.
  const exp = Math.floor(Date.now() / 1000) + seconds - 30;
  return new SignJWT({ sub: "ada", tenant: "local", exp })
    .setProtectedHeader({ alg: "HS256" })
    .sign(new TextEncoder().encode(SECRET));
}

beforeAll(async () => {
  start = await npmStart(join(folder, "state"), { AUTH_SECRET: SECRET });
});

afterAll(async () => {
  await start.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("npm start with AUTH_SECRET", () => {
  it("AUTH-3 accepts only tokens, and keeps the secret out of output and commands", async () => {
    const agents = (headers: Record<string, string>) => fetch(`${start.url}/api/agents`, { headers });
    expect((await agents({})).status).toBe(401);
    expect((await agents({ authorization: `Bearer ${await sign(60)}` })).status).toBe(200);
    expect(start.output()).not.toContain(SECRET);
    for (const { command } of processTree(start.npm.pid ?? 0)) expect(command).not.toContain(SECRET);
  });

  it("CONN-3, ADMIT-2 a client gets a new token when its token expires, and continues from its position", async () => {
    const token = () => sign(60);
    const client = createClient({ baseUrl: start.url, token });
    const { id } = await client.conversations.create({ agentId: "assistant" });
    let asked = 0;
    const connection = connectConversation({
      id,
      host: start.url,
      token: async () => {
        asked += 1;
        return sign(asked === 1 ? 3 : 60);
      },
    });
    const until = (condition: () => boolean) =>
      new Promise<void>((resolve) => {
        const check = () => {
          if (condition()) resolve();
        };
        connection.subscribe(check);
        check();
      });
    const state = connection.getSnapshot;
    await until(() => state().seq !== null);
    await until(() => state().connection === "reconnecting");
    connection.send("Still here?");
    await until(() => state().turns.some(({ status }) => status === "completed"));
    expect(state()).toMatchObject({ connection: "open", pending: [] });
    expect(asked).toBe(2);
    connection.close();
  });

  it("ADMIT-2 a client without a good token is unauthorized", async () => {
    const connection = connectConversation({
      id: "conv_01JD0000000000000000000000",
      host: start.url,
      token: "not.a.token",
    });
    await new Promise<void>((resolve) => {
      connection.subscribe(() => {
        if (connection.getSnapshot().connection === "unauthorized") resolve();
      });
    });
    connection.close();
  });

  if (hasChromium) {
    it("BEARER-2, BEARER-3 a browser connects by subprotocol, and gets the reason for a refusal", async () => {
      const { id } = await createClient({ baseUrl: start.url, token: () => sign(60) }).conversations.create({
        agentId: "assistant",
      });
      const browser = await launchChromium();
      try {
        const page = await browser.newPage();
        await page.goto(start.url);
        const address = `${start.url.replace("http", "ws")}/conversations/${id}`;
        const knock = (protocols: string[]) =>
          page.evaluate(`new Promise((resolve) => {
          const socket = new WebSocket(${JSON.stringify(address)}, ${JSON.stringify(protocols)});
          socket.onmessage = ({ data }) => resolve({ protocol: socket.protocol, type: JSON.parse(data).type });
          socket.onclose = ({ code }) => resolve({ code });
        })`);
        const good = await knock(["dramatis.v1", `bearer.${await sign(60)}`]);
        expect(good).toEqual({ protocol: "dramatis.v1", type: "snapshot" });
        expect(await knock(["dramatis.v1", "bearer.not.a.token"])).toEqual({ code: 4401 });
        expect(await knock(["dramatis.v1"])).toEqual({ code: 4401 });
      } finally {
        await browser.close();
      }
    });
  } else console.warn(NO_CHROMIUM);
});
