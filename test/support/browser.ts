/** Chromium for tests of the console, and pages that report all errors in them. */
import { existsSync } from "node:fs";
import axe from "axe-core";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";

/** `true` if Chromium is installed. */
export const hasChromium = existsSync(CHROMIUM);

/** Reason for skipping tests in a browser. */
export const NO_CHROMIUM = `${CHROMIUM} is not there; set CHROMIUM_PATH to test the console in a browser`;

/**
 * Features that cost time or use a network. Each new context would load the pages of the address bar, which takes more time than the
 * page of a test. The list replaces Playwright's list, so the second line repeats entries of that list.
 */
const OFF_FEATURES = [
  ...["WebUIOmniboxPopup", "WebUIOmniboxAimPopup"],
  ...[
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
  ],
];

/** Launches Chromium without these features. */
export function launchChromium(...offFeatures: string[]): Promise<Browser> {
  const off = ["background-networking", "component-update", "sync", "gpu", "quic"];
  const features = `--disable-features=${[...OFF_FEATURES, ...offFeatures].join(",")}`;
  const args = ["--no-sandbox", "--no-first-run", ...off.map((name) => `--disable-${name}`), features];
  return chromium.launch({ executablePath: CHROMIUM, args });
}

/** A user with a browser profile and any number of tabs. */
export class Visitor {
  /** Console errors, exceptions and dialogs of all tabs. */
  readonly complaints: string[] = [];
  readonly #url: string;
  readonly #context: ReturnType<Browser["newContext"]>;

  constructor(browser: Browser, url: string, options: BrowserContextOptions = {}) {
    this.#url = url;
    this.#context = browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  }

  /** Opens a new tab. The tab records all texts that the last agent message displays, for `shownTexts`. */
  async open(path = "/"): Promise<Page> {
    const page = await (await this.#context).newPage();
    page.on("console", (message) => {
      if (message.type() === "error") this.complaints.push(message.text());
    });
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("dialog", (dialog) => {
      this.complaints.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    await page.addInitScript({ content: NOTE_TEXTS });
    await page.goto(new URL(path, this.#url).href);
    return page;
  }

  async leave(): Promise<void> {
    await (await this.#context).close();
  }
}

// Code for the page is text, because these files are checked without DOM types.
const NOTE_TEXTS = `
  globalThis.shownTexts = [];
  const note = () => {
    const text = [...document.querySelectorAll("[data-testid=message-agent]")].at(-1)?.textContent ?? "";
    if (text !== shownTexts.at(-1)) shownTexts.push(text);
  };
  new MutationObserver(note).observe(document, { childList: true, characterData: true, subtree: true });
`;

/** Returns all texts that the last agent message has displayed since the page was loaded. */
export function shownTexts(page: Page): Promise<string[]> {
  return page.evaluate("shownTexts");
}

export async function say(page: Page, text: string): Promise<void> {
  const composer = page.getByTestId("composer");
  await composer.fill(text);
  await composer.press("Enter");
}

/** Finds streaming or complete agent messages with a text. */
export function answers(page: Page, text: string | RegExp, streaming: boolean): Locator {
  return page.locator(`[data-testid=message-agent][data-streaming=${streaming}]`, { hasText: text });
}

/** Finds elements that scroll sideways but should not. Tables and code may. */
export function sidewaysScrollers(page: Page): Promise<string[]> {
  return page.evaluate(`
    [document.documentElement, ...document.querySelectorAll("body *")]
      .filter((element) => element === document.documentElement || getComputedStyle(element).overflowX === "auto")
      .filter((element) => element.scrollWidth > element.clientWidth && !element.matches("pre, table"))
      .map((element) => element.outerHTML.slice(0, 200))
  `);
}

/** Returns the rules of axe that the page violates, each with its elements. `colors`: checks only colours. */
export async function violations(page: Page, rules: "all" | "colors" = "all"): Promise<string[]> {
  if ((await page.evaluate("typeof axe")) === "undefined") await page.evaluate(`${axe.source}; undefined`);
  const only = rules === "all" ? "" : ', runOnly: ["color-contrast"]';
  return page.evaluate(`axe.run(document, { resultTypes: ["violations"]${only} }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html, failureSummary }) => html.slice(0, 200) + " " + failureSummary).join(" | ")))`);
}

/** Returns the brightness of the page's text minus the brightness of its background, from -255 to 255. */
export function textBrightness(page: Page): Promise<number> {
  return page.evaluate(`{
    const level = (colour) => Math.max(...colour.match(/\\d+/g).map(Number));
    const { color, backgroundColor } = getComputedStyle(document.body);
    level(color) - level(backgroundColor);
  }`);
}
