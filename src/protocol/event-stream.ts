/** Comments that keep a silent stream of server-sent events open. */

/** Proxies cut streams after half a minute of silence or more. */
export const SILENCE_MS = 15_000;

export const KEEP_ALIVE = new TextEncoder().encode(": keep-alive\n\n");
