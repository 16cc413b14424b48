/**
 * The headers that protect a browser from untrusted content.
 *
 * SHEAD-1  Every response of the Worker has these headers, including errors, refusals and files of users. A browser
 *          that opens a response runs no code, loads no resources, guesses no type, shows it in no frame, and sends
 *          no referrer. Pages of other origins read it only as `cors` allows.
 * SHEAD-2  A header of `authorize`'s own response is not changed.
 */

/** The headers of everything that is served, the static files of the console included. */
export const BROWSER_HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
};

/** The headers of the Worker's responses. A response is never a page, so the policy blocks all content. */
const WORKER_HEADERS = {
  ...BROWSER_HEADERS,
  "content-security-policy":
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox",
};

/** Returns the response with the headers that it does not have yet. A WebSocket's handshake stays as it is. */
export function withSecurityHeaders(response: Response): Response {
  if (response.status === 101) return response;
  // The headers of some responses, such as redirects, cannot be changed.
  const secured = new Response(response.body, response);
  for (const [name, value] of Object.entries(WORKER_HEADERS))
    if (!secured.headers.has(name)) secured.headers.set(name, value);
  return secured;
}
