/** The pages of a project in the console: its secrets, its settings, and repositories on other git servers, in a real browser. */
import type { BrowserContextOptions, Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, NO_CHROMIUM, sidewaysScrollers, Visitor, violations } from "../support/browser.ts";
import { GIT_TOKEN, type GitServer, startGitServer } from "../support/git-server.ts";
import { workConsole } from "../support/work-console.ts";

const VALUE = "the-key-of-the-service";

describe.runIf(hasChromium)(`projects in the console (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  let git: GitServer;
  const hosts = process.env.DRAMATIS_HTTP_HOSTS;
  beforeAll(async () => {
    git = await startGitServer();
    process.env.DRAMATIS_HTTP_HOSTS = new URL(git.url).host;
  });
  afterAll(async () => {
    if (hosts === undefined) delete process.env.DRAMATIS_HTTP_HOSTS;
    else process.env.DRAMATIS_HTTP_HOSTS = hosts;
    await git?.close();
  });
  const world = workConsole("code");

  async function visit(path: string, roles?: string, options?: BrowserContextOptions): Promise<Page> {
    const extraHTTPHeaders = roles === undefined ? {} : { "x-member": "ada", "x-roles": roles };
    world.visitor = new Visitor(world.browser, world.server.url, { ...options, extraHTTPHeaders });
    return world.visitor.open(path);
  }

  /** Opens a form by its button, and returns it. */
  async function open(place: Page | Locator, testId: string): Promise<Locator> {
    await place.getByTestId(testId).locator("summary").press("Enter");
    return place.getByTestId(testId);
  }

  const isFocused = (note: Locator) =>
    expect.poll(() => note.evaluate((element) => element.matches(":focus"))).toBe(true);

  it("sets a secret by keyboard, shows its name without its value, replaces it and deletes it", async () => {
    const { client } = world;
    await client.projects.create({ id: "keys" });
    const page = await visit("/projects/keys");
    await page.getByRole("link", { name: "Secrets" }).press("Enter");
    await page.waitForURL("**/projects/keys/secrets");
    await page.getByText("No secrets yet.").waitFor();
    const form = await open(page, "new-secret");
    await form.getByLabel("Name").fill("stock");
    await form.getByLabel("Value").fill(VALUE);
    expect(await form.getByLabel("Value").getAttribute("type")).toBe("password");
    await form.getByLabel("Hosts").fill("https://api.example.com");
    await form.getByLabel("Hosts").press("Enter");
    await form.locator('[aria-invalid=true][name="hosts"]').waitFor();
    await form.getByText('"https://api.example.com" is not a host.').waitFor();
    expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("422")]);
    await form.getByLabel("Hosts").fill("api.example.com, api.example.org");
    await form.getByLabel("Hosts").press("Enter");
    const note = page.getByTestId("note");
    await note.getByText("Saved the secret stock.").waitFor();
    await isFocused(note);
    const item = page.locator("[data-testid=secret][data-secret=stock]");
    await item.getByText("to api.example.com, api.example.org").waitFor();
    expect(await item.textContent()).toContain("authorization: Bearer ");
    expect(await form.getByLabel("Value").inputValue(), "the form forgets the value").toBe("");
    expect(await client.projects.secrets("keys")).toMatchObject({
      secrets: [{ id: "stock", hosts: ["api.example.com", "api.example.org"], prefix: "Bearer " }],
    });
    await page.reload();
    await item.waitFor();
    expect(await page.content()).not.toContain(VALUE);

    await item.getByRole("button", { name: "Replace stock" }).press("Enter");
    await item.getByLabel("Value").fill("another-key");
    await item.getByLabel("Header", { exact: true }).fill("x-api-key");
    await item.getByLabel("Content of the header").selectOption("The value alone");
    await item.getByRole("button", { name: "Replace stock" }).press("Enter");
    await note.getByText("Replaced the secret stock.").waitFor();
    await item.getByText("x-api-key:").waitFor();
    expect((await client.projects.secrets("keys")).secrets).toEqual([
      expect.objectContaining({ header: "x-api-key", hosts: ["api.example.com", "api.example.org"] }),
    ]);

    await item.getByTestId("delete-secret").press("Enter");
    expect((await client.projects.secrets("keys")).secrets).toHaveLength(1);
    await item.getByRole("button", { name: "Delete stock?" }).press("Enter");
    await page.getByText("No secrets yet.").waitFor();
    await isFocused(note);
    expect((await client.projects.secrets("keys")).secrets).toEqual([]);
  });

  it("shows the names of secrets to authors without buttons, and no secrets to members", async () => {
    const { client } = world;
    await client.projects.create({ id: "read" });
    await client.projects.putSecret("read", "stock", { value: VALUE, hosts: ["api.example.com"] });
    await client.projects.update("read", { limits: { maxConcurrentRuns: 3 } });
    const author = await visit("/projects/read/secrets", "author");
    const item = author.getByTestId("secret");
    await item.getByText("stock").waitFor();
    expect(await item.getByRole("button").count()).toBe(0);
    expect(await author.getByTestId("new-secret").count()).toBe(0);
    await world.visitor.leave();

    const member = await visit("/projects/read/settings", "member");
    const settings = member.getByRole("region", { name: "Settings" });
    expect(await settings.textContent()).toContain("Runs at the same time3");
    expect(await member.getByRole("button", { name: "Save settings" }).count()).toBe(0);
    expect(await member.getByTestId("delete-project").count()).toBe(0);
    expect(await member.getByRole("link", { name: "Secrets" }).count()).toBe(0);
    await member.goto(`${world.server.url}/projects/read/secrets`);
    await member.getByText("Authors, operators and administrators see the names of secrets.").waitFor();
    expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("403")]);
  });

  it("SETTINGSFORM-1 changes the settings that the form changed, removes emptied settings, and shows an error at its field", async () => {
    const { client } = world;
    await client.projects.create({ id: "rules", name: "Rules" });
    await client.projects.update("rules", { limits: { maxConcurrentRuns: 3 } });
    const page = await visit("/projects/rules/settings");
    const note = page.getByTestId("note");
    const save = page.getByRole("button", { name: "Save settings" });
    await save.press("Enter");
    await note.getByText("Nothing has changed.").waitFor();
    // Another operator changes a setting that this form does not change.
    await client.projects.update("rules", { limits: { maxModelCallsPerHour: 900 } });
    await page.getByLabel("Name").fill("");
    await page.getByLabel("anthropic").check();
    await page.getByLabel("Allow only some servers").check();
    await page.getByLabel("Allowed MCP servers").fill("github, linear");
    await page.getByLabel("Runs at the same time").fill("");
    await page.getByLabel("Budget of tokens").fill("9000000000000");
    await save.press("Enter");
    await page.locator('[aria-invalid=true][name="tokens"]').waitFor();
    expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("422")]);
    await page.getByLabel("Budget of tokens").fill("5000000");
    await page.getByLabel("Budget of tokens").press("Enter");
    await note.getByText("Saved the settings.").waitFor();
    await isFocused(note);
    await page.getByText("0 of 5,000,000 tokens are used.").waitFor();
    expect(await page.getByLabel("Model calls in an hour").inputValue()).toBe("900");
    const { createdAt: _, repositories: __, ...settings } = await client.projects.get("rules");
    expect(settings).toEqual({
      id: "rules",
      spent: { tokens: 0 },
      limits: { maxModelCallsPerHour: 900 },
      allowedModelProviders: ["anthropic"],
      allowedMcpServers: ["github", "linear"],
      budget: { tokens: 5_000_000 },
    });
    await page.getByLabel("Allow only some servers").uncheck();
    await save.press("Enter");
    await expect.poll(async () => "allowedMcpServers" in (await client.projects.get("rules"))).toBe(false);
  });

  it("pushes to another git server and fetches from it, and shows the result or the reason of a refusal", async () => {
    const { client } = world;
    await client.projects.create({ id: "remote", repositories: [{ id: "web" }, { id: "copy" }] });
    const { oid } = await client.projects.writeFiles("remote", "web", { files: { "README.md": "# Web\n" } });
    const page = await visit("/projects/remote");
    const repository = (repo: string) => page.locator(`[data-testid=repository][data-repo=${repo}]`);
    const web = await open(repository("web"), "remote");
    await web.getByLabel("Direction").selectOption("Push to the other server");
    await web.getByLabel("Address of the other repository").fill("https://git.example.com/web.git");
    await web.getByRole("button", { name: "Push" }).press("Enter");
    await web.getByRole("alert").getByText("Add it to DRAMATIS_HTTP_HOSTS.").waitFor();
    await web.getByLabel("Address of the other repository").fill(`${git.url}/private-shop`);
    await web.getByRole("button", { name: "Push" }).press("Enter");
    await web.getByRole("alert").getByText("Store a secret of the project").waitFor();
    expect(world.visitor.complaints.splice(0)).toHaveLength(2);
    await client.projects.putSecret("remote", "git", {
      value: GIT_TOKEN,
      hosts: [new URL(git.url).host],
      prefix: "Basic ",
    });
    await web.getByLabel("Branch of the other server (optional)").fill("review");
    await web.getByRole("button", { name: "Push" }).press("Enter");
    const pushed = `Pushed. The branch review of the other server is at ${oid.slice(0, 7)}.`;
    await web.getByTestId("note").getByText(pushed).waitFor();
    expect(await web.getByRole("alert").count()).toBe(0);

    const copy = await open(repository("copy"), "remote");
    await repository("copy").getByText("The repository is empty.").waitFor();
    await copy.getByLabel("Address of the other repository").fill(`${git.url}/private-shop`);
    await copy.getByRole("button", { name: "Fetch" }).press("Enter");
    await copy.getByTestId("note").getByText("Fetched. The repository has 1 branch.").waitFor();
    await repository("copy").getByTestId("branch-item").getByText("review").waitFor();
  });

  it("axe finds nothing on the pages of a project, with open forms, at two widths, and nothing scrolls sideways", async () => {
    const { client } = world;
    await client.projects.create({ id: "fits", repositories: [{ id: "web" }] });
    const names = ["stock", `a-${"long-".repeat(10)}name`];
    for (const name of names)
      await client.projects.putSecret("fits", name, {
        value: VALUE,
        hosts: [`${"host-".repeat(10)}.example`],
      });
    const page = await visit("/projects/fits");
    const found: string[] = [];
    for (const [width, colorScheme] of [
      [390, "dark"],
      [1440, "light"],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      for (const [view, shown, form] of [
        ["", "repository", "remote"],
        ["/secrets", "secret", "new-secret"],
        ["/settings", "delete-project", ""],
      ] as const) {
        await page.goto(`${world.server.url}/projects/fits${view}`);
        await page.getByTestId(shown).first().waitFor();
        if (form !== "") await page.getByTestId(form).first().locator("summary").click();
        if (view === "/secrets") await page.getByRole("button", { name: "Replace stock" }).click();
        for (const violation of await violations(page)) found.push(`${view} ${width} ${violation}`);
        for (const element of await sidewaysScrollers(page)) found.push(`${view} ${width} ${element}`);
      }
    }
    expect(found).toEqual([]);
  });
});
