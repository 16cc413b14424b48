/**
 * The address and the token of a server.
 *
 * CLITOKEN-1  The token comes from DRAMATIS_TOKEN only, and no printed text contains it. The bytes of an export stay unchanged.
 */
import { wrongUsage } from "./failure.ts";

/** The address of `npm start`. */
export const DEFAULT_URL = "http://localhost:8787";

/** Returns the address of a server, without a slash at its end. */
export function serverUrl(option: string | undefined, environment: string | undefined): string {
  const [source, text] =
    option !== undefined ? ["--url", option] : ["DRAMATIS_URL", environment || DEFAULT_URL];
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw wrongUsage(`${source} must begin with http:// or https://, for example ${DEFAULT_URL}.`);
  if (url.username !== "" || url.password !== "")
    throw wrongUsage(`${source} contains a user or a password. Remove it, and set DRAMATIS_TOKEN instead.`);
  return url.origin + url.pathname.replace(/\/+$/, "");
}

export function tokenOf(environment: string | undefined): string | undefined {
  const token = environment?.trim();
  if (!token) return undefined;
  if (!/^[\x21-\x7e]+$/.test(token))
    throw wrongUsage(
      "DRAMATIS_TOKEN contains a space, a line break or a letter outside of ASCII. Set it to the token alone.",
    );
  return token;
}

/** Returns when a JSON Web Token expires, in milliseconds since the epoch, if it says so. */
export function expiryOf(token: string): number | undefined {
  try {
    const payload = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    return typeof payload?.exp === "number" ? payload.exp * 1000 : undefined;
  } catch {
    return undefined;
  }
}

/** Removes the token from text (CLITOKEN-1). */
export function withoutToken(text: string, token: string | undefined): string {
  return token === undefined ? text : text.replaceAll(token, "[DRAMATIS_TOKEN]");
}
