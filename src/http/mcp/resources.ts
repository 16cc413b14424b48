/** The artifacts of the tenant's projects as resources. Everyone in the tenant reads them. */
import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type Resource,
  ResourceNotFoundError,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { ARTIFACT_TEMPLATE, artifactUri, mediaTypeOf, parseArtifactUri } from "../../compat/mcp/resources.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { RequestVariables } from "../base/context.ts";
import type { McpRequest } from "./call.ts";
import { everyItem, MAX_ITEMS } from "./lists.ts";

/** Adds the artifacts, if the runtime can store them. */
export function addArtifacts(server: McpServer, { ports }: McpRequest): void {
  if (ports.missing().some(({ name }) => name === "DB" || name === "BUCKET")) return;
  server.registerResource(
    "artifact",
    new ResourceTemplate(ARTIFACT_TEMPLATE, {
      list: async () => ({ resources: await everyArtifact(ports) }),
    }),
    { title: "Artifacts", description: "The documents of projects." },
    async ({ href }) => ({ contents: [await readArtifact(ports, href)] }),
  );
}

async function everyArtifact({
  principal: { tenant },
  projects,
  artifacts,
}: RequestVariables): Promise<Resource[]> {
  const resources: Resource[] = [];
  for (const { id: project } of await everyItem((options) => projects().rows.projects(tenant, options))) {
    if (resources.length >= MAX_ITEMS) break;
    try {
      const items = await everyItem((options) => artifacts().list({ tenant, project }, options));
      for (const { path, title, bytes } of items)
        resources.push({
          ...{ uri: artifactUri({ project, path }), name: path, title, size: bytes },
          mimeType: mediaTypeOf(path),
        });
    } catch (error) {
      console.warn(`The resources leave out the artifacts of the project "${project}":`, error);
    }
  }
  return resources.slice(0, MAX_ITEMS);
}

async function readArtifact({ principal: { tenant }, artifacts }: RequestVariables, uri: string) {
  const place = parseArtifactUri(uri);
  if (place === undefined) throw new ResourceNotFoundError(uri);
  const { project, path } = place;
  try {
    const { content } = await artifacts().read({ tenant, project }, { path });
    return { uri, mimeType: mediaTypeOf(path), text: content };
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    if (error.code === "NOT_FOUND") throw new ResourceNotFoundError(uri);
    throw new ProtocolError(ProtocolErrorCode.InternalError, error.message);
  }
}
