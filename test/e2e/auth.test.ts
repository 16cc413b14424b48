/** Authentication as a deployment has it: `npm start` with a secret, a real browser, and the client library. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectConversation, createClient } from "../../src/client/index.ts";
import { answers, hasChromium, launchChromium, NO_CHROMIUM, say, Visitor } from "../support/browser.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";
import { processTree } from "../support/processes.ts";

const SECRET = "an e2e secret of more than thirty-two bytes";
const folder = mkdtempSync(join(tmpdir(), "dramatis-auth-"));
let start: RunningStart;

/** An image of one pixel. */
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** A token that is good for so many seconds. */
function sign(seconds: number, claims: { sub?: string; tenant?: string } = {}): Promise<string> {
  // The server is half a minute lenient.
  const exp = Math.floor(Date.now() / 1000) + seconds - 30;
  return new SignJWT({ sub: "ada", tenant: "local", exp, ...claims })
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

    it("G21 SIGNIN-2 SIGNIN-3 SIGNIN-5 the console signs in with a token, loses nothing when it expires, and shows nothing to the next user", async () => {
      const browser = await launchChromium();
      const visitor = new Visitor(browser, start.url);
      try {
        const page = await visitor.open("/");
        const addresses: string[] = [];
        page.context().on("request", (request) => addresses.push(request.url()));
        const enter = async (token: string) => {
          await page.getByTestId("token").fill(token);
          await page.getByRole("button", { name: "Sign in" }).click();
        };
        // A login that would run a script, or leave for another server, is not used.
        await page.route("**/health", (route) =>
          route.fulfill({ json: { signIn: { page: "javascript:alert(1)", signOut: "//evil.example" } } }),
        );
        await page.reload();
        await page.getByTestId("token").waitFor();
        expect(await page.getByText("Authorization").count()).toBe(0);
        expect(await page.getByRole("link").count()).toBe(0);
        await enter("not.a.token");
        await page.getByText("The token is not valid.").waitFor();
        expect(await page.getByText(/refused this token|token is not valid/i).count()).toBe(1);
        const first = await sign(20);
        await enter(first);
        await page.getByTestId("account").getByText("local · member").waitFor();

        await page.getByTestId("agent-picker").getByText("Assistant", { exact: true }).click();
        await page
          .getByTestId("files")
          .setInputFiles([{ name: "dot.png", mimeType: "image/png", buffer: PIXEL }]);
        await say(page, "!say Good morning.");
        await answers(page, "Good morning.", false).waitFor();
        const picture = page.getByTestId("message-user").getByRole("img", { name: "dot.png" });
        await picture.waitFor();
        await expect
          .poll(() => page.evaluate("document.querySelector('[data-testid=message-user] img').naturalWidth"))
          .toBe(1);
        const place = page.url();
        await page.getByTestId("composer").fill("A draft.");

        const dialog = page.getByTestId("sign-in-again");
        await dialog.waitFor();
        await page.keyboard.press("Escape");
        await page.keyboard.press("Escape");
        await dialog.getByText("Sign in as ada to continue.").waitFor();
        expect(await page.getByTestId("composer").inputValue()).toBe("A draft.");
        expect(page.url()).toBe(place);
        const second = await sign(300);
        await enter(second);
        await dialog.waitFor({ state: "detached" });
        await page.getByTestId("composer").press("Enter");
        await page.getByTestId("message-user").getByText("A draft.").waitFor();
        await page.locator("[data-testid=connection][data-state=open]").waitFor();
        await page.getByTestId("composer").fill("Another draft.");
        await page.reload();
        await expect.poll(() => page.getByTestId("composer").inputValue()).toBe("Another draft.");
        // Another tab gets the token from this tab.
        const tab = await visitor.open(new URL(place).pathname);
        await answers(tab, "Good morning.", false).waitFor();
        await tab.close();

        await page.getByTestId("sign-out").click();
        await page.getByTestId("sign-in").waitFor();
        expect(new URL(page.url()).pathname).toBe("/");
        await page.goBack();
        await page.getByTestId("sign-in").waitFor();
        expect(await page.content()).not.toContain("Good morning");
        const bobs = await sign(300, { sub: "bob", tenant: "acme" });
        await enter(bobs);
        await page.getByTestId("account").getByText("bob").waitFor();
        await page.goto(place);
        await page.getByText("Conversation not found").waitFor();
        expect(await page.content()).not.toContain("Good morning");
        expect(await page.evaluate("JSON.stringify(sessionStorage)")).not.toContain("draft");

        // Another user signs in during the session of bob, whose token expires.
        await page.goto(`${start.url}/`);
        await page.getByTestId("account").getByText("bob").waitFor();
        const expired = `Bearer ${await sign(-60, { sub: "bob", tenant: "acme" })}`;
        await page.route("**/api/**", (route, request) => {
          const headers = request.headers();
          const isBob = headers.authorization === `Bearer ${bobs}`;
          return route.continue({ headers: isBob ? { ...headers, authorization: expired } : headers });
        });
        await expect
          .poll(async () => {
            // The lists load again.
            await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
            return dialog.getByText("Sign in as bob").isVisible();
          })
          .toBe(true);
        await enter(await sign(300));
        await page.getByTestId("account").getByText("ada").waitFor();
        await page.waitForURL(`${start.url}/`);
        expect(await page.evaluate("JSON.stringify(sessionStorage)")).not.toContain("draft");

        for (const token of [first, second]) {
          expect(addresses.filter((address) => address.includes(token))).toEqual([]);
          expect(start.output()).not.toContain(token);
          expect(visitor.complaints.join()).not.toContain(token);
        }
      } finally {
        await visitor.leave();
        await browser.close();
      }
    });
  } else console.warn(NO_CHROMIUM);
});
