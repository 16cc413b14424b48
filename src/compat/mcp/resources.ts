/** Artifacts as resources of MCP: their addresses and media types. Pure. */

const PREFIX = "dramatis://artifacts/";

export const ARTIFACT_TEMPLATE = `${PREFIX}{project}/{+path}`;

/** The media types of artifacts, by the ends of their paths. Others are plain text. */
const TYPES: Readonly<Record<string, string>> = {
  md: "text/markdown",
  json: "application/json",
  yaml: "application/yaml",
  html: "text/html",
  csv: "text/csv",
};

interface ArtifactPlace {
  project: string;
  path: string;
}

export function artifactUri({ project, path }: ArtifactPlace): string {
  return `${PREFIX}${[project, ...path.split("/")].map(encodeURIComponent).join("/")}`;
}

/** Reads an address. Returns `undefined` for others. */
export function parseArtifactUri(uri: string): ArtifactPlace | undefined {
  if (!uri.startsWith(PREFIX)) return undefined;
  try {
    const [project = "", ...path] = uri.slice(PREFIX.length).split("/").map(decodeURIComponent);
    return { project, path: path.join("/") };
  } catch {
    return undefined;
  }
}

export function mediaTypeOf(path: string): string {
  return TYPES[path.slice(path.lastIndexOf(".") + 1)] ?? "text/plain";
}
