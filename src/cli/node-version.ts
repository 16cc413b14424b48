export type Version = [major: number, minor: number];

const OLDEST_NODE: Version = [22, 14];

export function isOlder(version: string, [major, minor]: Version): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split(".").map(Number);
  return ownMajor < major || (ownMajor === major && ownMinor < minor);
}

/** Says what to change if a project cannot run on a version of Node. */
export function nodeProblem(node: string = process.versions.node): string | undefined {
  return isOlder(node, OLDEST_NODE)
    ? `Node ${node} is too old. Install Node ${OLDEST_NODE.join(".")} or newer.`
    : undefined;
}
