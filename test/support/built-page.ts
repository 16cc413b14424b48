/** Pages of test/e2e/pages as HTML with a single script. */
import { join } from "node:path";
import { rolldown } from "rolldown";

/**
 * Chromium takes a page from `route.fulfill` for a page from the internet, which may not reach this machine. `launchChromium` turns this
 * feature off.
 */
export const LOCAL_PAGES = "LocalNetworkAccessChecks";

/** Returns a page, by the name of its file. In `development`, `StrictMode` mounts each component twice. */
export async function buildPage(
  name: string,
  mode: "production" | "development" = "production",
): Promise<string> {
  const bundle = await rolldown({
    input: join(import.meta.dirname, `../e2e/pages/${name}.tsx`),
    platform: "browser",
    transform: { define: { "process.env.NODE_ENV": JSON.stringify(mode) } },
  });
  const { output } = await bundle.generate({ format: "iife" });
  await bundle.close();
  const script = output[0].code.replaceAll("</script", "<\\/script");
  return `<!doctype html><link rel="icon" href="data:,"><div id="root"></div><script>${script}</script>`;
}
