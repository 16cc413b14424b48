/**
 * The headers of all static files of the console and of the page `/docs`.
 *
 * PAGE-1  Every static file is served with a Content-Security-Policy. The console runs only the scripts of its own files, and
 *         reaches only its own server. Other sites cannot frame a page or share its window.
 */
import { BROWSER_HEADERS } from "../src/http/base/security-headers.ts";

const POLICY = "content-security-policy";

/** `connect-src 'self'` includes WebSockets of the same host. Images are the console's own, and attachments: with a token, from memory. */
const CONSOLE_SOURCES = [
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob:",
  "connect-src 'self'",
];

/** Returns the `_headers` file. `docsStyle` is the source of the style of `/docs`. */
export function headersFile(docsStyle: string): string {
  const everywhere = {
    ...BROWSER_HEADERS,
    "cross-origin-opener-policy": "same-origin",
    [POLICY]: policy(...CONSOLE_SOURCES, "require-trusted-types-for 'script'", "trusted-types 'none'"),
  };
  // Rules that match the same path add up, so the console's policy is removed first.
  return [
    "/*",
    ...Object.entries(everywhere).map(([name, value]) => `  ${name}: ${value}`),
    "/docs",
    `  ! ${POLICY}`,
    `  ${POLICY}: ${policy(`style-src ${docsStyle}`)}`,
    "",
  ].join("\n");
}

function policy(...allowed: string[]): string {
  return [
    "default-src 'none'",
    ...allowed,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
