/** The TCP ports of processes, from `/proc`, and the answers of debuggers. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";

/** State of a listening socket in `/proc/net/tcp`. */
const LISTEN = "0A";

export interface ListeningPort {
  /** An IPv4 address, or the digits of an IPv6 address. */
  host: string;
  port: number;
}

/** Returns the TCP ports of a process; `undefined` on systems without `/proc`. */
export function listeningPorts(pid: number): ListeningPort[] | undefined {
  if (!existsSync(`/proc/${pid}/net/tcp`)) return undefined;
  const sockets = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`)));
  const lines = ["tcp", "tcp6"].flatMap((name) =>
    readFileSync(`/proc/${pid}/net/${name}`, "utf8").trim().split("\n").slice(1),
  );
  return lines.flatMap((line) => {
    const [, local = "", , state, , , , , , inode] = line.trim().split(/\s+/);
    const [host = "", port = ""] = local.split(":");
    if (state !== LISTEN || !sockets.has(`socket:[${inode}]`)) return [];
    return [{ host: hostOf(host), port: Number.parseInt(port, 16) }];
  });
}

/** Returns the description of the debugger at this port, if any. */
export async function devTools(port: number): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}/json/version`);
  const text = await response.text();
  return /Protocol-Version/i.test(text) ? text : undefined;
}

/** The kernel writes an IPv4 address as a number of the machine's byte order, here little-endian. */
function hostOf(hex: string): string {
  if (hex.length !== 8) return hex;
  return (hex.match(/../g) ?? [])
    .reverse()
    .map((byte) => Number.parseInt(byte, 16))
    .join(".");
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // It has been closed.
    return "";
  }
}
