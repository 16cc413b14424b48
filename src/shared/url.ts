/**
 * Whether it is an HTTP address of host and path alone. An empty query or fragment counts too: what is appended to it would
 * not be a path.
 */
export function isPlainUrl(address: string): boolean {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.href === url.origin + url.pathname;
}
