/** Work on code in the console: files, differences, commits, merges, conflicts, decisions of a policy, and projects, in a real browser. */
import type { BrowserContextOptions, Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/client/index.ts";
import {
  answers,
  hasChromium,
  NO_CHROMIUM,
  say,
  sidewaysScrollers,
  Visitor,
  violations,
} from "../support/browser.ts";
import { workConsole } from "../support/work-console.ts";

const tool = (name: string, input: object) => `!tool ${name} ${JSON.stringify(input)}`;
const LONG = `long-${"0123456789".repeat(5)}`;
const SUM = "export const sum = (a: number, b: number) => a - b;\n";

describe.runIf(hasChromium)(`work on code in the console (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  const world = workConsole("code");

  /** Commits files to the default branch. */
  async function push(files: Record<string, string>): Promise<void> {
    await request("PUT", "/api/projects/shop/repos/web/files", { files });
  }

  async function request(method: string, path: string, body: object): Promise<void> {
    const headers = { "content-type": "application/json" };
    const response = await fetch(world.server.url + path, { method, headers, body: JSON.stringify(body) });
    expect(response.status, await response.clone().text()).toBeLessThan(300);
  }

  async function visit(path: string, options?: BrowserContextOptions): Promise<Page> {
    world.visitor = new Visitor(world.browser, world.server.url, options);
    return world.visitor.open(path);
  }

  /** Opens a new conversation in which the developer has made these calls, one after the other. */
  async function work(...calls: string[]): Promise<{ id: string; page: Page }> {
    const { id } = await world.client.conversations.create({ agentId: "developer" });
    const page = await visit(`/c/${id}`);
    await say(page, calls.join("\n!then\n"));
    await answers(page, "Offline model:", false).waitFor();
    return { id, page };
  }

  const fileDiff = (page: Page, path: string) => page.locator(`[data-testid=file-diff][data-path="${path}"]`);
  /** Returns the lines of a kind in the difference of a file. */
  async function linesOf(page: Page, path: string, kind: string): Promise<string[]> {
    const lines = fileDiff(page, path).locator(`tr[data-kind=${kind}] td:last-child`);
    await lines.first().waitFor();
    return (await lines.allTextContents()).map((text) => text.trim());
  }

  beforeAll(async () => {
    await request("POST", "/api/projects", {
      id: "shop",
      repositories: [{ id: "web" }, { id: "empty" }, { id: LONG }],
    });
    await push({ "src/sum.ts": SUM, "README.md": "# Shop\n", "docs/old.md": "Old.\n" });
  });

  it("shows an edit, a command and a denied call with its rule, then the files, the commit and the merge with its preview", async () => {
    const { id, page } = await work(
      tool("repo_edit", { path: "src/sum.ts", before: "a - b", after: "a + b" }),
      tool("shell_exec", { command: "cat src/sum.ts; echo oops >&2; rm docs/old.md; exit 3" }),
      tool("repo_search", { query: "sum" }),
      tool("repo_diff", {}),
    );
    const card = (name: string) => page.locator(`[data-testid=tool-card][data-tool=${name}]`);
    await card("shell_exec").getByText("Exit code 3").first().waitFor();
    await card("shell_exec").locator("summary").click();
    const terminal = card("shell_exec").getByTestId("terminal");
    expect(await terminal.textContent()).toMatch(
      /\$ cat src\/sum\.ts.*a \+ b;\s*Errors: oops\s*1 changed filedocs\/old\.md/s,
    );
    await card("repo_diff").locator("summary").click();
    expect(await linesOf(page, "src/sum.ts", "removed")).toEqual([SUM.trim()]);
    expect(await linesOf(page, "docs/old.md", "removed")).toEqual(["Old."]);
    expect(await card("repo_search").getAttribute("data-state")).toBe("denied");
    await card("repo_search")
      .getByTestId("denied")
      .getByText('by the rule "no-search". Search is switched off here.')
      .waitFor();
    await card("repo_search").locator("summary").click();
    await card("repo_search")
      .getByTestId("policy")
      .getByText("The call follows untrusted content: a result of a tool.")
      .waitFor();

    await page.getByTestId("open-files").click();
    await page.getByTestId("branch").getByText("2 files not committed").waitFor();
    const file = (path: string) => page.locator(`[data-testid=tree-file][data-path="${path}"]`);
    expect(await file("src/sum.ts").getAttribute("data-change")).toBe("modified");
    expect(await file("docs/old.md").getAttribute("data-change")).toBe("deleted");
    expect(await file("README.md").getAttribute("data-change")).toBeNull();
    // The first changed file is open at once.
    await page.getByTestId("file").getByText("a + b").waitFor();
    expect(await file("src/sum.ts").getAttribute("aria-current")).toBe("page");
    expect(new URL(page.url()).search).toBe("");
    await file("src/sum.ts").press("Enter");
    await page.getByTestId("file").getByText("a + b").waitFor();
    expect(page.url()).toContain(`/c/${id}/files?path=src%2Fsum.ts`);

    await page.getByTestId("view-merge").click();
    await page.getByText("2 files are not committed.").waitFor();
    expect(await page.getByTestId("merge").count()).toBe(0);
    await page.getByRole("link", { name: "Commit before the merge" }).click();
    expect(await linesOf(page, "src/sum.ts", "added")).toEqual([SUM.replace("-", "+").trim()]);
    await page.getByLabel("Message of the commit").fill("Add instead of subtract\n\nThe sum was wrong.");
    await page.getByRole("button", { name: "Commit 2 files" }).click();
    await page
      .getByTestId("committed")
      .getByText(/^Committed 2 files as [0-9a-f]{7}\.$/)
      .waitFor();
    await page.getByText("Everything is committed.").waitFor();
    await page.locator("[data-testid=committed]:focus").waitFor();

    await page.getByTestId("view-commits").click();
    await page
      .getByRole("region", { name: "Commits of this conversation" })
      .getByText("Add instead of subtract")
      .waitFor();

    await page.getByTestId("view-merge").click();
    expect(await linesOf(page, "src/sum.ts", "added")).toHaveLength(1);
    await page.getByLabel("Rebase").check();
    await page.getByRole("button", { name: "Merge into main…" }).press("Enter");
    await page.getByRole("button", { name: "Confirm: merge 1 commit into main" }).press("Enter");
    await page.getByTestId("merged").getByText("Merged into main as").waitFor();
    await page.locator(":focus [data-testid=merged]").waitFor();
    await page.reload();
    await page
      .getByTestId("merged-state")
      .getByText(/^Merged into main as [0-9a-f]{7}$/)
      .waitFor();

    const title = "Mend the sum";
    await world.client.conversations.update(id, { title });
    await page.goto(`${world.server.url}/projects/shop`);
    const web = page.locator("[data-testid=repository][data-repo=web]");
    await web.getByTestId("branch-item").first().getByText("main").waitFor();
    await web.getByRole("link", { name: `Files of dramatis/conv-${id}` }).waitFor();
    await web.getByRole("link", { name: title }).click();
    await page.waitForURL(`**/c/${id}`);
  });

  it("H8 MERGEVIEW-1 MERGEVIEW-2 a person approves a commit after untrusted content; conflicts are listed, and the branch wins on demand", async () => {
    await push({ "src/sum.ts": SUM });
    const { id, page } = await work(
      tool("repo_write", { path: "src/sum.ts", content: "export const sum = 1;\n" }),
    );
    await say(page, tool("repo_commit", { message: "Simplify" }));
    const asked = page.getByRole("group", { name: /^Approve this call\? repo_commit/ });
    const policy = page.getByTestId("policy");
    await asked.getByText("The call follows untrusted content: a result of a tool.").waitFor();
    expect(await policy.textContent()).toContain("A person reads the changes first. Rule: ask-before-commit");
    await asked.getByRole("link", { name: "Read the changes" }).click();
    expect(await linesOf(page, "src/sum.ts", "removed")).toEqual([SUM.trim()]);
    await page.goBack();
    await asked.getByRole("button", { name: "Approve" }).press("Enter");
    await answers(page, "repo_commit answered", false).waitFor();
    await page.locator("[data-tool=repo_commit] summary").click();
    await policy.getByText("Rule: ask-before-commit").waitFor();
    await page.getByTestId("commit-view").getByRole("link", { name: "Review and merge" }).waitFor();

    await push({ "src/sum.ts": "export const sum = 2;\n" });
    await page.goto(`${world.server.url}/c/${id}/files/merge`);
    const merge = async (confirm: string) => {
      await page.getByRole("button", { name: "Merge into main…" }).click();
      await page.getByRole("button", { name: `Confirm: ${confirm}` }).click();
    };
    await merge("merge 1 commit into main");
    await page
      .getByTestId("conflicts")
      .getByText("Both branches changed 1 file in different ways. main stays as it was.")
      .waitFor();
    expect(await page.getByTestId("conflict").allTextContents()).toEqual(["src/sum.ts"]);
    await page.getByLabel("Merge, and the branch wins").check();
    await merge("replace the conflicting changes of main");
    await page.getByTestId("merged").waitFor();
    await page.getByTestId("view-files").click();
    await page.locator('[data-testid=tree-file][data-path="src/sum.ts"]').click();
    const file = page.getByTestId("file");
    await file.getByText("export const sum = 1;").waitFor();

    // A file that cannot be loaded again stays, beside the error.
    await page.route("**/file?path=*", (route) => route.abort());
    const content = tool("repo_write", { path: "src/sum.ts", content: "export const sum = 3;\n" });
    for await (const _ of world.client.streamTurn(id, { content }));
    await file.getByRole("button", { name: "Try again" }).waitFor();
    expect(await file.textContent()).toContain("export const sum = 1;");
    await page.unroute("**/file?path=*");
    await file.getByRole("button", { name: "Try again" }).press("Enter");
    await file.getByText("export const sum = 3;").waitFor();
    await file.getByRole("alert").waitFor({ state: "detached" });
    expect(world.visitor.complaints.splice(0).join()).toContain("ERR_FAILED");
  });

  it("FILESPAGE-2 the page follows the work of an agent; a member commits but does not merge, and sees no branches of others; bundles are downloaded and imported, with the reason of a refusal", async () => {
    const headers = { "x-member": "ada" };
    const member = createClient({
      baseUrl: world.server.url,
      fetch: (url, init) =>
        fetch(url, { ...init, headers: { ...Object.fromEntries(new Headers(init.headers)), ...headers } }),
    });
    const { id } = await member.conversations.create({ agentId: "developer" });
    const content = tool("repo_write", { path: "notes.txt", content: "A note\n" });
    const page = await visit(`/c/${id}/files/changes`, { extraHTTPHeaders: headers });
    await page.getByText("The branch has no changes yet.").waitFor();
    for await (const _ of member.streamTurn(id, { content }));
    await fileDiff(page, "notes.txt").waitFor();
    await page.getByLabel("Message of the commit").fill("Add a note");
    await page.getByRole("button", { name: "Commit 1 file" }).click();
    await page.getByTestId("committed").waitFor();
    await page.getByTestId("view-merge").click();
    await page.getByText("Authors and administrators merge.").waitFor();
    await fileDiff(page, "notes.txt").waitFor();
    expect(await page.getByTestId("merge").count()).toBe(0);
    await page.goto(`${world.server.url}/projects/shop`);
    await page.getByTestId("repository").first().waitFor();
    expect(await page.getByTestId("branch-item").count()).toBe(0);
    expect(await page.getByTestId("add-repository").count()).toBe(0);
    await world.visitor.leave();

    const author = await visit("/projects");
    await author.getByTestId("create-project").locator("summary").click();
    await author.getByLabel("Id of the project").fill("too many words");
    await author.getByLabel("Id of the repository").fill("artifacts");
    await author.getByRole("button", { name: "Create project" }).click();
    await author.locator('[aria-invalid=true][name="id"]').waitFor();
    expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("422")]);
    await author.getByLabel("Id of the project").fill("tools");
    await author.getByLabel("Id of the repository").fill("cli");
    await author.getByLabel("Default branch").fill("trunk");
    await author.getByRole("button", { name: "Create project" }).click();
    const cli = author.locator("[data-testid=repository][data-repo=cli]");
    await cli.getByText("trunk").waitFor();
    // Later content would move the button away from the click.
    await cli.getByText("The repository is empty.").waitFor();
    await cli.getByTestId("delete-repository").click();
    await author.getByRole("button", { name: "Delete cli for good?" }).click();
    await cli.waitFor({ state: "detached" });
    await author.getByRole("link", { name: "Settings" }).click();
    await author.getByTestId("delete-project").click();
    await author.getByRole("button", { name: "Delete tools for good?" }).click();
    await author.waitForURL("**/projects");
    await expect.poll(() => author.locator("[data-project=tools]").count()).toBe(0);
    await author.getByTestId("create-project").locator("summary").click();
    await author.getByLabel("Id of the project").fill("plain");
    await author.getByRole("button", { name: "Create project" }).click();
    await author.waitForURL("**/projects/plain");
    await author.goto(`${world.server.url}/projects/shop`);
    const repository = (repo: string) => author.locator(`[data-testid=repository][data-repo=${repo}]`);
    const [download] = await Promise.all([
      author.waitForEvent("download"),
      repository("web").getByTestId("download-bundle").click(),
    ]);
    expect(download.suggestedFilename()).toBe("shop-web.bundle");
    const empty = repository("empty");
    await empty.getByTestId("import-bundle").locator("summary").click();
    const file = empty.getByLabel("Bundle for empty");
    await file.setInputFiles({
      name: "no.bundle",
      mimeType: "application/octet-stream",
      buffer: Buffer.from("no bundle"),
    });
    await empty
      .getByRole("alert")
      .getByText(/bundle/i)
      .waitFor();
    expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("422")]);
    await file.setInputFiles(await download.path());
    await empty
      .getByRole("status")
      .getByText(/^Imported\. The repository has \d+ branches\.$/)
      .waitFor();
    await empty.getByTestId("branch-item").first().getByText("main").waitFor();
  });

  it("artifacts are listed by type, searched, read and deleted; a delegate and a run have files of their own", async () => {
    for (const path of ["decisions/use-git.md", "notes/plan.md"])
      await world.client.artifacts.write("shop", path, { content: `# About ${path}\n\nWe take it.\n` });
    const page = await visit("/projects/shop");
    await page.getByTestId("open-artifacts").click();
    const item = (path: string) => page.locator(`[data-testid=artifact-item][data-path="${path}"]`);
    await item("notes/plan.md").waitFor();
    await page.getByLabel("Type").selectOption("decision");
    await item("notes/plan.md").waitFor({ state: "detached" });
    await page.getByLabel("Type").selectOption("All types");
    await page.getByLabel("Search artifacts").fill("plan");
    await page.getByRole("button", { name: "Search" }).click();
    await item("notes/plan.md").click();
    await page.getByTestId("artifact").getByText("# About notes/plan.md").waitFor();
    await page.getByTestId("delete-artifact").click();
    await page.getByRole("button", { name: "Delete this artifact?" }).click();
    await page.goto(`${world.server.url}/projects/shop/artifacts`);
    await item("decisions/use-git.md").waitFor();
    expect(await item("notes/plan.md").count()).toBe(0);
    await world.visitor.leave();

    const message = tool("repo_write", { path: "test.txt", content: "Of the tester\n" });
    const { page: asking } = await work(tool("ask_tester", { message }));
    const card = asking.locator("[data-tool=ask_tester]");
    await card.locator("summary").first().click();
    await card.getByTestId("delegate-files").click();
    await fileDiff(asking, "test.txt").waitFor();

    const run = await world.client.runs.start({ workflow: "code/notes", input: {}, projectId: "shop" });
    for await (const _ of world.client.runs.follow(run.id));
    await asking.goto(`${world.server.url}/runs/${run.id}`);
    await asking.getByTestId("open-files").click();
    await asking.locator('[data-testid=tree-file][data-path="notes/run.md"]').click();
    await asking.getByTestId("file").getByText("Of the run.").waitFor();
    expect(await asking.getByTestId("view-merge").count()).toBe(0);
    await asking.getByTestId("view-changes").click();
    await fileDiff(asking, "notes/run.md").waitFor();
    expect(await asking.getByTestId("commit-form").count()).toBe(0);
    await violationsAt(asking, [
      ...[`/runs/${run.id}`, `/runs/${run.id}/files/changes`],
      ...[
        "/projects/shop/artifacts",
        "/projects/shop/artifacts?path=decisions%2Fuse-git.md",
        "/projects/nope",
      ],
    ]);
    expect(world.visitor.complaints.splice(0)).toEqual(
      Array.from({ length: 2 }, () => expect.stringContaining("404")),
    );
  });

  /** Fails if axe finds something on pages, or if something scrolls sideways. */
  async function violationsAt(page: Page, paths: readonly string[]): Promise<void> {
    const found: string[] = [];
    for (const [width, scheme] of [
      [390, "dark"],
      [1440, "light"],
    ] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      for (const path of paths) {
        await page.goto(world.server.url + path);
        await page.locator("h1").waitFor();
        await expect.poll(() => page.locator("[role=status].skeleton").count()).toBe(0);
        if (/^\/runs\/[^/]+$/.test(path)) await page.getByTestId("open-files").waitFor();
        if (path.startsWith("/c/") && !path.includes("/files")) {
          await page.getByTestId("tool-card").last().waitFor();
          for (const summary of await page.locator("[data-testid=tool-card] > summary").all())
            await summary.click();
        }
        for (const violation of await violations(page)) found.push(`${path} ${width} ${violation}`);
        for (const element of await sidewaysScrollers(page))
          found.push(`${path} ${width} scrolls: ${element}`);
      }
    }
    expect(found).toEqual([]);
  }

  it("axe finds nothing on the pages of files and projects, at two widths, and nothing scrolls sideways", async () => {
    const wide = `${"wide ".repeat(60)}\n`;
    await push({ "src/long/names/of/folders/index.ts": wide.repeat(8), "src/sum.ts": SUM });
    const { id, page } = await work(
      tool("repo_write", { path: "src/long/names/of/folders/index.ts", content: wide }),
      tool("repo_edit", { path: "src/sum.ts", before: "a - b", after: "a + b" }),
      tool("shell_exec", { command: "cat src/long/names/of/folders/index.ts; rm README.md" }),
      tool("repo_search", { query: "sum" }),
      tool("repo_diff", {}),
    );
    const dream = await world.client.conversations.create({ agentId: "dreamer" });
    const paths = [
      ...[`/c/${id}`, `/c/${id}/files`, `/c/${id}/files?path=src%2Flong%2Fnames%2Fof%2Ffolders%2Findex.ts`],
      ...[`/c/${id}/files/changes`, `/c/${id}/files/commits`, `/c/${id}/files/merge`],
      ...[`/c/${dream.id}/files`, "/projects", "/projects/shop"],
    ];
    await violationsAt(page, paths);
    await page.goto(`${world.server.url}/c/${id}/files/changes`);
    await fileDiff(page, "src/sum.ts").waitFor();
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await violations(page), "a difference in dark").toEqual([]);
    await page.goto(`${world.server.url}/c/${dream.id}/files`);
    await page.getByTestId("no-repository").getByText("The project clouds has no repository").waitFor();
  });
});
