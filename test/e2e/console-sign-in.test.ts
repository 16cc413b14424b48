/** The console with an application's own login, in a real browser. */
import { describe, expect, it } from "vitest";
import { answers, hasChromium, NO_CHROMIUM, say, Visitor } from "../support/browser.ts";
import { workConsole } from "../support/work-console.ts";

describe.runIf(hasChromium)(`the login of an application (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  const world = workConsole("sign-in");

  it("G21 SIGNIN-4 SIGNIN-5 leads to the login and back, renews the token, and ends the login of all tabs", async () => {
    world.visitor = new Visitor(world.browser, world.server.url);
    const page = await world.visitor.open("/a/clerk?from=mail");
    const renewed = () =>
      page.waitForResponse(
        (response) => response.url().endsWith("/login/token") && response.status() === 200,
      );
    const first = renewed();
    await page.getByTestId("sign-in").getByRole("link", { name: "Sign in" }).click();
    await page.waitForURL("**/a/clerk?from=mail");
    await first;
    await page.getByTestId("account").getByText("ada").waitFor();
    await renewed();

    await page.getByTestId("new-conversation").click();
    await say(page, "!say Good morning.");
    await answers(page, "Good morning.", false).waitFor();
    expect(await page.getByTestId("sign-in-again").count()).toBe(0);

    const other = await world.visitor.open("/");
    await other.getByTestId("account").getByText("ada").waitFor();
    await other.getByTestId("sign-out").click();
    await other.getByText("Goodbye.").waitFor();
    await page.getByTestId("sign-in").waitFor();
    expect(await page.evaluate("JSON.stringify(sessionStorage)")).toBe("{}");
    // The browser reports each answer 401.
    world.visitor.complaints.splice(0);
  });
});
