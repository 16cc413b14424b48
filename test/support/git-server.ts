/**
 * A git server on loopback: `git http-backend` of this machine. `/NAME` is a repository, which the first request creates. Other paths are for tests:
 *
 *   /private-NAME  needs the header `authorization: Basic TOKEN`
 *   /absent        answers 404
 *   /moved         redirects to `/elsewhere`
 *   /page          answers with HTML
 *   /flood         announces a git server, and never ends
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const GIT_TOKEN = "dXNlcjp0b2tlbg==";

export interface GitServer {
  url: string;
  /** The path of a repository on the disk. */
  folder(name: string): string;
  close(): Promise<void>;
}

export async function startGitServer(): Promise<GitServer> {
  const root = mkdtempSync(join(tmpdir(), "git-server-"));
  const folder = (name: string) => {
    const path = join(root, name);
    if (!existsSync(path)) execFileSync("git", ["init", "--quiet", "--bare", "--initial-branch=main", path]);
    return path;
  };
  const http = createServer((request, response) => {
    const [path = "", query = ""] = (request.url ?? "").split("?");
    const [, name = ""] = path.split("/");
    if (name === "absent") return void response.writeHead(404).end();
    if (name === "moved") return void response.writeHead(301, { location: "/elsewhere" }).end();
    if (name === "page") return void response.writeHead(200, { "content-type": "text/html" }).end("<html>");
    if (name === "flood") return flood(response);
    if (name.startsWith("private-") && request.headers.authorization !== `Basic ${GIT_TOKEN}`)
      return void response.writeHead(401).end();
    folder(name);
    serve(root, path, query, request, response);
  });
  await once(http.listen(0, "127.0.0.1"), "listening");
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    folder,
    async close() {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Runs the program for a request, in the way of CGI. */
function serve(
  root: string,
  path: string,
  query: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const backend = spawn("git", ["http-backend"], {
    env: {
      ...process.env,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      REMOTE_USER: "tester",
      REMOTE_ADDR: "127.0.0.1",
    },
  });
  request.pipe(backend.stdin);
  const chunks: Buffer[] = [];
  backend.stdout.on("data", (chunk) => chunks.push(chunk));
  backend.on("close", () => {
    const bytes = Buffer.concat(chunks);
    const end = bytes.indexOf("\r\n\r\n");
    const lines = bytes.subarray(0, end).toString().split("\r\n");
    const headers = lines.map((line: string): [string, string] => {
      const [name = "", ...value] = line.split(": ");
      return [name.toLowerCase(), value.join(": ")];
    });
    const { status = "200", ...rest } = Object.fromEntries(headers);
    response.writeHead(Number.parseInt(status, 10), rest).end(bytes.subarray(end + 4));
  });
}

function flood(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/x-git-upload-pack-advertisement" });
  const chunk = Buffer.alloc(1_000_000, "0");
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on("drain", more);
  more();
}
