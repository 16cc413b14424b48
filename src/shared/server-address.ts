/** Addresses of servers in definitions and in the configuration. Pure. */
import { z } from "zod";
import { isPrivateHost } from "./host-rules.ts";

export const serverAddressSchema = z
  .string()
  .max(2_000)
  .refine((text) => {
    const url = URL.parse(text);
    if (url === null || url.username !== "" || url.password !== "" || url.hash !== "") return false;
    if (url.hostname.endsWith(".")) return false;
    return url.protocol === "https:" || (url.protocol === "http:" && isPrivateHost(url.hostname));
  }, "Must be an address with https, and its host must not end with a dot. Plain http is allowed for private hosts.");

/** Returns the host of a server as lists of hosts name it: a private host with its port (HOSTS-2). */
export function serverHost(url: URL): string {
  return isPrivateHost(url.hostname) ? exactHost(url) : url.host;
}

/** Returns the host of a URL with its port. */
export function exactHost({ hostname, port, protocol }: URL): string {
  return `${hostname}:${port || (protocol === "https:" ? "443" : "80")}`;
}
