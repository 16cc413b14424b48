/** Chromium for tests of the console: where it is, and pages that report whatever goes wrong in them. */
import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM_PATH ?? "/usr/bin/chromium";

/** Whether there is a browser to test with. */
export const hasChromium = existsSync(CHROMIUM);

/** Tells why nothing is tested in a browser. */
export const NO_CHROMIUM = `${CHROMIUM} is not there; set CHROMIUM_PATH to test the console in a browser`;

export function launchChromium(): Promise<Browser> {
  const off = ["background-networking", "component-update", "sync", "gpu", "quic"];
  const args = ["--no-sandbox", "--no-first-run", ...off.map((feature) => `--disable-${feature}`)];
  return chromium.launch({ executablePath: CHROMIUM, args });
}

/** A person at a browser of their own, with any number of tabs. */
export class Visitor {
  /** Errors on the console, exceptions and dialogs, of all tabs. */
  readonly complaints: string[] = [];
  readonly #url: string;
  readonly #context: ReturnType<Browser["newContext"]>;

  constructor(browser: Browser, url: string, options: BrowserContextOptions = {}) {
    this.#url = url;
    this.#context = browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  }

  /** A new tab. It notes every text that the last message of the agent ever shows, for `shownTexts`. */
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

// What runs in a page is text here: these files are checked without the types of the DOM.
const NOTE_TEXTS = `
  globalThis.shownTexts = [];
  const note = () => {
    const text = [...document.querySelectorAll("[data-testid=message-agent]")].at(-1)?.textContent ?? "";
    if (text !== shownTexts.at(-1)) shownTexts.push(text);
  };
  new MutationObserver(note).observe(document, { childList: true, characterData: true, subtree: true });
`;

/** All that the last message of the agent has shown since the page was loaded, text by text. */
export function shownTexts(page: Page): Promise<string[]> {
  return page.evaluate("shownTexts");
}

export async function say(page: Page, text: string): Promise<void> {
  const composer = page.getByTestId("composer");
  await composer.fill(text);
  await composer.press("Enter");
}

/** Messages of the agent that contain a text; `streaming` tells those still growing from those complete. */
export function answers(page: Page, text: string | RegExp, streaming: boolean): Locator {
  return page.locator(`[data-testid=message-agent][data-streaming=${streaming}]`, { hasText: text });
}

/** What can be scrolled sideways without being made for it, as tables and code are. */
export function sidewaysScrollers(page: Page): Promise<string[]> {
  return page.evaluate(`
    [document.documentElement, ...document.querySelectorAll("body *")]
      .filter((element) => element === document.documentElement || getComputedStyle(element).overflowX === "auto")
      .filter((element) => element.scrollWidth > element.clientWidth && !element.matches("pre, table"))
      .map((element) => element.outerHTML.slice(0, 200))
  `);
}

/** How much brighter the page's text is than its background: below 0 on light pages, at most 255. */
export function textBrightness(page: Page): Promise<number> {
  return page.evaluate(`{
    const level = (colour) => Math.max(...colour.match(/\\d+/g).map(Number));
    const { color, backgroundColor } = getComputedStyle(document.body);
    level(color) - level(backgroundColor);
  }`);
}
